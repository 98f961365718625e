// Command nethttp is net/http as a server under test; package serve says what it serves.
package main

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		s := &http.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}, NextProtos: []string{"h2", "http/1.1"}}}
		s.Handler = serve.TLS(handler.New(), net.Listen, s.ServeTLS)
		if err := serve.AlsoTLS(net.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
