package h3

import (
	"unsafe"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

// Inspect does what that of conn.Conn does. Safe for concurrent use.
func (s *Session) Inspect() (out stats.Connection, since int64) {
	s.mu.Lock()
	since = s.since
	s.mu.Unlock()
	out = stats.Connection{
		Peer: s.peer.Load().RemoteAddr, Local: s.LocalAddr().String(), State: "active", Protocol: "HTTP/3", Loop: -1,
		TLS: conn.VersionName(s.qc.TLS().Version),
	}
	if since != 0 {
		out.State = "idle"
	}
	return out, since
}

// Running does what that of conn.Conn does. Safe for concurrent use.
func (s *Session) Running(before int64, f func(r stats.Request, since int64)) {
	for _, st := range s.all() {
		if x := st.inspect(before, f); x != nil {
			x.Inspect(&s.Client, before, f)
		}
	}
}

// inspect calls f if the stream is a request of the fast path that Running shows, or returns the exchange of another.
func (st *stream) inspect(before int64, f func(stats.Request, int64)) *bridge.Exchange {
	st.mu.Lock()
	defer st.mu.Unlock()
	if d := st.quick; d != nil && st.timing.Since < before {
		r := st.s.Shown(unsafe.Pointer(st), d.x.Method(), view.String(d.x.Target()))
		r.Protocol, r.Way, r.Stage = tally.HTTP3.String(), st.way, st.stage
		f(r, st.timing.Since)
	}
	if st.lasting != nil || st.tunnel != nil {
		return nil
	}
	return st.shown
}
