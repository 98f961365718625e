package loop

import (
	"slices"
	"sync"

	"github.com/chert-http/chert/internal/sched"
)

// A Semaphore bounds how many handlers of a server run at the same time.
// Further ones wait in order of arrival, up to a limit. Safe for concurrent
// use.
type Semaphore struct {
	max, queue int

	mu      sync.Mutex
	running int
	waiting []Waiter // from head on
	head    int
}

// A Waiter waits for a slot of a Semaphore.
type Waiter interface {
	// Acquired is called when the waiter has been given a slot, by any goroutine
	// and with no lock held.
	Acquired()
}

// Admission is the result of Semaphore.Acquire.
type Admission uint8

const (
	Admitted Admission = iota // the caller has a slot and must call Release
	Queued                    // Acquired will be called
	Refused                   // too many are waiting
)

// NewSemaphore makes a Semaphore of max slots, and room for queue waiters.
func NewSemaphore(max, queue int) *Semaphore { return &Semaphore{max: max, queue: queue} }

// Acquire requests a slot.
func (s *Semaphore) Acquire(w Waiter) Admission {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running < s.max:
		s.running++
		return Admitted
	case len(s.waiting)-s.head < s.queue:
		s.waiting = append(s.waiting, w)
		return Queued
	}
	return Refused
}

// Rejoin acquires a slot for a caller that has had one, before all other
// waiters, since its handler is already running. It may block.
func (s *Semaphore) Rejoin() {
	s.mu.Lock()
	if s.running < s.max {
		s.running++
		s.mu.Unlock()
		return
	}
	w := make(turn, 1)
	s.waiting = slices.Insert(s.waiting, s.head, Waiter(w))
	s.mu.Unlock()
	<-w
	sched.Point("rejoin", 0)
}

// turn is a Waiter that a goroutine waits on.
type turn chan struct{}

func (t turn) Acquired() { t <- struct{}{} }

// Release releases a slot, or passes it to the waiter that has waited longest.
func (s *Semaphore) Release() {
	s.mu.Lock()
	if s.head == len(s.waiting) {
		s.running--
		s.mu.Unlock()
		return
	}
	w := s.waiting[s.head]
	s.waiting[s.head] = nil
	if s.head++; s.head == len(s.waiting) || s.head > 64 && 2*s.head > len(s.waiting) {
		n := copy(s.waiting, s.waiting[s.head:])
		clear(s.waiting[n:])
		s.waiting, s.head = s.waiting[:n], 0
	}
	s.mu.Unlock()
	w.Acquired()
}

// Withdraw removes a waiter from the queue. It reports false if the waiter has
// been given a slot: then the waiter must call Release, and Acquired is or has
// been called.
func (s *Semaphore) Withdraw(w Waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting[s.head:], w)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, s.head+i, s.head+i+1)
	return true
}

// Waiting is how many wait for a slot.
func (s *Semaphore) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) - s.head
}
