// Package refusal lets middleware answer a request instead of its handler: with a
// fixed response, or with what a surrounding Hook makes of it.
//
// The hook of a request is looked up when the request is refused, in the response
// writer or in the exchange, so accepted requests pay for no lookup.
package refusal

// The package knows direct; it must not know any middleware. middleware, the
// packages below it and ratelimit may import it.
