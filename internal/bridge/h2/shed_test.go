package h2_test

import (
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A request whose handler has left a part of its answer is still shown, as one that writes, and counts once when the
// connection ends.
func TestShedIsShown(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		srv := &chert.Server{Handler: hf(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, 1000)) })}
		c := serve(t, kind, srv).raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		c.headers(1, true, get...)
		c.send()
		for got := 0; got < 10; { // the rest waits
			if f, ok := c.next().(*http2.DataFrame); ok {
				got += len(f.Data())
			}
		}
		servertest.Eventually(t, "the request to be shown", func() bool {
			all := srv.RunningRequests(10)
			return len(all) == 1 && all[0].Stage == "write"
		})
		c.Close()
		servertest.Eventually(t, "the connection's end", func() bool { return engines.UpToDate(t, srv).Connections.Open == 0 })
		n := uint64(0)
		for _, r := range engines.UpToDate(t, srv).Requests {
			n += r.N
		}
		if n != 1 {
			t.Errorf("%d requests are counted", n)
		}
	})
}
