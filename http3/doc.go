// Package http3 lets a chert.Server speak HTTP/3 (RFC 9114) beside HTTP/1.1 and HTTP/2:
//
//	srv := &chert.Server{Addr: ":443", Handler: h, HTTP3: http3.New(nil)}
//	log.Fatal(srv.ListenAndServeTLS("cert.pem", "key.pem"))
//
// The server then receives QUIC on the UDP port of the same number, and tells clients of it by an
// Alt-Svc field. Handlers are the same: limits, hooks, statistics, event streams and WebSockets
// work as over HTTP/2. A QUIC connection costs more than one of TCP, in memory and, for small
// responses, in CPU time; see docs/http3.md.
package http3

// QUIC is github.com/quic-go/quic-go, which no other package may import.
