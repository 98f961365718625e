// Package direct lets a handler answer straight from the server's buffers, without
// an *http.Request and an http.ResponseWriter:
//
//	hello := direct.HandlerFunc(func(x *direct.Exchange) {
//		x.WriteString("hello, " + string(x.PathValue("name")) + "\n")
//	})
//
// A [Handler] is an http.Handler and works on every server. chert calls ServeDirect
// where it can, which saves about a third of the work of a small answer. Both ways
// give the same bytes.
//
// Use it for what is requested very often and answered from memory: fixed answers,
// counters, cached pages. [NewResponse] and [Health] are ready made. A direct handler
// must not wait for anything: meanwhile its event loop serves no other client. One
// that does is noticed after a millisecond or two, and runs as a plain handler for a
// while then.
//
// Middleware for both ways is written with package filter. What servers and routers
// need of an exchange is in package direct/wire.
package direct

// The package imports the standard library and direct/wire only, and knows nothing
// of servers or connections. Anything may import it.
