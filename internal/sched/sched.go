package sched

import (
	"hash/fnv"
	"sync/atomic"
)

var point atomic.Pointer[func(key uint64)]

// Set has Point call f, from now on; nil: it does nothing. Only simulations call it.
func Set(f func(key uint64)) {
	if f == nil {
		point.Store(nil)
		return
	}
	point.Store(&f)
}

// On reports whether there is a simulation.
func On() bool { return point.Load() != nil }

// Point is called by a goroutine that begins, or goes on after a wait for others, and holds no
// lock: a simulation may let others go on first. Of those that come at the same time, it tells
// one from another by who and n.
func Point(who string, n uint64) {
	if f := point.Load(); f != nil {
		h := fnv.New64a()
		h.Write([]byte(who))
		(*f)(h.Sum64() + n)
	}
}
