// Package percent implements percent-encoding (RFC 3986 section 2.1). Which
// characters need no encoding depends on the part of the URL, so each caller
// defines its own Set.
package percent

// It imports nothing of the module. static, middleware, listing and cmd/chert import it.
