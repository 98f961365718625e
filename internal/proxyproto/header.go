package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
)

const (
	// MaxHeader bounds a header in bytes, TLVs included.
	MaxHeader = 4 << 10
	// maxV1 bounds a line of version 1 in bytes, CRLF included (section 2.1).
	maxV1 = 107
)

// Errors of Parse. Each ends the connection.
var (
	ErrMissing   = errors.New("no PROXY protocol header")
	ErrMalformed = errors.New("malformed PROXY protocol header")
	ErrTooLong   = errors.New("PROXY protocol header too long")
	ErrChecksum  = errors.New("wrong checksum in PROXY protocol header")
)

// Header is what a header says. Its addresses are both valid, or neither: then the
// connection's own stand, as for LOCAL, UNKNOWN and AF_UNIX.
type Header struct {
	Source, Destination netip.AddrPort
}

var (
	prefixV1 = []byte("PROXY ")
	prefixV2 = []byte("\r\n\r\n\x00\r\nQUIT\n")
)

// Parse reads the header at the start of b, and returns its length. A length of 0
// without an error means that b is only the beginning of one. What follows the
// header is not looked at. Parse does not keep b, and of version 2 it does not allocate.
func Parse(b []byte) (h Header, n int, err error) {
	switch {
	case begins(b, prefixV1):
		return parseV1(b)
	case begins(b, prefixV2):
		return parseV2(b)
	}
	return Header{}, 0, ErrMissing
}

// Missing returns how many bytes may be read after b, the beginning of a header, without
// reading beyond the header's end: at least 1. For those who cannot give bytes back.
func Missing(b []byte) int {
	switch {
	case len(b) < len(prefixV2):
		return len(prefixV2) - len(b) // a header of version 1 has more bytes too
	case begins(b, prefixV1):
		return 1
	case len(b) < fixedV2:
		return fixedV2 - len(b)
	}
	return fixedV2 + int(binary.BigEndian.Uint16(b[14:])) - len(b)
}

// begins reports whether b begins with prefix, as far as b goes.
func begins(b, prefix []byte) bool {
	n := min(len(b), len(prefix))
	return bytes.Equal(b[:n], prefix[:n])
}
