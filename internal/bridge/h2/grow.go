package h2

import (
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/sys"
)

// This file makes the windows of uploads larger where the delay of the link needs
// that. A sample is what handlers have read of bodies between a PING and its answer.
// If that is most of the window, the client may have had to wait for it; if a larger
// window then brings nothing, it was not that. Bytes that no handler has read do not count,
// so that a client cannot make the server keep more by sending more.

type growth struct {
	window uint32 // of each stream, and of the connection at least; at first 0
	read   int64  // in the sample, or since the last one
	began  int64  // the sample, of sys.Nanotime; 0 if there is none
	best   float64
}

// windowNowLocked is what each stream may have received and not read.
func (s *Session) windowNowLocked() uint32 { return max(s.growth.window, s.cfg.StreamWindow) }

// sampleLocked records that n bytes of st's body were read, if that goes on.
func (st *stream) sampleLocked(n int) {
	if st.closed() || st.remoteClosed {
		return
	}
	s := st.s
	g := &s.growth
	g.read += int64(n)
	if g.began != 0 || s.windowNowLocked() >= s.cfg.MaxWindow || g.read < int64(s.windowNowLocked()/4) {
		return
	}
	g.began, g.read = sys.Nanotime(), 0
	s.pingLocked(false, []byte(pingWindow))
}

// sampled is called with the answer to pingWindow.
func (s *Session) sampled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.growth
	if g.began == 0 {
		return
	}
	read, rate := g.read, float64(g.read)/float64(max(sys.Nanotime()-g.began, 1))
	g.began, g.read = 0, 0
	window := s.windowNowLocked()
	if read < int64(window)/3*2 || rate < g.best*1.25 {
		return
	}
	g.best = rate
	before := max(s.cfg.ConnWindow, window)
	g.window = min(2*window, s.cfg.MaxWindow)
	if more := max(s.cfg.ConnWindow, g.window) - before; more > 0 {
		s.inflow.Avail += http2.Window(more)
		s.openWindowLocked(0, more)
	}
}
