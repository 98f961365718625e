package engines

import (
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Counting is a server that counts its connections.
type Counting struct {
	*Server
	Opened, Closed atomic.Int64
}

// StartCounting serves s and counts its connections.
func StartCounting(t testing.TB, s *chert.Server) *Counting {
	cs := new(Counting)
	cs.Count(s)
	cs.Server = Start(t, s)
	return cs
}

// Count makes s, which does not serve yet, count its connections.
func (cs *Counting) Count(s *chert.Server) {
	s.ConnState = func(_ net.Conn, st http.ConnState) {
		switch st {
		case http.StateNew:
			cs.Opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			cs.Closed.Add(1)
		}
	}
}

// Settled waits until all n connections have ended.
func (cs *Counting) Settled(n int64) {
	cs.T.Helper()
	servertest.Eventually(cs.T, "all connections have ended", func() bool {
		return cs.Opened.Load() >= n && cs.Closed.Load() == cs.Opened.Load()
	})
}

// Alive checks that the server still responds to a new client.
func (ts *Server) Alive() {
	ts.T.Helper()
	c := ts.Dial()
	c.Send("GET /alive HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	c.Status(200)
	c.Ended()
}
