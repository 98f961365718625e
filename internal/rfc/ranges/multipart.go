package ranges

import (
	"crypto/rand"
	"strconv"
	"strings"
)

// ContentRange returns the value of Content-Range for r of content of size
// bytes (RFC 9110 section 14.4).
func (r Range) ContentRange(size int64) string {
	// "bytes " and three numbers of up to 19 digits.
	return string(r.appendContentRange(make([]byte, 0, 72), size))
}

func (r Range) appendContentRange(b []byte, size int64) []byte {
	b = append(b, "bytes "...)
	b = strconv.AppendInt(b, r.Start, 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, r.Start+r.Length-1, 10)
	b = append(b, '/')
	return strconv.AppendInt(b, size, 10)
}

// Unsatisfied returns the value of Content-Range in a 416 for content of size bytes.
func Unsatisfied(size int64) string { return "bytes */" + strconv.FormatInt(size, 10) }

// A Multipart is the frame of a multipart/byteranges body (RFC 9110 section
// 14.6). Such a body is, for each i of its ranges, AppendHead(i) and the bytes
// of range i, and AppendTail at the end: Len bytes in all.
//
// Its methods are safe for concurrent use. A response with one range must not
// be multipart (section 15.3.7.2).
type Multipart struct {
	Boundary    string // of NewBoundary; must not occur in the content
	ContentType string // of the content, put into each part; "" for none
	Ranges      []Range
	Size        int64 // of the whole content, in bytes
}

// NewBoundary returns 26 letters and digits with 128 bits of randomness, so that
// no one can create content that contains it. Safe for concurrent use.
func NewBoundary() string { return rand.Text() }

// Type returns the Content-Type of the body.
func (m *Multipart) Type() string { return "multipart/byteranges; boundary=" + m.Boundary }

// AppendHead appends what precedes the bytes of range i, counted from 0.
func (m *Multipart) AppendHead(b []byte, i int) []byte {
	// Every delimiter begins with the CRLF before it (RFC 2046 section 5.1.1), but
	// the first may omit it, and some recipients require that.
	if i > 0 {
		b = append(b, "\r\n"...)
	}
	b = append(b, "--"...)
	b = append(b, m.Boundary...)
	if m.ContentType != "" {
		b = append(b, "\r\nContent-Type: "...)
		b = appendClean(b, m.ContentType)
	}
	b = append(b, "\r\nContent-Range: "...)
	b = m.Ranges[i].appendContentRange(b, m.Size)
	return append(b, "\r\n\r\n"...)
}

// AppendTail appends what follows the bytes of the last range.
func (m *Multipart) AppendTail(b []byte) []byte {
	b = append(b, "\r\n--"...)
	b = append(b, m.Boundary...)
	return append(b, "--\r\n"...)
}

// Len returns the length of the body in bytes.
func (m *Multipart) Len() int64 {
	b := m.AppendTail(make([]byte, 0, 256))
	n := int64(len(b))
	for i, r := range m.Ranges {
		b = m.AppendHead(b[:0], i)
		n += int64(len(b)) + r.Length
	}
	return n
}

// appendClean appends a field's value. Control characters become spaces, as in
// the fields of a response, so that a value cannot begin a line of its own.
func appendClean(b []byte, value string) []byte {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	if strings.IndexFunc(value, control) < 0 {
		return append(b, value...)
	}
	for i := range len(value) {
		c := value[i]
		if control(rune(c)) {
			c = ' '
		}
		b = append(b, c)
	}
	return b
}
