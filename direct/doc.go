// Package direct lets a handler respond straight from the server's buffers,
// without an *http.Request and an http.ResponseWriter:
//
//	hello := direct.HandlerFunc(func(x *direct.Exchange) {
//		x.WriteString("hello, " + string(x.PathValue("name")) + "\n")
//	})
//
// A [Handler] is an http.Handler and works on every server. chert calls
// ServeDirect where it can, which is the fast path and saves about a third of
// the work of a small response, and otherwise ServeHTTP, which is the ordinary
// path. Both give the same bytes.
//
// Use it for what is requested very often and served from memory: fixed
// responses, counters, cached pages. [NewResponse] and [Health] return such
// handlers. A direct handler must not wait for anything: meanwhile its event
// loop serves no other client. chert notices one that waits after a millisecond
// or two, and then runs it as a plain handler for a while.
//
// A response is kept until its client has accepted it: over HTTP/2 those of up to 250 requests
// of a connection, for WriteStallTimeout if the client accepts nothing. Send what is large by
// SendFile.
//
// Middleware for both paths is written with package filter. Package direct/wire
// has what servers and routers need of an exchange.
package direct

// The package imports the standard library and direct/wire only, and must not
// depend on servers or connections. Any package may import it.
