// Package bridge joins the HTTP/1 codec to net/http's types: it builds
// requests, response writers, bodies and contexts, and runs the handler.
//
// It is a conn.Proto over a conn.Transport, so it does not know whether an
// event loop or a goroutine drives the connection. It must not open sockets or
// know addresses to listen on; that is the root package's. Only the root may
// import it.
//
// # One request
//
//	Feed:  http1.Request.Parse -> newExchange (request, URL, context, response in one block)
//	Serve: handler(response, request) -> finish -> keep, close or linger
//
// Or, where the handler is a direct.Handler and the request is whole:
//
//	Feed:  http1.Request.Parse -> takeDirect (the request stays in the buffer)
//	Serve: handler.ServeDirect(exchange) -> sendDirect -> keep or close
//
// An exchange is not reused, but with Server.ReuseRequests: a handler may keep
// the request, its header and its context after it returns, as with net/http.
// The buffers under a response are pooled, so a response that is used after its
// handler has returned gives errors and touches no buffer.
package bridge
