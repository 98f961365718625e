// Package conntest checks that an implementation of conn.Link keeps the contract of
// package conn, as golang.org/x/net/nettest does for net.Conn.
package conntest

// It knows conn's contract and no engine: a package that implements one calls Test
// from its own tests, with a function that opens links. It also has a Layer for
// tests, with its client's side. Only tests import it.
