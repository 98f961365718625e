// Package wire gives servers, routers and middleware their side of a direct
// exchange. Handlers use package direct and do not need it.
//
// A *direct.Exchange and the *wire.Exchange that its method Wire returns are
// the same exchange, and convert to each other at no cost:
//
//	func (l *log) ServeDirect(x *direct.Exchange) bool {
//		w := x.Wire()
//		defer func() { l.line(w.Method(), w.Target(), w.Status(), w.Size()) }()
//		return l.next.ServeDirect(x)
//	}
//
// A server makes an Exchange ready with Reset, calls the handler, sends what
// Finish returns, and notifies the [Watcher] of its delivery. A router sets the
// pattern, the path values and, below a prefix, the path. Middleware keeps header
// fields and values for any response, and may change the response after its
// handler; package filter is an easier way to write most of it.
//
// A ServeDirect that returns false resets the path and the client's address. What
// it has kept, the pattern and the path values may stay: the ordinary path does the
// same again, and a server may distinguish routes by the pattern.
//
// What is for servers, or for package proxy, is used by chert alone, and may change in
// every version.
package wire
