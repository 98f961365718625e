package h2

import (
	"crypto/tls"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
)

// This file reuses the memory of streams, and what requests share.

var pooled = sync.Pool{New: func() any { return new(stream) }}

// newExchange returns an exchange that is ready for Init. It may be used for another stream than the first.
func newExchange() *exchange {
	x := new(exchange)
	x.SetContext()
	return x
}

// recycleLocked returns st to the pool if nothing uses it any more. What the handler may keep, the
// exchange and the body, does not use it after the handler has returned. A stream is not
// reused if some goroutine waited for it or it was closed early: that goroutine, or the
// one that has closed it, may be late. Its exchange goes with it if no handler can have kept
// that: the request of a direct handler belongs to the server, any other to the handler.
func (st *stream) recycleLocked() {
	s, x := st.s, st.exchange
	switch {
	case s.over != nil || st.err != nil || st.waited() || st.lasting != nil:
		return
	case st.made():
		x = nil
	default:
		x.Time, x.Way = bridge.Timing{}, 0 // nothing else was used
	}
	*st = stream{exchange: x}
	if s.spare == nil {
		s.spare = st
	} else {
		pooled.Put(st)
	}
}

// shedLocked gives up what the handler, which has returned, has had of the request, while some of
// the answer is still to be sent: that may take as long as the client likes, and the fields
// may be larger than all that is left. The handler may have kept the exchange, so the stream
// gets another.
func (st *stream) shedLocked() {
	// A goroutine that ends the stream may use the exchange it has. That of a direct handler
	// has no fields: they are freed by release.
	if st.err != nil || st.s.over != nil || !st.made() {
		return
	}
	x := newExchange()
	x.Outline(&st.Exchange, &st.s.Client)
	st.exchange, st.trailer = x, nil
	st.unkeepLocked()
}

// unkeepLocked notes that the request's fields are not kept any more.
func (st *stream) unkeepLocked() {
	st.s.fields -= st.fields
	st.fields = 0
}

// shared is the Secured of a connection's requests. Below it nothing is kept, so that an idle connection is small.
// It keeps what was negotiated while a request is under way.
type shared struct {
	conn.Secured
	state atomic.Pointer[tls.ConnectionState]
}

func (s *shared) TLS() *tls.ConnectionState {
	state := s.state.Load()
	if state == nil {
		state = s.Secured.TLS()
		s.state.Store(state)
	}
	return state
}
