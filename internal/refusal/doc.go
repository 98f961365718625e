// Package refusal is how middleware answers a request instead of its handler: a
// fixed answer, or what a Hook around it makes of that.
//
// The hook of a request is found when the request is refused, in the response
// writer or in the exchange, so accepted requests pay for no lookup. The package
// knows direct; it must not know any middleware. middleware, the packages below it
// and ratelimit may import it.
package refusal
