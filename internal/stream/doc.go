// Package stream drives connections with one goroutine each, over any net.Conn: for
// listeners that are not sockets and for systems without a poller. It implements the
// same conn.Link as internal/conn, so all sessions behave the same on both.
package stream

// It must not know HTTP, loops or descriptors. internal/accept imports it, and what has sessions on connections that
// are no chert server's: internal/bridge/h3 and websocket.
