//go:build !nochert

// The tag nochert leaves chert out, so that rivals can be measured where chert does not build.

package main

import (
	"net/http"

	"github.com/chert-http/chert"
)

func init() {
	servers["chert"] = func(addr string, h http.Handler) error {
		s := &chert.Server{Addr: addr, Handler: h}
		return s.ListenAndServe()
	}
}
