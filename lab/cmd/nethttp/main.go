// Command nethttp is net/http as a server under test; package serve says what it serves.
package main

import (
	"net/http"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		s := &http.Server{Addr: addr, Handler: handler.New()}
		return s.ListenAndServe()
	})
}
