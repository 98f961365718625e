// Command chertfiles is chert's package static as a server under test, with its zero options.
package main

import (
	"crypto/tls"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/static"

	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Files(func(addr, dir string) error {
		h, err := static.New(dir, nil)
		if err != nil {
			return err
		}
		s := &chert.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}, MaxConns: -1, Handler: h}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
