// Command nethttpfiles is net/http's file server as a server under test.
package main

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Files(func(addr, dir string) error {
		s := &http.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}, NextProtos: []string{"h2", "http/1.1"}}, Handler: http.FileServer(http.Dir(dir))}
		if err := serve.AlsoTLS(net.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}
