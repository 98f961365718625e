// Package conntest checks that an implementation of conn.Link keeps the contract of
// package conn, as golang.org/x/net/nettest does for net.Conn.
package conntest

// It knows conn's contract, and of the engines how they open links (OnLoop, OnGoroutine): a package
// calls Test from its own tests, with a function that does. It also has a Layer for
// tests, with its client's side. Only tests import it.
