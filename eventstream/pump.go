package eventstream

import (
	"slices"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/wsdeflate"
)

// pump sends what has been published, until there is nothing left, and drops the oldest events. Most members are at
// the same event, so what they get is gathered once.
func (t *Topic) pump() {
	sched.Point("pump", 0)
	t.mu.Lock()
	for t.sent < t.end() {
		all, first := t.all.Snapshot(), t.first
		b := batch{t: t}
		b.gather(t.log[t.sent-first:], t.sent)
		t.mu.Unlock()
		if t.windowEnd != b.from {
			t.window = wsdeflate.Window{}
		}
		for m := range all.All() {
			m.deliver(&b, first)
		}
		if b.zipped {
			t.window.Add(b.plain, windowBits)
			t.windowEnd = b.to
		}
		t.mu.Lock()
		t.sent = b.to
		t.unsent -= len(b.chunked)
		t.trim()
		t.progress.Broadcast()
	}
	t.pumping = false
	t.mu.Unlock()
}

// batch is some events in a row, from number from to before number to, as they are sent
// to all members that have those before.
type batch struct {
	t        *Topic
	from, to uint64
	plain    []byte
	chunked  []byte
	// alone and after are for compressed streams, and made when one needs them. after
	// refers to the topic's window.
	alone, after *piece
	zipped       bool // it was offered to a compressed stream
}

// gather makes b a batch of the first events of log, the first of which has number n.
func (b *batch) gather(log []entry, n uint64) {
	b.from, b.to = n, n+1
	b.plain, b.chunked, b.alone = log[0].bytes(false), log[0].bytes(true), log[0].z
	if len(log) == 1 || len(b.chunked)+len(log[1].b) > pieceSize {
		return
	}
	b.plain, b.chunked, b.alone = slices.Clone(b.plain), slices.Clone(b.chunked), nil
	for i := 1; i < len(log) && len(b.chunked)+len(log[i].b) <= pieceSize; i++ {
		b.plain = append(b.plain, log[i].bytes(false)...)
		b.chunked = append(b.chunked, log[i].bytes(true)...)
		b.to++
	}
}

// piece returns the batch for a compressed stream that is at its beginning.
func (b *batch) piece(m *subscription) *piece {
	z, w := m.s.z, useful(&b.t.window, b.plain)
	if w.Len() == 0 || z.from != m || int(z.run) < w.Len() {
		if b.alone == nil {
			b.alone = newPiece(b.plain, nil)
		}
		return b.alone
	}
	if b.after == nil {
		b.after = newPiece(b.plain, w)
	}
	return b.after
}

// open reports whether m gets events: a snapshot of a topic also has the members that have left it since, and
// those whose streams have ended. s.mu is held.
func (m *subscription) open() bool { return !m.s.ended && slices.Contains(m.s.subs, m) }

// deliver sends m the events before b.to that it has not received. first is the oldest event
// that there is.
func (m *subscription) deliver(b *batch, first uint64) {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.open() {
		return
	}
	if m.wait != nil {
		m.catchUp()
		return
	}
	if m.behind {
		if m.next < first && s.h.o.Slow == SlowClose && !m.anywhere {
			s.abort()
		}
		return
	}
	if m.next == b.from {
		switch m.offer(b) {
		case nil:
			m.next, m.anywhere = b.to, false
		case ErrSlow:
			m.behind = true
		}
	}
	if m.next < b.to && !m.behind {
		m.catchUp()
	}
}

// offer sends a batch, at the beginning of which m is. s.mu is held.
func (m *subscription) offer(b *batch) error {
	s := m.s
	switch {
	case s.z != nil:
		b.zipped = true
		p := b.piece(m)
		err := s.offer(p.bytes(s.chunked), p.size())
		if err == nil {
			s.z.add(p, m)
		}
		return err
	case s.chunked:
		return s.offer(b.chunked, len(b.plain))
	}
	return s.offer(b.plain, len(b.plain))
}

// zip compresses the events from number n on, as many as are sent at once, if that has
// not been done.
func (t *Topic) zip(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for size := 0; size < pieceSize && n >= t.first && n < t.end(); n++ {
		e := t.log[n-t.first]
		if size += len(e.b); e.z != nil {
			continue
		}
		t.mu.Unlock()
		z := newPiece(e.bytes(false), nil)
		t.mu.Lock()
		if n >= t.first && t.log[n-t.first].z == nil {
			t.log[n-t.first].z = z
			t.bytes += len(z.b)
		}
	}
}

// catchUp sends what the topic has for m, as far as there is room. s.mu is held.
func (m *subscription) catchUp() {
	s, t := m.s, m.t
	if m.wait != nil && !m.settled() {
		return
	}
	var b *buf.Buf
	defer func() { b.Drop() }()
	for !s.ended {
		if m.missed && t.gap != nil {
			if err := s.own(t.gap); err != nil {
				m.behind = err == ErrSlow
				return
			}
		}
		m.missed = false
		var z zipped // after what is sent next
		if s.z != nil {
			t.zip(m.next)
			z = *s.z
		}
		t.mu.Lock()
		if m.next < t.first {
			if s.h.o.Slow == SlowClose && !m.anywhere {
				t.mu.Unlock()
				s.abort()
				return
			}
			m.missed = !m.anywhere
			if m.next = t.first; s.z != nil {
				s.z.from, z.from = nil, nil
			}
			if m.missed {
				t.mu.Unlock()
				continue
			}
		}
		log := t.log[m.next-t.first:]
		if len(log) == 0 {
			m.behind = false
			t.mu.Unlock()
			return
		}
		var n uint64
		var body int
		b, n, body = m.gather(b, log, &z)
		t.mu.Unlock()
		if n == 0 {
			continue
		}
		if err := s.offer(b.B, body); err != nil {
			m.behind = m.behind || err == ErrSlow
			return
		}
		m.next += n
		m.anywhere = false
		if s.z != nil {
			*s.z = z
		}
	}
}

// gather makes b the first n events of log, as many as are sent at once, and returns the size of the
// body that they are. z is what s.z is to be when they are sent. s.mu and t.mu are held.
func (m *subscription) gather(b *buf.Buf, log []entry, z *zipped) (_ *buf.Buf, n uint64, body int) {
	s := m.s
	if b == nil {
		b = buf.Get(pieceSize)
	}
	b.B = b.B[:0]
	for i := range log {
		f := &log[i].frame
		if s.z != nil {
			if log[i].z == nil { // it has just been published, or others dropped
				break
			}
			f = &log[i].z.frame
		}
		p := f.bytes(s.chunked)
		if n > 0 && len(b.B)+len(p) > pieceSize {
			break
		}
		if s.z != nil {
			z.add(log[i].z, m)
		}
		b = b.Grow(len(p))
		b.B = append(b.B, p...)
		body += f.size()
		n++
	}
	return b, n, body
}
