package loop

import "sync"

// Slots bound how many handlers of a server run at the same time. Those for
// whom there is no slot wait in the order in which they came, up to a number.
// All methods may be called concurrently.
type Slots struct {
	max, queue int

	mu      sync.Mutex
	running int
	waiting []Waiter // from head on
	head    int
}

// A Waiter waits for a slot.
type Waiter interface {
	// Admitted says that the waiter has a slot now. Any goroutine may call it,
	// with no lock held.
	Admitted()
}

// Entry is the result of Slots.Enter.
type Entry uint8

const (
	Entered Entry = iota // the caller has a slot and owes a Leave
	Queued               // Admitted will be called
	Refused              // there are too many already
)

// NewSlots makes max slots and room for queue waiters.
func NewSlots(max, queue int) *Slots { return &Slots{max: max, queue: queue} }

// Enter asks for a slot.
func (s *Slots) Enter(w Waiter) Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running < s.max:
		s.running++
		return Entered
	case len(s.waiting)-s.head < s.queue:
		s.waiting = append(s.waiting, w)
		return Queued
	}
	return Refused
}

// Leave gives a slot back, or to the one who has waited longest.
func (s *Slots) Leave() {
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
	w.Admitted()
}

// Crowded reports whether somebody waits.
func (s *Slots) Crowded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head < len(s.waiting)
}
