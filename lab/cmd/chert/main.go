// Command chert is chert as a server under test, with its zero configuration; package serve says what it serves.
package main

import (
	"crypto/tls"

	"github.com/chert-http/chert"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		s := &chert.Server{Addr: addr, MaxConns: -1, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}}
		s.Handler = serve.TLS(handler.New(), s.Listen, s.ServeTLS)
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
