// Package http2 is the HTTP/2 codec: bytes in, values out.
//
// It parses and checks frames (RFC 9113 sections 4 and 6), decodes and encodes
// header blocks (HPACK, RFC 7541), and does the arithmetic of flow-control windows.
// What is wrong with a frame is a ConnError or a StreamError, which carry the code
// to answer with.
//
// # Header blocks
//
// Decoder keeps the dynamic table as bytes in one slice and a ring of offsets; no
// string is made, and no map kept. A block is decoded whole, into a pack.Fields that the
// caller reuses; what HPACK shares with QPACK is in that package. What was found about a
// name (which of the static table it is) and about a value (whether a message may have it)
// is kept with the table's entry, so that a field which is sent again by index is neither
// looked up nor checked again.
//
// The encoder has no dynamic table. So a block may be encoded by any goroutine, in
// any order, ahead of time, and cut; see ADR 37 for what that costs.
//
// # What it must not know
//
// No sockets, no goroutines, no clock, no net/http. internal/bridge/h2 may import
// it, and the root.
package http2
