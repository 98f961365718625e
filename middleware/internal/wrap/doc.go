// Package wrap provides what middleware that changes responses shares: a
// response writer that wraps another, a handler for both paths, and the parsing
// and refusal of bearer tokens.
package wrap

// The package uses http.ResponseWriter and direct only; it must not depend on any
// middleware. The packages of middleware import it.
