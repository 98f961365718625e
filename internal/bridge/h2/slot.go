package h2

import (
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
)

// This file is how streams wait for a slot of Server.MaxHandlers.

// acquire takes a slot, and reports whether the handler is to run, if only to be
// refused.
func (st *stream) acquire() bool {
	s := st.s
	switch s.Slots.Acquire(st) {
	case loop.Admitted:
		st.hasSlot = true
	case loop.Refused:
		st.Refusal = bridge.ForRoom
	case loop.Queued:
		s.mu.Lock()
		st.become(stateQueued)
		s.mu.Unlock()
		return false
	}
	return true
}

// Acquired implements loop.Waiter: a slot is there. Any goroutine calls it.
func (st *stream) Acquired() { st.s.Link.Post(st.acquired) }

func (st *stream) acquired() conn.Next {
	s := st.s
	s.mu.Lock()
	queued := st.state == stateQueued // not closed since, when closeLocked has released the slot
	s.mu.Unlock()
	if queued {
		if st.hasSlot = true; !s.admit(st, true) {
			return conn.Lost
		}
	}
	return s.after(true)
}

func (st *stream) Release() {
	if st.hasSlot {
		st.hasSlot = false
		st.s.Slots.Release()
	}
}
