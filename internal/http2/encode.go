package http2

import (
	"strconv"
	"strings"
)

// NoTable, at the start of a header block, is an update of the table's size to 0. One
// is due in the first block after a client has made the table smaller (RFC 9113 section
// 4.3.1): the encoder uses no table, but the client's decoder does not know.
const NoTable byte = 0x20

// statusIndex are the indices of the static table for whole status fields.
func statusIndex(status int) byte {
	switch status {
	case 200:
		return 8
	case 204:
		return 9
	case 206:
		return 10
	case 304:
		return 11
	case 400:
		return 12
	case 404:
		return 13
	case 500:
		return 14
	}
	return 0
}

// AppendStatus appends the pseudo-field of an answer. status has three digits.
func AppendStatus(b []byte, status int) []byte {
	if i := statusIndex(status); i != 0 {
		return append(b, 0x80|i)
	}
	return append(b, byte(IDStatus), 3, byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10))
}

// AppendField appends a field. name is in canonical form (net/textproto), or in any
// other: it is sent in lower case. A name or value that must not be in a message is
// left out, which is what net/http does with it. Space around the value is not sent:
// clients may refuse that (RFC 9113 section 8.2.1).
func AppendField(b []byte, name, value string) []byte {
	if !validValueString(value) {
		return b
	}
	if n := len(value); n > 0 && (isSpace(value[0]) || isSpace(value[n-1])) {
		value = strings.Trim(value, " \t")
	}
	id := nameID(name)
	if id == 0 {
		start := len(b)
		if b = appendName(append(b, 0), name); len(b) == start+1 {
			return b[:start] // no name
		}
		return appendText(b, value)
	}
	return AppendKnown(b, id, value)
}

// AppendKnown appends a field whose name is in the static table and whose value is
// one that a message may have.
func AppendKnown(b []byte, id NameID, value string) []byte {
	flag := byte(0)
	if id == IDSetCookie || id == IDAuthorization {
		flag = 0x10 // never indexed: RFC 7541 section 7.1.3
	}
	if id < 15 {
		b = append(b, flag|byte(id))
	} else {
		b = append(b, flag|15, byte(id)-15)
	}
	return appendText(b, value)
}

// AppendInt is AppendKnown for a number.
func AppendInt(b []byte, id NameID, n int64) []byte {
	var digits [20]byte
	d := strconv.AppendInt(digits[:0], n, 10)
	if id < 15 {
		b = append(b, byte(id))
	} else {
		b = append(b, 15, byte(id)-15)
	}
	// Huffman makes five bits of 0 to 2 and six of the others: too little to count.
	return append(append(b, byte(len(d))), d...)
}

// appendName appends a literal name in lower case, or nothing if it is none.
func appendName(b []byte, name string) []byte {
	var few [64]byte
	lower := few[:0]
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if classes[c]&nameByte == 0 {
			return b
		}
		lower = append(lower, c)
	}
	if len(lower) == 0 {
		return b
	}
	return appendText(b, string(lower))
}

// appendText appends a string literal, by Huffman's code where that is shorter.
func appendText(b []byte, s string) []byte {
	n := huffmanLen(s)
	if n < len(s) {
		return appendHuffman(appendInteger(b, 0x80, 7, uint(n)), s)
	}
	return append(appendInteger(b, 0, 7, uint(len(s))), s...)
}

// appendInteger appends v with a prefix of n bits (RFC 7541 section 5.1).
func appendInteger(b []byte, flags byte, n uint, v uint) []byte {
	mask := uint(1)<<n - 1
	if v < mask {
		return append(b, flags|byte(v))
	}
	b = append(b, flags|byte(mask))
	for v -= mask; v >= 0x80; v >>= 7 {
		b = append(b, 0x80|byte(v))
	}
	return append(b, byte(v))
}

func validValueString(s string) bool {
	for i := 0; i < len(s); i++ {
		if classes[s[i]]&valueByte == 0 {
			return false
		}
	}
	return true
}

// ValidName reports whether a field of this name may be sent, in any case.
func ValidName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if classes[c]&nameByte == 0 {
			return false
		}
	}
	return name != ""
}

// LookupFold is the NameID of a name in any case.
func LookupFold(name string) NameID {
	if id := nameID(name); id != 0 {
		return id
	}
	var few [32]byte
	if len(name) > len(few) {
		return 0
	}
	return lookupName(lower(few[:0], name))
}

func lower(b []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// FoldEqual reports whether a name as it is on the wire is name, in any case.
func FoldEqual(wire []byte, name string) bool {
	if len(wire) != len(name) {
		return false
	}
	for i, c := range wire {
		d := name[i]
		if 'A' <= d && d <= 'Z' {
			d += 'a' - 'A'
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != d {
			return false
		}
	}
	return true
}
