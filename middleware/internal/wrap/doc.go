// Package wrap is what all middleware shares: the one response writer that
// stands around another, the handler that answers both ways, and the values
// that middleware leaves for handlers.
//
// It knows http.ResponseWriter and direct; it must not know what any middleware
// does. The packages of middleware import it, and nothing else can.
package wrap
