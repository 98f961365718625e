// Package conntest checks that links keep the contract of package conn, whatever
// drives them, as golang.org/x/net/nettest does for a net.Conn.
//
// It knows conn's contract and no engine: the package that has one calls Test from
// its own tests, with a function that opens links. It also has a Layer for tests,
// with its client's side. Tests alone import it.
package conntest
