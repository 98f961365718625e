// Package wscheck is a WebSocket client that speaks in frames, and what an
// echoing server must do, whichever library it uses. It checks what a library
// needs of the HTTP server below it: the hijacked connection is whole, nothing
// sent early is lost, and its end is seen.
//
// It must not know any example. Only tests import it.
package wscheck
