package h2

import (
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/priority"
)

// This file says which stream sends first (RFC 9218 section 10).

// order is what a session knows of the order of its streams.
type order struct {
	// known: the client has shown that it knows of priorities. All streams of one that
	// has not take turns: the default of the RFC, one after the other, would have a
	// response that never ends hold up all later ones.
	known bool
	turn  uint64 // DATA frames that were sent
	// early are updates of streams that have not begun, the oldest overwritten first.
	early   [16]earlyPriority
	earlyAt int
}

type earlyPriority struct {
	id uint32
	p  priority.Priority
}

// onPriority is PRIORITY_UPDATE (RFC 9218 section 7.1).
func (s *Session) onPriority(h http2.Header, p []byte) error {
	id, priority, err := h.PriorityUpdate(p)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.order
	o.known = true
	switch st := s.streamLocked(id); {
	case st != nil:
		st.priority = priority
		s.wakeNextLocked()
	case id > s.lastID:
		o.early[o.earlyAt%len(o.early)] = earlyPriority{id, priority}
		o.earlyAt++
	}
	return nil
}

// priorityOfLocked returns the priority of a stream that begins, with the given priority
// field. An update that has overtaken the request is newer.
func (s *Session) priorityOfLocked(id uint32, field []byte) priority.Priority {
	p := priority.Default
	if len(field) > 0 {
		s.order.known = true
		p = priority.Parse(field)
	}
	for i := range s.order.early {
		if e := &s.order.early[i]; e.id == id { // of several the last is the newest, nearly always
			p, e.id = e.p, 0
		}
	}
	return p
}

// beforeLocked reports whether a sends before b. Of the same urgency, non-incremental
// responses go first, in the order of their requests; others take turns.
func (w *sender) beforeLocked(a, b *stream) bool {
	if a.heading != b.heading {
		return a.heading // priorities are of DATA
	}
	if w.order.known {
		switch p, q := a.priority, b.priority; {
		case p.Urgency != q.Urgency:
			return p.Urgency < q.Urgency
		case p.Incremental != q.Incremental:
			return q.Incremental
		case !p.Incremental:
			return a.id < b.id
		}
	}
	return a.turn < b.turn
}

// bestLocked returns the stream whose turn it is to send, of those that windows let; nil for none.
func (w *sender) bestLocked() (best *stream) {
	for _, st := range w.unsent {
		if (st.heading || st.sendWindow > 0 && w.sendWindow > 0) && (best == nil || w.beforeLocked(st, best)) {
			best = st
		}
	}
	return best
}

// behindLocked reports whether another that is ready goes before st.
func (w *sender) behindLocked(st *stream) bool {
	b := w.bestLocked()
	return b != nil && b != st && w.beforeLocked(b, st)
}

// wakeNextLocked wakes the stream whose turn it is to send, if there is room. It is called after
// sending, and after changes of windows.
func (s *Session) wakeNextLocked() {
	if s.full || s.sending && s.outFullLocked() {
		return // the goroutine that sends calls this when it has
	}
	switch st := s.bestLocked(); {
	case st == nil:
	case st.rest == nil:
		st.wakeLocked()
	case !s.inData.Load():
		s.settleSoonLocked()
	}
}

// settleSoonLocked has the owner send what is ready by then, together with what others have, and feed
// the streams in fed.
func (s *Session) settleSoonLocked() {
	if s.settling || s.over != nil {
		return
	}
	s.settling = true
	s.Link.Post(func() conn.Next {
		s.mu.Lock()
		s.settling = false
		s.mu.Unlock()
		return s.after(true)
	})
}

func (s *Session) settleSoon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settleSoonLocked()
}
