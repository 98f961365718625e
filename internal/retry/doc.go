// Package retry decides whether a request to an upstream server that failed is tried again, and on what connection.
//
// Decide is the table: a pure function of what happened and of what the request permits. Tries applies it to one request,
// with the limits that the table does not know: two extra tries, no server twice, and the Budget of the upstream. An
// IdleLimit learns how long an upstream keeps idle connections, so that fewer requests meet one that is being closed.
package retry

// A request is sent again only if no server can have acted on it, or if acting on it twice is what RFC 9110 section 9.2.2
// calls idempotent, and the client has seen nothing of a response. That is narrower than what the RFC permits for
// idempotent methods, and wider than what it demands of proxies: "A proxy MUST NOT automatically retry non-idempotent
// requests". nginx repeated POST until 1.9.13.
//
// The budget is that of Finagle and Envoy (retry_budget): a fraction of the requests instead of a number for each, since
// a number multiplies the load exactly when servers fail under load.
//
// The package has no sockets, goroutines or clock: time is passed in, in nanoseconds of one monotonic clock, as in
// internal/timer. It knows neither balance nor health.
