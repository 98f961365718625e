package h3

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync/atomic"

	"github.com/chert-http/chert/internal/tally"
)

// This file is requests of a connection whose TLS handshake has not ended (RFC 8470). Until then
// they may be a replay of another connection's. Those that change nothing run, and the others wait
// for the handshake's end, without a goroutine.

// shaking is the state of a session that has begun before its handshake had ended.
type shaking struct {
	state atomic.Pointer[tls.ConnectionState] // nil before that end
	// held wait for it, or for the connection's; then ended is set. Both are guarded by Session.mu.
	held  []*stream
	ended bool
}

// Early has the session expect Shaken: its handshake has not ended, but for the client's part. It
// is called before Serve.
func (s *Session) Early() { s.shaking = new(shaking) }

// Shaken tells an Early session that the handshake has ended, and what it has negotiated.
func (s *Session) Shaken(state *tls.ConnectionState) {
	s.shaking.state.Store(state)
	s.releaseHeld()
}

// releaseHeld has the requests served that have waited.
func (s *Session) releaseHeld() {
	e := s.shaking
	s.mu.Lock()
	held := e.held
	e.held, e.ended = nil, true
	s.mu.Unlock()
	for _, st := range held {
		s.cfg.pool.Run((*waited)(st))
	}
}

// mayBeEarly reports whether a request may run before the handshake has ended. RFC 8470 section 4
// permits clients no others than those of safe methods (RFC 9110 section 9.2.1). end: it has no body.
func mayBeEarly(r *request, end bool) bool {
	f, t := &r.fields.Fields, &r.t
	switch string(f.Get(t.Method)) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		// With another scheme its handler would not see that it is early: http.Request has no TLS then.
		return end && string(f.Get(t.Scheme)) == "https"
	}
	return false
}

// settleEarly decides whether the request runs early. It reports false if it has to wait.
func (st *stream) settleEarly(r *request, end bool) (runs bool) {
	if st.s.shaking.state.Load() != nil {
		return true
	}
	st.early = mayBeEarly(r, end)
	if st.early {
		st.s.tally.Add(false, tally.Early, 1)
	}
	return st.early
}

// hold leaves the stream until the handshake has ended, and reports whether the caller is still the
// leader.
func (st *stream) hold(end bool) (leads bool) {
	s, e := st.s, st.s.shaking
	leads = st.endLead()
	st.memo, st.whole, st.timing.Queued = nil, end, true
	s.mu.Lock()
	waits := !e.ended
	if waits {
		e.held = append(e.held, st)
	}
	s.mu.Unlock()
	if !waits {
		s.cfg.pool.Run((*waited)(st))
	}
	return leads
}

// waited is a stream as a loop.Task: to be served after hold.
type waited stream

func (h *waited) Run() {
	st := (*stream)(h)
	if st.s.shaking.state.Load() == nil || st.str.Context().Err() != nil {
		st.refuse(st.request, context.Canceled) // the client has gone, or does not want it any more
		return
	}
	st.proceed(st.request, st.whole)
}

// setTLS gives the handler's request what the handshake had negotiated when it was let run.
func (st *stream) setTLS() {
	if e := st.s.shaking; e != nil && !st.early && st.Req.TLS != nil {
		st.Req.TLS = e.state.Load()
	}
}
