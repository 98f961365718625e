// Package pack is what HPACK (RFC 7541) and QPACK (RFC 9204) have in common: integers with
// a prefix, string literals and their Huffman code, the names of the static tables, and the
// fields that a decoder makes of a header block (HPACK) or a field section (QPACK), with
// the rules that HTTP/2 and HTTP/3 have for names and values.
//
// What the decoders give is the same type, Fields, so that one piece of code can judge the
// requests of both protocols.
//
// # What it must not know
//
// Representations and tables, which are different: those of HPACK are in internal/http2, of
// QPACK in internal/http3. No sockets, no goroutines, no clock, no net/http. The codecs and
// what uses their fields may import it.
package pack
