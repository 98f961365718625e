package pack

import "strings"

const (
	// nameByte: of a field's name, a token without upper case (RFC 9113 section 8.2.1, RFC
	// 9114 section 4.2).
	nameByte    = 1 << iota
	anyCaseByte // of a token
	valueByte   // of its value (RFC 9110 section 5.5)
)

var classes = func() (t [256]uint8) {
	const name = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	for i := range len(name) {
		t[name[i]] |= nameByte | anyCaseByte
	}
	for c := 'A'; c <= 'Z'; c++ {
		t[c] |= anyCaseByte
	}
	for c := range t {
		if c >= ' ' && c != 0x7f || c == '\t' {
			t[c] |= valueByte
		}
	}
	return t
}()

// ValidWireName reports whether p may be a field's name on the wire. Pseudo-fields that are
// known have a NameID, so others are not asked for here, and refused.
func ValidWireName(p []byte) bool {
	for _, c := range p {
		if classes[c]&nameByte == 0 {
			return false
		}
	}
	if len(p) == 0 {
		return false
	}
	switch string(p) { // RFC 9113 section 8.2.2, RFC 9114 section 4.2
	case "connection", "proxy-connection", "keep-alive", "upgrade":
		return false
	}
	return true
}

// validValue reports whether p may be the value of the field id: no control bytes, and no
// space around it (RFC 9113 section 8.2.1) where Trim leaves that.
func validValue(p []byte, id NameID) bool {
	for _, c := range p {
		if classes[c]&valueByte == 0 {
			return false
		}
	}
	return len(p) == 0 || !isSpace(p[0]) && !isSpace(p[len(p)-1]) || !Strict(id)
}

// Strict reports whether the value of a field must not have space around it.
func Strict(id NameID) bool {
	return id != 0 && id <= IDStatus || id == IDHost || id == IDContentLength
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// SentValue is a value as it is sent: without space around it, which clients may refuse
// (RFC 9113 section 8.2.1). ok is false for what no message may have.
func SentValue(value string) (_ string, ok bool) {
	for i := 0; i < len(value); i++ {
		if classes[value[i]]&valueByte == 0 {
			return "", false
		}
	}
	if n := len(value); n > 0 && (isSpace(value[0]) || isSpace(value[n-1])) {
		value = strings.Trim(value, " \t")
	}
	return value, true
}

// Secret reports whether the values of a field are not for tables: RFC 7541 section 7.1.3
// and RFC 9204 section 7.1.3.
func Secret(id NameID) bool { return id == IDSetCookie || id == IDAuthorization }

// ValidName reports whether a field of this name may be sent, in any case.
func ValidName(name string) bool {
	for i := 0; i < len(name); i++ {
		if classes[name[i]]&anyCaseByte == 0 {
			return false
		}
	}
	return name != ""
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

func lower(b []byte, name string) []byte {
	for i := 0; i < len(name); i++ {
		b = append(b, lowerByte(name[i]))
	}
	return b
}

// FoldEqual reports whether a name as it is on the wire is name, in any case.
func FoldEqual(wire []byte, name string) bool {
	if len(wire) != len(name) {
		return false
	}
	for i, c := range wire {
		if lowerByte(c) != lowerByte(name[i]) {
			return false
		}
	}
	return true
}
