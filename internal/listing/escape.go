package listing

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chert-http/chert/internal/rfc/percent"
)

const hexDigits = "0123456789abcdef"

// inURL is the bytes that stand for themselves in a segment of a path: RFC 3986
// section 3.3, pchar, without & and ', which are special in HTML.
var inURL = percent.Of("-._~!$()*+,;=:@")

// appendURL appends a relative URL for the entry.
func appendURL(b []byte, e *Entry) []byte {
	// RFC 3986 section 4.2: "A path segment that contains a colon character
	// (e.g., "this:that") cannot be used as the first segment of a
	// relative-path reference, as it would be mistaken for a scheme name."
	b = append(b, "./"...)
	b = percent.Append(b, e.Name, inURL)
	if e.Dir {
		b = append(b, '/')
	}
	return b
}

// unseen reports whether a character is invisible, or changes how others are
// shown, so that one name may look like another. The joiners U+200C and U+200D
// are neither: Persian and emoji are written with them.
func unseen(r rune) bool {
	switch {
	case r < ' ' || r == 0x7f:
		return true
	case r < 0x80:
		return false
	case r == 0x200c || r == 0x200d:
		return false
	case r == 0x2028 || r == 0x2029: // line and paragraph separator
		return true
	case r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800: // fillers, blank Braille
		return true
	case r&0xfffe == 0xfffe: // no characters, and not allowed in XML
		return true
	}
	// Cf has the direction overrides, soft hyphen, zero width space and BOM.
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// isSimple reports whether s needs no escapes in HTML and JSON.
func isSimple(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '<', c == '>', c == '&', c == '"', c == '\'', c == '\\':
			return false
		case c == ' ' && (i == 0 || i == len(s)-1):
			return false
		}
	}
	return true
}

// appendName appends a name as the content of an element. Escapes, and spaces
// at its ends, are in elements of their own, so that they are visible and
// distinguishable from the same characters in a name.
func appendName(b []byte, name string) []byte {
	if isSimple(name) {
		return append(b, name...)
	}
	body := strings.TrimLeftFunc(name, isSpace)
	b = appendEdge(b, name[:len(name)-len(body)])
	trimmed := strings.TrimRightFunc(body, isSpace)
	b = appendText(b, trimmed, "<i>", "</i>")
	return appendEdge(b, body[len(trimmed):])
}

func isSpace(r rune) bool { return unicode.Is(unicode.Zs, r) }

func appendEdge(b []byte, spaces string) []byte {
	if spaces == "" {
		return b
	}
	b = append(b, "<u>"...)
	b = append(b, spaces...)
	return append(b, "</u>"...)
}

// appendText appends s, escaped for content and attributes of HTML. Before and
// after enclose each escape of an invisible character.
func appendText(b []byte, s, before, after string) []byte {
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '<':
			b = append(b, "&lt;"...)
		case r == '>':
			b = append(b, "&gt;"...)
		case r == '&':
			b = append(b, "&amp;"...)
		case r == '"':
			b = append(b, "&#34;"...)
		case r == '\'':
			b = append(b, "&#39;"...)
		case r == utf8.RuneError && n == 1:
			b = append(b, before...)
			b = appendHex(append(b, '\\', 'x'), rune(s[i]), 2)
			b = append(b, after...)
		case unseen(r):
			b = append(b, before...)
			b = appendEscape(b, r)
			b = append(b, after...)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return b
}

// appendEscape appends the escape that Go and others have for a character.
func appendEscape(b []byte, r rune) []byte {
	b = append(b, '\\')
	switch {
	case r == '\n':
		return append(b, 'n')
	case r == '\r':
		return append(b, 'r')
	case r == '\t':
		return append(b, 't')
	case r < 0x80:
		return appendHex(append(b, 'x'), r, 2)
	case r <= 0xffff:
		return appendHex(append(b, 'u'), r, 4)
	}
	return appendHex(append(b, 'U'), r, 8)
}

func appendHex(b []byte, r rune, width int) []byte {
	for shift := 4 * (width - 1); shift >= 0; shift -= 4 {
		b = append(b, hexDigits[r>>shift&15])
	}
	return b
}

// appendJSON appends s as a JSON string (RFC 8259 section 7). Invisible
// characters are escaped, for readers in a terminal, and so is "<", for
// browsers that treat any content as HTML.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	if isSimple(s) {
		b = append(b, s...)
		return append(b, '"')
	}
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == utf8.RuneError:
			b = append(b, "\uFFFD"...)
		case r == '\n':
			b = append(b, '\\', 'n')
		case r > 0xffff && unseen(r):
			hi, lo := utf16.EncodeRune(r)
			b = appendHex(append(b, '\\', 'u'), hi, 4)
			b = appendHex(append(b, '\\', 'u'), lo, 4)
		case r == '<' || unseen(r):
			b = appendHex(append(b, '\\', 'u'), r, 4)
		default:
			b = append(b, s[i:i+n]...)
		}
		i += n
	}
	return append(b, '"')
}
