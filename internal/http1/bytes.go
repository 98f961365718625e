package http1

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// What a byte may be part of, one bit each.
const (
	inToken   = 1 << iota // tchar, RFC 9110 section 5.6.2
	inValue               // field-vchar, SP, HTAB: RFC 9110 section 5.5
	inTarget              // anything but controls, SP and DEL
	inRegName             // unreserved and sub-delims: RFC 3986 section 3.2.2
	inQuoted              // qdtext, RFC 9110 section 5.6.4
)

var class = classes()

func classes() (t [256]uint8) {
	for i := range t {
		c := byte(i)
		switch alnum := isAlpha(c) || isDigit(c); {
		case alnum:
			t[i] |= inToken | inRegName
		case bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0:
			t[i] |= inToken
		}
		if bytes.IndexByte([]byte("-._~!$&'()*+,;="), c) >= 0 {
			t[i] |= inRegName
		}
		if c >= ' ' && c != 0x7f || c == '\t' {
			t[i] |= inValue
			if c != '"' && c != '\\' {
				t[i] |= inQuoted
			}
		}
		if c > ' ' && c != 0x7f {
			t[i] |= inTarget
		}
	}
	return t
}

func isAlpha(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isHex(c byte) bool   { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
func isOWS(c byte) bool   { return c == ' ' || c == '\t' }

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// Eight bytes at a time: ones has the value 1 in each byte, tops the value 0x80.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// stops marks the top bit of each byte of x that is below limit (at most 0x80)
// or DEL. A borrow can also mark bytes above a correct mark, never below it, so
// the lowest mark is correct.
func stops(x, limit uint64) uint64 {
	// The top bit of a byte is the same in x and in x ^ DEL.
	return ((x - ones*limit) | ((x ^ ones*0x7f) - ones)) &^ x & tops
}

// valueEnd returns the index of the first byte from i on that cannot be in a
// field value, or len(b). In a well-formed head that is the CR.
func valueEnd(b []byte, i int) int {
	for i+16 <= len(b) {
		v := b[i : i+16]
		if stops(binary.LittleEndian.Uint64(v), ' ')|stops(binary.LittleEndian.Uint64(v[8:]), ' ') != 0 {
			break
		}
		i += 16
	}
	for i+8 <= len(b) {
		m := stops(binary.LittleEndian.Uint64(b[i:]), ' ')
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] != '\t' {
			return i
		}
		i++
	}
	for i < len(b) && class[b[i]]&inValue != 0 {
		i++
	}
	return i
}

// targetEnd is valueEnd for a request target: SP ends it too.
func targetEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		if m := stops(binary.LittleEndian.Uint64(b[i:]), ' '+1); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(b) && class[b[i]]&inTarget != 0 {
		i++
	}
	return i
}

func tokenEnd(b []byte, i int) int {
	for i < len(b) && class[b[i]]&inToken != 0 {
		i++
	}
	return i
}

func trimOWS(b []byte) []byte {
	for len(b) > 0 && isOWS(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isOWS(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// FoldEqual reports whether b and s are equal except for the case of ASCII letters.
func FoldEqual[S []byte | string](b []byte, s S) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		if lower(b[i]) != lower(s[i]) {
			return false
		}
	}
	return true
}

// NextElement cuts the first element off a comma-separated list. The element is
// returned without OWS and may be empty: RFC 9110 section 5.6.1.2 requires
// empty elements to be ignored.
func NextElement(list []byte) (elem, rest []byte) {
	i := bytes.IndexByte(list, ',')
	if i < 0 {
		return trimOWS(list), nil
	}
	return trimOWS(list[:i]), list[i+1:]
}

// HasToken reports whether the comma-separated list value has the element token,
// in any case.
func HasToken[S []byte | string](value []byte, token S) bool {
	var elem []byte
	for len(value) > 0 {
		if elem, value = NextElement(value); FoldEqual(elem, token) {
			return true
		}
	}
	return false
}

// ValidFieldName reports whether name is a token (RFC 9110 section 5.1).
func ValidFieldName[S []byte | string](name S) bool {
	for i := range len(name) {
		if class[name[i]]&inToken == 0 {
			return false
		}
	}
	return len(name) > 0
}

// ValidFieldValue reports whether value has no control byte except HTAB. Space
// around it is allowed: AppendField removes it.
func ValidFieldValue(value string) bool {
	for i := range len(value) {
		if class[value[i]]&inValue == 0 {
			return false
		}
	}
	return true
}
