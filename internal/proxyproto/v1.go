package proxyproto

import (
	"bytes"
	"net/netip"
)

// parseV1 parses a line of version 1 (section 2.1). b begins as one, as far as it goes.
func parseV1(b []byte) (Header, int, error) {
	end := bytes.IndexByte(b[:min(len(b), maxV1)], '\n')
	if end < 0 {
		if len(b) >= maxV1 {
			return Header{}, 0, ErrTooLong
		}
		return Header{}, 0, nil
	}
	if end <= len(prefixV1) || b[end-1] != '\r' {
		return Header{}, 0, ErrMalformed
	}
	line := b[len(prefixV1) : end-1]
	if bytes.IndexByte(line, '\r') >= 0 {
		return Header{}, 0, ErrMalformed
	}
	family, rest, more := bytes.Cut(line, space)
	// What follows UNKNOWN is to be ignored.
	if string(family) == "UNKNOWN" {
		return Header{}, end + 1, nil
	}
	if !more || string(family) != "TCP4" && string(family) != "TCP6" {
		return Header{}, 0, ErrMalformed
	}
	h, ok := addresses(rest, string(family) == "TCP4")
	if !ok {
		return Header{}, 0, ErrMalformed
	}
	return h, end + 1, nil
}

var space = []byte(" ")

// addresses parses "source destination sourceport destinationport".
func addresses(b []byte, four bool) (h Header, ok bool) {
	src, b, ok1 := bytes.Cut(b, space)
	dst, b, ok2 := bytes.Cut(b, space)
	srcPort, dstPort, ok3 := bytes.Cut(b, space)
	if !ok1 || !ok2 || !ok3 {
		return h, false
	}
	from, ok1 := address(src, four)
	to, ok2 := address(dst, four)
	fromPort, ok3 := port(srcPort)
	toPort, ok4 := port(dstPort)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return h, false
	}
	return Header{netip.AddrPortFrom(from, fromPort), netip.AddrPortFrom(to, toPort)}, true
}

// address parses an address of the family. A zone is not part of the protocol.
func address(b []byte, four bool) (netip.Addr, bool) {
	var a netip.Addr
	if len(b) == 0 || a.UnmarshalText(b) != nil || a.Is4() != four || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// port parses a decimal port without leading zeros (section 2.1).
func port(b []byte) (uint16, bool) {
	if len(b) == 0 || len(b) > 5 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return uint16(n), n <= 0xffff
}
