// Package field parses what many header fields have in common (RFC 9110 section
// 5): case-insensitive names, lists, and lists spread over several lines.
package field

// It knows wire.Fields and no field in particular. Packages static, middleware, eventstream and
// websocket and the parts of RFC 9110 below them import it.
