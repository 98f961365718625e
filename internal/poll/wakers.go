//go:build linux || darwin

package poll

import (
	"math"
	"runtime"
	"sync/atomic"
)

// wakers are the calls of Wake under way. They use a descriptor by its number, which another file of the
// process may get as soon as Close has closed it: a late Wake would write to a connection.
type wakers struct {
	calls atomic.Int32 // less than 0 after end
}

// enter begins a call, or reports false after end.
func (w *wakers) enter() bool {
	if w.calls.Add(1) > 0 {
		return true
	}
	w.leave()
	return false
}

func (w *wakers) leave() { w.calls.Add(-1) }

// end waits for the calls under way, none of which waits for anything.
func (w *wakers) end() {
	for w.calls.Add(math.MinInt32); w.calls.Load() != math.MinInt32; {
		runtime.Gosched()
	}
}
