package health

import (
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	violated = func(move string) { panic("health: not in the table: " + move) }
	os.Exit(m.Run())
}

const s = int64(time.Second)

// half is a random number that changes no ejection time by more than rounding.
func half() uint64 { return 1 << 63 }

// one returns a Server, and what it has reported.
func one(o *Options, check string) (*Ref, *[]Change) {
	var all []Change
	r := NewRegistry(&RegistryOptions{Random: half, Changed: func(_ *Server, c Change) { all = append(all, c) }})
	return r.Acquire(0, Key{Addr: "192.0.2.1:80", Check: check}, o), &all
}
