// Package tlsio is TLS for connections on event loops, by the standard library's
// crypto/tls: the handshake as a session of its own, and then a conn.Layer.
package tlsio

// It knows TLS records and crypto/tls; it must not know what is spoken inside.
// The root and outbound import it.
//
// # Handshake
//
// crypto/tls cannot go on with a handshake after an error, not even after a
// deadline's: a handshake has a goroutine from its first byte to its last. So a
// connection waits on its loop, without one, until the whole ClientHello is there
// (hello.go), then for its turn (Bound), and only then are a goroutine and the
// Link handed to tls.Conn.Handshake, which blocks (handshake.go).
//
// A connection that the server has opened (client.go) has a goroutine for its handshake from the
// beginning, and does not wait for Bound: what it costs is what its request costs.
//
// # Afterwards
//
// The *tls.Conn never waits any more. It is the Layer: it reads complete records
// from memory and writes to memory (layer.go). A record is decrypted in the buffer
// that it was received into, so that an idle connection keeps no input buffer
// (inside.go). A hijacker gets the same *tls.Conn, over a socket.
//
// What this relies on in crypto/tls: a Read can be repeated after a temporary error,
// such as os.ErrDeadlineExceeded. An error of Write is permanent, so writes to memory
// never fail. A Read may write: responses to a KeyUpdate, alerts.
