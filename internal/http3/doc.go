// Package http3 is the HTTP/3 codec: bytes in, values out.
//
// It cuts streams into frames and checks them (RFC 9114 sections 6 and 7), decodes and
// encodes field sections (QPACK, RFC 9204), and has the variable-length integers of QUIC
// (RFC 9000 section 16). What is wrong is a ConnError or a StreamError, which carry the
// code to answer with.
//
// # Field sections
//
// A section is decoded whole, into a pack.Fields that the caller reuses, which is what
// internal/http2 makes of a header block. There is no dynamic table on either side: the
// capacity that a server announces has to be 0, which is the default. So sections have no
// state: they may be encoded and decoded by any goroutine, in any order and ahead of time,
// and no request waits for a stream that is not its own; see ADR 37 for what that costs.
//
// # What it must not know
//
// No sockets, no QUIC, no goroutines, no clock, no net/http. A bridge may import it, and
// the root.
package http3
