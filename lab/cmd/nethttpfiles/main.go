// Command nethttpfiles is net/http's file server as a server under test.
package main

import (
	"net/http"

	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Files(func(addr, dir string) error {
		s := &http.Server{Addr: addr, Handler: http.FileServer(http.Dir(dir))}
		return s.ListenAndServe()
	})
}
