// Package wire is the side of direct exchanges that servers, routers and
// middleware see. Handlers use package direct and do not need it.
//
// A *direct.Exchange and the *wire.Exchange that its method Wire returns are the
// same exchange, and convert to each other at no cost:
//
//	func (l *log) ServeDirect(x *direct.Exchange) bool {
//		w := x.Wire()
//		defer func() { l.line(w.Method(), w.Target(), w.Status(), w.Size()) }()
//		return l.next.ServeDirect(x)
//	}
//
// A server makes an Exchange ready with Reset, calls the handler, and sends what
// Finish returns; an [Answer] with a [Watcher] also wants to be told what became of
// it. A router sets the pattern, the path values and, below a prefix, the path.
// Middleware keeps header fields and values for whatever answers, and may inspect
// and change the answer after its handler. Most middleware is written easier with
// package filter, which also serves net/http.
//
// A ServeDirect that returns false may leave what it has kept, the pattern and path
// values: the plain way does the same again, and a server may tell routes by the
// pattern. It sets the path and the address of the client back.
//
// The types for what servers report to logs and counters, [Delivery], [Refusal] and
// [Peer], are here too.
package wire
