// Package direct is a second, optional way for a handler to answer: straight
// from the server's buffers, without an *http.Request and an
// http.ResponseWriter. It is to http.Handler what io.WriterTo is to io.Copy.
//
// A [Handler] is an http.Handler and works on every server. chert looks for
// ServeDirect and calls that instead where it can, which saves about a third of
// the work of a small answer. Both ways give the same bytes.
//
// The package is a leaf: it imports the standard library only and knows
// nothing of servers or connections. Anything may import it.
//
// # When to use it
//
// For what is asked very often and is answered from memory: fixed answers,
// health checks, counters, cached pages. [NewResponse] and [Health] are ready
// made.
// A direct handler must not wait for anything: while it runs, its event loop
// serves nobody else. One that does wait is noticed after a millisecond or two
// and runs as a plain handler for a while then.
package direct
