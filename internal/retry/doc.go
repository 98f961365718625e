// Package retry decides whether a request to an upstream server that failed is tried again, and on what connection.
//
// Decide is the table: a pure function of what happened and of what the request permits. Tries applies it to one
// request, with the limits that the table does not know: two extra tries, no server twice, and the Budget of the
// upstream. An IdleLimit learns how long an upstream keeps idle connections, so that fewer requests meet one that is
// being closed.
package retry

// RFC 9110 section 9.2.2: "A proxy MUST NOT automatically retry non-idempotent requests." So one is sent again only if
// no server can have acted on it: nothing of it was sent, or the server says so by a GOAWAY or REFUSED_STREAM (RFC 9113
// section 8.7). An idempotent one is sent again too if a server may have acted on it, as long as no byte of a response
// has come. nginx repeated POST until 1.9.13.
//
// The budget is that of Finagle and Envoy (retry_budget): a fraction of the requests instead of a number for each,
// since a number multiplies the load exactly when servers fail under load.
//
// The package has no sockets, goroutines or clock: time is passed in, in nanoseconds of one monotonic clock, as in
// internal/timer. It knows neither balance nor health.
