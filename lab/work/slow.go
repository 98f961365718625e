package work

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Pause is how long Sleep sleeps.
const Pause = 20 * time.Millisecond

// Sleep waits, as for a database.
func Sleep() { time.Sleep(Pause) }

// steps makes Compute take about 20 ms on a core of 2020s make. A number of steps and not a time: when several
// goroutines share a core, each must still do all of its own work.
const steps = 10_000_000

// sink keeps the compiler from leaving out the work.
var sink atomic.Uint64

// Compute keeps a core busy.
func Compute() {
	x := uint64(88172645463325252)
	for range steps {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink.Store(x)
}

// Turning is the work of a handler that is quick until it is switched. The zero value is quick.
type Turning struct {
	do atomic.Pointer[func()]
}

// To says what it does from now on: "sleep" or "compute".
func (t *Turning) To(name string) error {
	do, ok := map[string]func(){"sleep": Sleep, "compute": Compute}[name]
	if !ok {
		return fmt.Errorf("no work %q", name)
	}
	t.do.Store(&do)
	return nil
}

// Do does it.
func (t *Turning) Do() {
	if do := t.do.Load(); do != nil {
		(*do)()
	}
}
