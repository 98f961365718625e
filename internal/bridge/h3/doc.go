// Package h3 serves HTTP/3 (RFC 9114) on a QUIC connection.
//
// A Session is a connection. The goroutine that accepts its streams, the leader, serves those itself
// whose handlers are quick; each other request has a goroutine of its own while its handler runs.
// What has outlived its handler, such as an event stream, has none while it waits.
// QUIC does what the sender and the windows of package h2 do: a handler's writes wait in the
// transport, for as long as the server's limits allow.
//
//	lead.go     who accepts streams, and serves them
//	request.go  a stream, from its first byte to its handler
//	early.go    requests that come before the handshake's end
//	stream.go   the end of a stream
//	head.go     the answer, as bridge.Message
//	body.go     the request's body
//	write.go    what is sent, and how long it may wait
//	direct.go   the fast path
//	last.go     answers that outlive their handlers
//	tunnel.go   WebSockets (RFC 9220)
//	control.go  the unidirectional streams
//	drain.go    the end of a connection
package h3

// It must not know the implementation of QUIC, which the interfaces of quic.go stand for, nor
// sockets and loops.
