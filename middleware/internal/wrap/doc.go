// Package wrap is what middleware that needs the answer shares: the one response
// writer that stands around another, and the handler that answers both ways; and how
// bearer tokens are found and refused.
//
// It knows http.ResponseWriter and direct; it must not know what any middleware
// does. The packages of middleware import it, and nothing else can.
package wrap
