// Package stream is the other engine: a conn.Proto driven by one goroutine
// over any net.Conn, for listeners that are not sockets and for systems
// without a poller.
//
// It offers the same conn.Transport as internal/conn, so everything above
// behaves the same. It must not know HTTP, loops or descriptors. Only the root
// may import it.
package stream
