package h2

import (
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
)

// This file is how streams wait for a slot of Server.MaxHandlers.

type slotState uint8

const (
	slotNone  slotState = iota
	slotAsked           // Acquire is being called
	slotQueued
	slotHeld
)

// acquire takes a slot, and reports whether the handler is to run, if only to be
// refused.
func (st *stream) acquire() bool {
	s := st.s
	s.mu.Lock()
	st.slot = slotAsked
	s.mu.Unlock()
	a := s.Slots.Acquire(st)
	s.mu.Lock()
	st.slot = [...]slotState{conn.Admitted: slotHeld, conn.Queued: slotQueued, conn.Refused: slotNone}[a]
	over := s.over != nil
	s.mu.Unlock()
	if a == conn.Queued {
		if over { // meanwhile, by another goroutine
			st.gone()
		}
		return false
	}
	if a == conn.Refused {
		st.Refusal = bridge.ForRoom
	}
	return true
}

// Acquired implements loop.Waiter: a slot is there. Any goroutine calls it.
func (st *stream) Acquired() { st.s.Link.Post(st.acquired) }

func (st *stream) acquired() conn.Next {
	s := st.s
	s.mu.Lock()
	if st.slot != slotQueued {
		s.mu.Unlock()
		return conn.More
	}
	st.slot = slotHeld
	closed := st.closed
	s.mu.Unlock()
	if closed {
		st.Release()
		s.mu.Lock()
		st.forget()
		s.mu.Unlock()
	} else if !s.admit(st, true) {
		return conn.Lost
	}
	return s.after(true)
}

// Release implements bridge.Message.
func (st *stream) Release() {
	s := st.s
	if s.Slots == nil {
		return
	}
	s.mu.Lock()
	held := st.slot == slotHeld
	if held {
		st.slot = slotNone
	}
	s.mu.Unlock()
	if held {
		s.Slots.Release()
	}
}

// Aside implements bridge.Message.
func (st *stream) Aside(f func()) { f() }
