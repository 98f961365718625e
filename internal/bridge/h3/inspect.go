package h3

import (
	"github.com/chert-http/chert/internal/conn"
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
		st.mu.Lock()
		x, lasts := st.shown, st.lasting != nil || st.tunnel != nil
		st.mu.Unlock()
		if x != nil && !lasts {
			x.Inspect(&s.Client, before, f)
		}
	}
}
