// Command chertproxy is chert as a reverse proxy under test, with the defaults of package proxy.
package main

import (
	"crypto/tls"
	"flag"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/proxy"

	"github.com/chert-http/chert/lab/serve"
)

func main() {
	origin := flag.String("origin", "", "`address` of the server behind the proxy")
	keep := flag.Int("keep", 0, "how many connections to it are kept")
	serve.Main(func(addr string) error {
		up, err := proxy.NewPool(nil).Upstream(&proxy.UpstreamOptions{Name: "origin", Servers: []proxy.Server{{Addr: *origin}}, MaxIdle: *keep})
		if err != nil {
			return err
		}
		h, err := proxy.New(&proxy.Options{Upstream: up})
		if err != nil {
			return err
		}
		s := &chert.Server{Addr: addr, MaxConns: -1, Handler: h,
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
