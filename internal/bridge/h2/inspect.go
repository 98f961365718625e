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
		switch {
		case !owner && st.state <= stateDirect:
			// Other goroutines may read what was set before the handler began, on a goroutine.
		case owner && st.direct != nil && st.Time.Since < before:
			r := st.direct
			one := s.Shown(unsafe.Pointer(st), r.x.Method(), view.String(r.x.Target()))
			one.Protocol, one.Way, one.Stage = "HTTP/2.0", st.Way, "handler"
			f(one, st.Time.Since)
		case st.made() && st.tunnel == nil && st.lasting == nil:
			// One that was taken over is not shown, as over HTTP/1, where it has the connection. Without life:
			// handlers that hold it take mu.
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
	}
}
