// Command chertpage is chert as a server under test, with its zero configuration and the page of package admin, served
// as "chert serve --admin" does it: at the address of the flag --page.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/admin"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	page := flag.String("page", "127.0.0.1:9080", "where the page is served")
	serve.Main(func(addr string) error {
		s := &chert.Server{Addr: addr, MaxConns: -1, Handler: handler.New()}
		p := &chert.Server{Addr: *page, Engine: chert.EngineGoroutines, MaxConns: 256, Handler: admin.New(s, nil)}
		go func() {
			fmt.Fprintln(os.Stderr, p.ListenAndServe())
			os.Exit(1)
		}()
		return s.ListenAndServe()
	})
}
