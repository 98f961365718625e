// Package http1 parses and encodes HTTP/1.x messages: bytes in, values out.
//
// It parses request heads, response heads, trailer sections and chunked bodies, and
// encodes status lines, fields and chunk sizes. A parser returns one of three results:
// n bytes consumed, need more, or an *Error with the status to refuse with;
// after a refusal the connection must close, because the end of the message is
// no longer known. The same bytes get the same result, whether they arrive
// whole or in pieces of any size.
//
// Framing is strict (RFC 9112) and nothing is repaired: request smuggling
// depends on two servers that read one message differently.
//
// # How a head is validated
//
// A line is validated when its LF has arrived, in order; what depends on several
// fields (Host, Content-Length, Transfer-Encoding, Connection, Expect) is
// validated when the empty line has arrived. Only the very first byte is checked
// immediately, so that a TLS client on a plain port need not wait for a timeout.
//
// # Responses
//
// A response is read as a gateway must read it: what is refused is the upstream's
// fault, so every Error has status 502. Its framing depends on the request (HEAD,
// CONNECT, Upgrade), which Expected has. Beyond what RFC 9112 section 6.3 requires,
// a response is refused if recipients could disagree about its end: Content-Length
// with Transfer-Encoding or more than once, a coding other than chunked alone, an
// interim response with a body. Response.Body tells complete bodies from truncated
// and malformed ones, and whether the connection can be used again.
//
// # Incomplete heads
//
// A head that has arrived completely is parsed in one pass. An incomplete one
// leaves two numbers in a Progress, so that the next call reads new bytes only
// and a client that sends a byte a second costs no more than one that sends a
// line.
package http1

// No sockets, no buffers of its own, no goroutines, no clock; no net/http
// outside the tests. Results are offsets into the caller's buffer and nothing
// is allocated, except by the Fields slice until it has grown to the usual
// number of fields, and by CanonicalName for a name that has no FieldID.
//
// internal/bridge and internal/forward may import it, and the root, for Limits.
