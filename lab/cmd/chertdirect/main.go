// Command chertdirect is chert as a server under test, where "/" has a direct handler; package serve says what it
// serves.
package main

import (
	"crypto/tls"
	"net/http"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
	"github.com/chert-http/chert/lab/work"
)

func main() {
	serve.Main(func(addr string) error {
		s := &chert.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}, MaxConns: -1, Handler: root{
			Handler: handler.New(),
			hello:   direct.NewResponse(http.StatusOK, http.Header{"Content-Type": {"text/plain"}}, []byte(work.Hello)),
		}}
		if err := serve.AlsoTLS(s.Listen, s.ServeTLS); err != nil {
			return err
		}
		return s.ListenAndServe()
	})
}

// root answers "/" directly and leaves the rest to the plain handler.
type root struct {
	http.Handler
	hello *direct.Response
}

// ServeDirect implements direct.Handler.
func (h root) ServeDirect(x *direct.Exchange) bool {
	if x.Method() != http.MethodGet || string(x.Path()) != "/" {
		return false
	}
	x.Send(h.hello)
	return true
}
