package h2

import (
	"sync"

	"github.com/chert-http/chert/internal/bridge"
)

// This file reuses the memory of streams.

var pooled = sync.Pool{New: func() any { return new(stream) }}

// newStream returns a stream that is empty but for its exchange. mu is held.
func (s *Session) newStream() *stream {
	st := s.spare
	if s.spare = nil; st == nil {
		st = pooled.Get().(*stream)
	}
	if st.exchange == nil {
		st.exchange = new(exchange)
	}
	return st
}

// reusable reports whether nothing uses st any more. What the handler may keep, the
// exchange and the body, does not use it after the handler has returned. A stream is not
// reused if some goroutine waited for it or it was closed early: that goroutine, or the
// one that has closed it, may be late. mu is held.
func (st *stream) reusable() bool {
	s := st.s
	return s.over == nil && st.err == nil && !st.waited && st.lasting == nil
}

// recycle returns st to the pool, and with it its exchange if no handler can have kept
// that: the request of a direct handler belongs to the server, any other to the handler.
// mu is held.
func (st *stream) recycle() {
	s, x := st.s, st.exchange
	if st.made() {
		x = nil
	} else {
		x.Time, x.Way = bridge.Timing{}, 0 // nothing else was used
	}
	*st = stream{exchange: x}
	if s.spare == nil {
		s.spare = st
	} else {
		pooled.Put(st)
	}
}

// shed gives up what the handler, which has returned, has had of the request, while some of
// the answer is still to be sent: that may take as long as the client likes, and the fields
// may be larger than all that is left. The handler may have kept the exchange, so the stream
// gets another. mu is held.
func (st *stream) shed() {
	// A goroutine that ends the stream may use the exchange it has. That of a direct handler
	// has no fields: they are freed by release.
	if st.err != nil || st.s.over != nil || !st.made() {
		return
	}
	x := new(exchange)
	x.Outline(&st.Exchange, &st.s.Client)
	st.exchange, st.trailer = x, nil
	st.unkeep()
}

// unkeep notes that the request's fields are not kept any more. mu is held.
func (st *stream) unkeep() {
	st.s.fields -= st.fields
	st.fields = 0
}

// giveSpare gives the spare stream up, while no request is under way. mu is held.
func (s *Session) giveSpare() {
	if s.spare != nil {
		pooled.Put(s.spare)
		s.spare = nil
	}
}
