// Package tlsio is TLS for connections on event loops, by the standard library's
// crypto/tls: the handshake as a session of its own, and then a conn.Layer.
package tlsio

// It knows TLS records and crypto/tls; it must not know what is spoken inside.
// The root imports it.
//
// # Handshake
//
// crypto/tls cannot go on with a handshake after an error, not even after a
// deadline's: a handshake has a goroutine from its first byte to its last. So a
// connection waits on its loop, without one, until the whole ClientHello is there
// (hello.go), then for its turn (Bound), and only then are a goroutine and the
// Link handed to tls.Conn.Handshake, which blocks (handshake.go).
//
// # Afterwards
//
// The *tls.Conn is not asked to wait any more. It is the Layer: it gets whole
// records out of memory and puts what it makes into memory (layer.go). What it
// keeps for an idle connection is given up where that is safe (inside.go). A hijacker
// gets the same *tls.Conn, over a socket.
//
// What this relies on of crypto/tls: a Read goes on after a temporary error;
// os.ErrDeadlineExceeded is one. An error of Write is for good, so writes to memory
// never fail. A Read may write: answers to a KeyUpdate, alerts.
