package main

import "net/http"

func init() {
	servers["nethttp"] = func(addr string, h http.Handler) error {
		s := &http.Server{Addr: addr, Handler: h}
		return s.ListenAndServe()
	}
}
