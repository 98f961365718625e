package eventstream

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/eventstream"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// Streams are counted, as are the requests that have opened them, on a connection of
// their own and as one of many on a connection.
func TestStats(t *testing.T) {
	eachProtocol(t, func(t *testing.T, start func(http.Handler) *site) {
		x := start(handler(t, &eventstream.Options{OnOpen: func(*eventstream.Stream, *http.Request) {}}))
		if x.Engine == engines.NetHTTP {
			t.Skip("that server counts nothing")
		}
		open := func(n int64) {
			t.Helper()
			servertest.Eventually(t, "the streams are counted", func() bool { return x.Stats().Connections.EventStreams == n })
		}
		_, leave := x.open("")
		_, leaveLast := x.open("")
		open(2)
		c := x.Stats().Connections
		if own := c.Open; c.HTTP1+c.HTTP2 != own && c.HTTP1+c.HTTP2+2 != own {
			t.Errorf("%+v", c)
		}
		leave()
		open(1)
		leaveLast()
		open(0)
		servertest.Eventually(t, "the requests are counted", func() bool {
			s := x.Stats()
			n := uint64(0)
			for _, r := range s.Requests {
				if r.Class == 2 {
					n += r.N
				}
			}
			return n == 2 && s.Running == 0 && count(s) == 2
		})
	})
}

func count(s stats.Snapshot) (n uint64) {
	for _, r := range s.Requests {
		n += r.N
	}
	return n
}
