package http1

import (
	"bytes"
	"net/netip"
)

// splitHost splits uri-host [ ":" port ] (RFC 9110 section 7.2, RFC 3986
// section 3.2). host keeps its brackets and may be empty; port is nil if there
// is no colon, and may be empty if there is one. ok is false if either is
// malformed.
func splitHost(b []byte) (host, port []byte, ok bool) {
	end := 0
	if len(b) > 0 && b[0] == '[' {
		i := bytes.IndexByte(b, ']')
		if i < 0 || !validLiteral(b[1:i]) {
			return nil, nil, false
		}
		end = i + 1
	} else if end = regNameEnd(b, false); end < 0 {
		return nil, nil, false
	}
	if end == len(b) {
		return b, nil, true
	}
	if b[end] != ':' {
		return nil, nil, false
	}
	for _, c := range b[end+1:] {
		if !isDigit(c) {
			return nil, nil, false
		}
	}
	return b[:end], b[end+1:], true
}

// ValidHost reports whether b is a valid value of a Host field; it may be empty. Beyond the
// grammar it accepts a bare IPv6 address, which clients send and net/http accepts; having more
// than one colon, it cannot be mistaken for a host and a port.
func ValidHost(b []byte) bool {
	if _, _, ok := splitHost(b); ok {
		return true
	}
	// Without a zone, which may contain any bytes there.
	a, err := netip.ParseAddr(string(b))
	return err == nil && a.Is6() && a.Zone() == ""
}

// regNameEnd returns the index of the first byte that is not part of a reg-name
// (RFC 3986 section 3.2.2), -1 for a malformed percent-encoding.
func regNameEnd(b []byte, colons bool) int {
	i := 0
	for i < len(b) {
		switch c := b[i]; {
		case class[c]&inRegName != 0 || colons && c == ':':
			i++
		case c == '%':
			if i+2 >= len(b) || !isHex(b[i+1]) || !isHex(b[i+2]) {
				return -1
			}
			i += 3
		default:
			return i
		}
	}
	return i
}

// validLiteral checks the inside of an IP-literal for the bytes that IPv6
// addresses, IPvFuture and zones (RFC 6874) are made of. Whether they form a
// valid address is left to its user.
func validLiteral(b []byte) bool {
	return len(b) > 0 && regNameEnd(b, true) == len(b)
}

// validPort accepts 1 to 65535.
func validPort(b []byte) bool {
	n := 0
	for _, c := range b {
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	return n > 0
}
