package h2

import (
	"unsafe"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

var _ conn.Inspected = (*Session)(nil)

// Speaks implements conn.Inspected.
func (s *Session) Speaks() string { return "HTTP/2" }

// Running implements conn.Inspected.
func (s *Session) Running(owner bool, before int64, f func(r stats.Request, since int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		// Other goroutines may read what was set before the handler began, on a goroutine.
		if owner || st.state > stateDirect {
			st.inspect(owner, before, f)
		}
	}
}

// inspect calls f if the stream is a request in progress. mu is held.
func (st *stream) inspect(owner bool, before int64, f func(stats.Request, int64)) {
	s := st.s
	if r := st.direct; owner && r != nil && st.Time.Since < before {
		one := s.Shown(unsafe.Pointer(st), r.x.Method(), view.String(r.x.Target()))
		one.Protocol, one.Way, one.Stage = "HTTP/2.0", st.Way, "handler"
		f(one, st.Time.Since)
		return
	}
	if !st.made() || st.tunnel != nil || st.lasting != nil {
		return // as over HTTP/1, where it has the connection
	}
	// Without life: handlers that hold it take mu.
	st.Describe(before, func(r stats.Request, since int64) {
		switch {
		case st.state < stateDirect:
			r.Stage = "waiting" // for its body, to be served at once
		case st.returned():
			r.Stage = "write"
		}
		f(r, since)
	})
}
