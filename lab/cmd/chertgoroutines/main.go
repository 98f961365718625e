// Command chertgoroutines is chert as a server under test, with a goroutine for each connection; package serve says what
// it serves.
package main

import (
	"crypto/tls"

	"github.com/chert-http/chert"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		s := &chert.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}, MaxConns: -1, Handler: handler.New(), Engine: chert.EngineGoroutines}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
