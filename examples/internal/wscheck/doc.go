// Package wscheck tests WebSocket servers that echo messages, with a client
// that sends and reads single frames. It checks what a library needs of the
// HTTP server below it: the hijacked connection is complete, no byte that was
// sent early is lost, and its end is noticed.
//
// It must not know any example. Only tests import it.
package wscheck
