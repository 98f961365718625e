// Package stream drives connections with one goroutine each, over any net.Conn: for
// listeners that are not sockets and for systems without a poller. It implements the
// same conn.Link as internal/conn, so all sessions behave the same on both.
package stream

// It must not know HTTP, loops or descriptors. The root and internal/accept import it for accepted
// connections, internal/bridge/h3 for WebSockets on streams of HTTP/3, and websocket for connections that it
// has hijacked from another server.
