// Package tracing provides middleware that makes an OpenTelemetry span of each
// request:
//
//	traced := tracing.New(&tracing.Options{SampleRatio: 0.01})
//	srv := &chert.Server{Handler: traced(mux)}
//
// The span is the child of the client's, by the fields of W3C Trace Context, and the
// parent of what the handler does with the request's context. It is named after the
// route, "GET /users/{id}", and has the attributes of OpenTelemetry's semantic
// conventions for HTTP servers. Its events are the stages of the request: from its
// beginning to handler.start it waited, from handler.end to its end the client accepted
// the rest of the response. Of an event stream or a WebSocket it ends when that does.
//
// A request that is not sampled costs an allocation on the ordinary path, and none on the
// fast path. Like all middleware of this module it works on every server, and
// keeps the fast path and sendfile on chert's.
package tracing

// It is a module of its own, so that chert's does not need OpenTelemetry's. Its path is
// below middleware, whose response writer it shares. It must not depend on servers. Any
// package may import it.
