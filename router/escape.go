package router

import (
	"strings"

	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/view"
)

// This file makes paths and patterns comparable byte by byte. In normal form
// each segment is percent-decoded, and then the bytes that would be ambiguous
// are encoded again: "%" itself, a slash within a segment, and the first dot of
// a segment that is "." or "..":
//
//	as it came     normal   path value
//	/a%20b         /a b     a b
//	/a%2Fb         /a%2Fb   a/b
//	/100%25        /100%25  100%
//	/%2E           /%2E     .
//
// So a clean path without a percent sign is its own normal form, and two
// segments are the same if their normal forms are.

// normalSegment is the normal form of a decoded segment.
func normalSegment(s string) string {
	if s == "." || s == ".." {
		return "%2E" + s[1:]
	}
	if !strings.ContainsAny(s, "%/") {
		return s
	}
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(s)
}

// normalPath is the normal form of a path that is percent-encoded, as
// url.EscapedPath gives it. A percent sign that begins no escape stands for
// itself.
func normalPath(p string) string {
	b := make([]byte, 0, len(p)+8)
	for p != "" {
		b = append(b, '/')
		p = p[1:]
		n := pattern.SegmentEnd(p)
		b = appendNormal(b, p[:n])
		p = p[n:]
	}
	return string(b)
}

func appendNormal(b []byte, seg string) []byte {
	start := len(b)
	for i := 0; i < len(seg); i++ {
		c := seg[i]
		if c == '%' && i+2 < len(seg) && hex(seg[i+1]) && hex(seg[i+2]) {
			c = unhex(seg[i+1])<<4 | unhex(seg[i+2])
			i += 2
		}
		switch c {
		case '%':
			b = append(b, "%25"...)
		case '/':
			b = append(b, "%2F"...)
		default:
			b = append(b, c)
		}
	}
	if s := b[start:]; len(s) > 0 && pattern.Dots(view.String(s)) {
		b = append(append(b[:start], "%2E"...), ".."[:len(s)-1]...)
	}
	return b
}

// plainValue decodes s, a part of a path in normal form.
func plainValue(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	return strings.NewReplacer("%25", "%", "%2F", "/", "%2E", ".").Replace(s)
}

func hex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
