// Package http1 is the HTTP/1.x codec: bytes in, values out.
//
// It parses request heads, trailer sections and chunked bodies, and encodes
// status lines, fields and chunk sizes. A parser answers one of three things:
// n bytes consumed, need more, or an *Error that names the status to refuse
// with; after a refusal the connection must close, because the end of the
// message can no longer be known. Fed whole or in pieces of any size, the same
// bytes get the same answer.
//
// Framing is strict (RFC 9112) and nothing is repaired: two servers that read
// one message differently are what request smuggling is made of.
//
// # How a head is judged
//
// A line is judged when its LF has arrived, in order; what takes several fields
// to tell (Host, Content-Length, Transfer-Encoding, Connection, Expect) is
// judged when the empty line has arrived. Only the very first byte is judged at
// once, so that a TLS client on a plain port need not wait for a timeout.
//
// A head that is all there is parsed in one pass. One that is not leaves two
// numbers in a Progress, so that the next call looks at new bytes only and a
// client that sends a byte a second costs no more than one that sends a line.
//
// # What it must not know
//
// No sockets, no buffers of its own, no goroutines, no clock; no net/http
// outside the tests. Results are offsets into the caller's buffer and nothing
// is allocated, except by the Fields slice until it has grown to the size that
// heads have, and by CanonicalName for a name that has no FieldID.
//
// internal/bridge may import it, and the root, for Limits.
package http1
