package proxy

import (
	"crypto/tls"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// counted counts the requests that are not forwarded on a loop.
type counted struct {
	*proxy.Handler
	others atomic.Int64
}

func (h *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.others.Add(1)
	h.Handler.ServeHTTP(w, r)
}

// late stands for a request whose body comes later than its head.
const late = "late"

// TestOnLoops says which requests are forwarded on a loop, without which the tests that compare both
// forms would compare one with itself.
func TestOnLoops(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("there are no loops")
	}
	nothing := proxy.Options{}
	_, roots := servertest.Certificate(t)
	for _, c := range []struct {
		name string
		o    proxy.Options
		up   proxy.UpstreamOptions
		in   string
		loop bool
	}{
		{"GET", nothing, proxy.UpstreamOptions{}, get, true},
		{"POST", nothing, proxy.UpstreamOptions{}, post("abc"), true},
		{"late", nothing, proxy.UpstreamOptions{}, late, true},
		{"long", nothing, proxy.UpstreamOptions{}, post(strings.Repeat("x", 100_000)), true},
		{"chunks", nothing, proxy.UpstreamOptions{}, servertest.PostChunks("/", servertest.Chunks("abc", 1)), true},
		{"prefix", proxy.Options{StripPrefix: "/api"}, proxy.UpstreamOptions{}, "GET /api/x HTTP/1.1\r\nHost: h\r\n\r\n", true},
		{"another prefix", proxy.Options{StripPrefix: "/api"}, proxy.UpstreamOptions{}, get, false},
		{"statuses", nothing, proxy.UpstreamOptions{Retry: proxy.Retry{Statuses: true}}, get, true},
		{"rewritten", proxy.Options{Rewrite: func(*proxy.Request) {}}, proxy.UpstreamOptions{}, get, false},
		{"modified", proxy.Options{ModifyResponse: func(*http.Response) error { return nil }}, proxy.UpstreamOptions{}, get, false},
		{"chosen", proxy.Options{Choose: func(*http.Request) *proxy.Upstream { return nil }}, proxy.UpstreamOptions{}, get, false},
		{"TLS", nothing, proxy.UpstreamOptions{TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}}, get, true},
		{"TLS with a cache of the program", nothing, proxy.UpstreamOptions{TLS: &tls.Config{RootCAs: roots, ServerName: "example.com",
			ClientSessionCache: struct{ tls.ClientSessionCache }{tls.NewLRUClientSessionCache(1)}}}, get, false},
		{"upgrade", nothing, proxy.UpstreamOptions{}, upgrade, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := startOver(t, c.up.TLS != nil, each(ok))
			s := &setup{o: c.o, up: c.up}
			h := &counted{Handler: s.handler(t, o.addr()).(*proxy.Handler)}
			// Inline, so that a handler that a busy machine has stopped in its turn stays on the loop.
			ts := engines.Start(t, &chert.Server{Engine: chert.EngineLoops, Placement: chert.PlacementInline, Handler: h})
			client := ts.Dial()
			for range 3 {
				in := c.in
				if in == late { // the body comes when its head has been seen
					in = "xpected"
					client.Send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 7\r\n\r\n")
					client.Want("HTTP/1.1 100 Continue\r\n\r\n")
				}
				client.SendAside(in)
				client.Response("GET")
			}
			want := int64(3)
			if c.loop {
				want = 0
			}
			if n := h.others.Load(); n != want {
				t.Errorf("%d of 3 requests were not forwarded on a loop, want %d", n, want)
			}
		})
	}
}
