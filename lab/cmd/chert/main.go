// Command chert is chert as a server under test, with its zero configuration; package serve says what it serves.
package main

import (
	"github.com/chert-http/chert"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		s := &chert.Server{Addr: addr, MaxConns: -1, Handler: handler.New()}
		return s.ListenAndServe()
	})
}
