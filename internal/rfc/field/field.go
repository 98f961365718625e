package field

import (
	"bytes"
	"strings"

	"github.com/chert-http/chert/direct/wire"
)

// EqualFold reports whether a equals b except for the case of ASCII letters.
// Others, such as the Kelvin sign, do not count as letters.
func EqualFold[A, B []byte | string](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(b); i++ {
		c, d := a[i], b[i]
		if c != d && (c|0x20 != d|0x20 || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// SameVariable reports whether programs that have fields as variables (RFC 3875 section 4.1.18), as those of WSGI, PHP
// and Rack, take one name for the other: '_' is '-' for them, and letters have no case.
func SameVariable(a, b string) bool {
	return len(a) == len(b) && EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}

// Joined returns the value of the named field, nil if there is none. Several
// lines are one list (RFC 9110 section 5.3), so this is for fields that are
// lists. It allocates only if there are several lines; a single one is a slice
// of the server's buffer.
func Joined(f wire.Fields, name string) []byte {
	first, n := f.First(name)
	if n < 2 {
		return first
	}
	return joinAll(f, name)
}

// joinAll is separate because its closure moves the variables it changes to the heap.
func joinAll(f wire.Fields, name string) []byte {
	var all [][]byte
	for have, value := range f.All() {
		if EqualFold(have, name) {
			all = append(all, value)
		}
	}
	return bytes.Join(all, []byte(","))
}

// IsToken reports whether s is a token (RFC 9110 section 5.6.2).
func IsToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// HasToken reports whether list, of comma-separated tokens, contains token, in
// any case.
func HasToken(list, token string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if EqualFold(strings.Trim(part, " \t"), token) {
			return true
		}
	}
	return false
}
