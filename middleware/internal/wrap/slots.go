package wrap

import (
	"context"
	"sync/atomic"
	"time"
)

// Slots limits how many goroutines run something at the same time, and how many
// wait for that. It is safe for concurrent use.
type Slots struct {
	used    chan struct{}
	queue   int64
	waiting atomic.Int64
	wait    time.Duration
}

// NewSlots returns n slots, for which queue goroutines may wait, in order, for the
// time wait; without a limit if that is not positive.
func NewSlots(n, queue int, wait time.Duration) *Slots {
	return &Slots{used: make(chan struct{}, n), queue: int64(queue), wait: wait}
}

// Queues reports whether Enter may wait.
func (s *Slots) Queues() bool { return s.queue > 0 }

// Try takes a free slot, and reports whether there was one. While goroutines wait
// none is free: the channel passes each on in order.
func (s *Slots) Try() bool {
	select {
	case s.used <- struct{}{}:
		return true
	default:
		return false
	}
}

// Enter takes a slot, and waits for one. It reports false if too many goroutines
// wait, the time is over, or ctx is done.
func (s *Slots) Enter(ctx context.Context) bool {
	if s.Try() {
		return true
	}
	if s.waiting.Add(1) > s.queue {
		s.waiting.Add(-1)
		return false
	}
	defer s.waiting.Add(-1)
	var late <-chan time.Time
	if s.wait > 0 {
		t := time.NewTimer(s.wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case s.used <- struct{}{}:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}

// Leave frees the slot that Try or Enter has taken.
func (s *Slots) Leave() { <-s.used }
