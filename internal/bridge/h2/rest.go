package h2

import (
	"time"

	"github.com/chert-http/chert/internal/buf"
)

// This file is what handlers leave of their answers for the owner to send.

// rest is what of an answer the client takes later, for which no goroutine waits: the handler
// has returned, or the answer outlives it. It is made when a stream joins Session.unsent.
type rest struct {
	bytes    []byte   // never empty
	buf      *buf.Buf // whose bytes they are; nil for others'
	release  func()   // when they are not needed any more; nil for nothing
	tail     *buf.Buf // the trailers' block, which follows; nil if there are none
	patience patience // with the client
	since    int64    // when the handler had returned; 0 if it has not, or the answer outlives it
}

// len returns how many bytes are left; r may be nil.
func (r *rest) len() int {
	if r == nil {
		return 0
	}
	return len(r.bytes)
}

// keepRestLocked adds a and b, which are not empty, to what the client takes later.
func (st *stream) keepRestLocked(a, b []byte) {
	r := st.rest
	if r == nil {
		r = new(rest)
		st.s.pendLocked(st, r)
	} else {
		r.buf.B = r.bytes
	}
	r.buf = r.buf.Room(len(a) + len(b))
	r.buf.B = append(append(r.buf.B, a...), b...)
	r.bytes = r.buf.B
}

// sendTurn is how many bytes of DATA the owner sends before it reads the clock.
const sendTurn = 64 << 10

// turn is what the owner sends of answers whose handlers have returned, before others have
// theirs.
type turn struct {
	began  int64 // see Session.spent
	sent   int64 // Session.sentAll when it began, or the time was read
	gather bool  // more comes soon: only a full out is passed to the Link
	over   bool
}

// pumpLocked makes frames of the answers whose handlers have returned, for a turn: a client may take
// them as fast as they come. It is the owner's.
func (s *Session) pumpLocked(t *turn) {
	for !t.over && !s.lost {
		if s.sentAll-t.sent >= sendTurn {
			if t.sent = s.sentAll; s.spent(&t.began) {
				t.over = true
				s.settleSoonLocked()
				return
			}
		}
		st := s.bestLocked()
		if st == nil || st.rest == nil {
			s.wakeNextLocked() // it may have waited for one that has sent its rest now
			return
		}
		n := s.allowLocked(st, st.rest.len())
		if n == 0 {
			s.starved = s.sending
			return
		}
		s.pumpOneLocked(st, n)
	}
}

// pumpOneLocked sends n bytes of the rest of st's answer.
func (s *Session) pumpOneLocked(st *stream, n int) {
	t, r := st.tunnel, st.rest
	end := n == len(r.bytes) && (t == nil || t.ending) && !st.lasting.open()
	r.bytes, _ = s.putDataLocked(st, r.bytes, nil, n, end && r.tail == nil)
	if t != nil {
		t.sentLocked()
	}
	if len(r.bytes) > 0 {
		return
	}
	tail := r.tail
	r.tail = nil
	s.unsent = without(s.unsent, st)
	st.dropRestLocked()
	if !end {
		st.lasting.settledLocked()
		return
	}
	if r.since != 0 {
		s.Link.Tally().Write(s.loops && s.Link.OnLoop(), time.Duration(max(s.Link.Now()-r.since, 1)))
	}
	st.endLocked(tail, tail == nil)
}

// dropRestLocked frees what was to be sent.
func (st *stream) dropRestLocked() {
	r := st.rest
	if r == nil {
		return
	}
	st.rest = nil
	if n := len(r.bytes); n > 0 {
		st.lostLocked(n)
	}
	r.buf.Drop()
	r.tail.Drop()
	if r.release != nil {
		st.s.freed = append(st.s.freed, r.release)
	}
}

// lostLocked notes that n bytes of an answer that was passed on will not be sent.
func (st *stream) lostLocked(n int) {
	if l := st.lasting; l == nil {
		st.Lost(n)
	} else if !l.closed { // otherwise close has counted it
		l.Given(-n)
		l.whole = false // END_STREAM follows what is lost
	}
}
