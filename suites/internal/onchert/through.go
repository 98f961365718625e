//go:build go1.26

package onchert

import (
	"log/slog"
	"net"
	"net/http"

	"github.com/chert-http/chert/proxy"
)

func init() { through = Through }

var pool = proxy.NewPool(&proxy.PoolOptions{Logger: slog.New(slog.DiscardHandler)})

// Through returns a proxy to a server of net/http that has h, over HTTP/2. The server ends with
// the program.
func Through(h http.Handler) http.Handler {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("onchert: " + err.Error())
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(l)
	u, err := pool.Upstream(&proxy.UpstreamOptions{Name: "suite", Servers: []proxy.Server{{Addr: l.Addr().String()}},
		Protocol: proxy.ProtocolHTTP2, Health: proxy.Health{Off: true}})
	if err != nil {
		panic("onchert: " + err.Error())
	}
	p, err := proxy.New(&proxy.Options{Upstream: u, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic("onchert: " + err.Error())
	}
	return p
}
