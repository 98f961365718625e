package stream

import (
	"sync"
	"time"
)

// stall ends a write that makes no progress for Limits.WriteStall. The
// connection's own write deadline is left to the handler, and to other code
// that has the net.Conn: it is set only when the write has stalled.
//
// The timer is not stopped after a write, only checked when it fires: writes
// are frequent and stalls rare.
type stall struct {
	after time.Duration // immutable; 0 means never
	cut   func()        // immutable; ends the write

	mu      sync.Mutex
	writing bool
	ended   bool
	until   time.Time
	timer   *time.Timer // nil until the first write
	armed   bool
}

// progress begins a write, or records that one has made progress.
func (s *stall) progress() {
	if s.after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing, s.until = true, time.Now().Add(s.after)
	if s.armed || s.ended {
		return
	}
	s.armed = true
	if s.timer == nil {
		s.timer = time.AfterFunc(s.after, s.fired)
	} else {
		s.timer.Reset(s.after)
	}
}

// done records that the write has returned.
func (s *stall) done() {
	if s.after <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing = false
}

func (s *stall) fired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	if !s.writing || s.ended {
		return
	}
	if rest := time.Until(s.until); rest > 0 {
		s.armed = true
		s.timer.Reset(rest)
		return
	}
	s.cut()
	// Again, in case other code moves the deadline before the write has ended.
	s.armed = true
	s.timer.Reset(time.Second)
}

// end stops the timer for good: the connection is closed or hijacked.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
