// Package h1 is HTTP/1 as a session: it parses what a connection has sent, runs
// handlers by package bridge, and frames their answers.
package h1

// It is a conn.Session over a conn.Link, so it does not know whether an event
// loop or a goroutine drives the connection. It must not open sockets or know
// addresses to listen on; that is the root package's. Only the root may import
// it.
//
// One request:
//
//	Session.Data -> http1.Request.Parse -> newExchange (request, URL, context, response in one block)
//	start        -> on the loop if it is likely to be quick, else Link.Go
//	serve        -> handler -> Exchange.finish -> exchange.Finish -> Link.Send
//
// Or, where the handler is a direct.Handler and the request is whole:
//
//	Session.Data -> http1.Request.Parse -> takeDirect (the request stays in the buffer)
//	serveDirect  -> handler -> sendDirect -> Link.Send
