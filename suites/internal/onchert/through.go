//go:build go1.26

package onchert

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/chert-http/chert/proxy"
)

func init() { through = Through }

var pool = proxy.NewPool(&proxy.PoolOptions{Logger: slog.New(slog.DiscardHandler)})

// Through returns a proxy to a server of net/http that has h, over the version of HTTP that the
// client speaks. The server ends with the program.
func Through(h http.Handler) http.Handler {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("onchert: " + err.Error())
	}
	s := &http.Server{Handler: forwarded(h), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	go s.Serve(l)
	one, two := upstream(l, proxy.ProtocolHTTP1), upstream(l, proxy.ProtocolHTTP2)
	p, err := proxy.New(&proxy.Options{Upstream: one, Logger: slog.New(slog.DiscardHandler),
		Choose: func(r *http.Request) *proxy.Upstream {
			if r.ProtoMajor == 2 {
				return two
			}
			return one
		}})
	if err != nil {
		panic("onchert: " + err.Error())
	}
	behind.Store(p, h)
	return p
}

// forwarded gives requests the TLS of the proxy's client, as X-Forwarded-Proto and Host tell it.
func forwarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Forwarded-Proto") == "https" {
			name, _, err := net.SplitHostPort(r.Host)
			if err != nil {
				name = r.Host
			}
			r.TLS = &tls.ConnectionState{ServerName: name}
		}
		if h == nil {
			h = http.DefaultServeMux
		}
		h.ServeHTTP(w, r)
	})
}

// behind has the handlers by their proxies.
var behind sync.Map

// Behind returns the handler that Through has returned p for.
func Behind(p http.Handler) http.Handler {
	h, _ := behind.Load(p)
	return h.(http.Handler)
}

func upstream(l net.Listener, version proxy.Protocol) *proxy.Upstream {
	u, err := pool.Upstream(&proxy.UpstreamOptions{Name: "suite", Servers: []proxy.Server{{Addr: l.Addr().String()}},
		Protocol: version, Health: proxy.Health{Off: true}})
	if err != nil {
		panic("onchert: " + err.Error())
	}
	return u
}
