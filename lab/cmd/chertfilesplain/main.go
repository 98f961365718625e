// Command chertfilesplain is chertfiles with a plain handler around package static's, as any middleware would be: chert
// then cannot use its direct.Handler.
package main

import (
	"crypto/tls"
	"net/http"

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
		s := &chert.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}, MaxConns: -1, Handler: http.HandlerFunc(h.ServeHTTP)}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
