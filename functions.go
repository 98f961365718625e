package chert

import (
	"net"
	"net/http"
)

// This file has net/http's package functions for serving: each calls the method
// of that name on a Server with defaults. A nil handler means
// http.DefaultServeMux.

// ListenAndServe listens on the TCP address addr and serves its connections
// with handler. It always returns a non-nil error.
func ListenAndServe(addr string, handler http.Handler) error {
	s := &Server{Addr: addr, Handler: handler}
	return s.ListenAndServe()
}

// ListenAndServeTLS is ListenAndServe with TLS; see [Server.ServeTLS].
func ListenAndServeTLS(addr, certFile, keyFile string, handler http.Handler) error {
	s := &Server{Addr: addr, Handler: handler}
	return s.ListenAndServeTLS(certFile, keyFile)
}

// Serve serves handler on the connections of l; see [Server.Serve].
func Serve(l net.Listener, handler http.Handler) error {
	s := &Server{Handler: handler}
	return s.Serve(l)
}

// ServeTLS serves handler on TLS connections of l; see [Server.ServeTLS].
func ServeTLS(l net.Listener, handler http.Handler, certFile, keyFile string) error {
	s := &Server{Handler: handler}
	return s.ServeTLS(l, certFile, keyFile)
}
