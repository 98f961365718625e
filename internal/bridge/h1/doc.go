// Package h1 implements HTTP/1 as a session on a connection: it parses requests,
// runs their handlers through package bridge, and frames the responses.
package h1

// It is a conn.Session over a conn.Link, so it does not know whether an event
// loop or a goroutine drives the connection. It must not open sockets or know
// addresses to listen on; that is the root package's job. Only the root may import
// it.
//
// One request:
//
//	Session.Data -> http1.Request.Parse -> newExchange (request, URL, context, response in one block)
//	servePlain   -> on the loop if it is likely to be quick, else conn.Elsewhere
//	serve        -> Link.Do -> handler -> Exchange.conclude -> exchange.Finish -> Link.Send
//
// Or, if the handler is a direct.Handler and the request is complete:
//
//	Session.Data -> http1.Request.Parse -> takeDirect (the request stays in the buffer)
//	serveDirect  -> handler -> sendDirect -> Link.Send
