package http1

import (
	"strconv"
	"strings"
)

// AppendStatusLine appends the status line with net/http's reason phrase. minor
// 0 makes it HTTP/1.0, anything else HTTP/1.1.
func AppendStatusLine(dst []byte, minor uint8, status int) []byte {
	start := len(dst)
	if uint(status) < uint(len(statusLines)) && statusLines[status] != "" {
		dst = append(dst, statusLines[status]...)
	} else {
		dst = append(dst, "HTTP/1.1 "...)
		// RFC 9112 section 4: always three digits.
		for n := 100; n > 1 && status < n; n /= 10 {
			dst = append(dst, '0')
		}
		dst = strconv.AppendInt(dst, int64(status), 10)
		dst = append(dst, " status code "...)
		dst = strconv.AppendInt(dst, int64(status), 10)
		dst = append(dst, "\r\n"...)
	}
	if minor == 0 {
		dst[start+len("HTTP/1.")] = '0'
	}
	return dst
}

// AppendField appends a field line. As with net/http, CR and LF in value become
// spaces, so that a value cannot add lines, and space around it is dropped. The
// name is written unchanged: check it with ValidFieldName.
func AppendField(dst []byte, name, value string) []byte {
	for len(value) > 0 && isSpace(value[0]) {
		value = value[1:]
	}
	for len(value) > 0 && isSpace(value[len(value)-1]) {
		value = value[:len(value)-1]
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	start := len(dst)
	dst = append(dst, value...)
	if strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 {
		for i, c := range dst[start:] {
			if c == '\r' || c == '\n' {
				dst[start+i] = ' '
			}
		}
	}
	return append(dst, "\r\n"...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// AppendChunkSize appends the line before n bytes of chunk data, which CRLF
// must follow. n == 0 is the last chunk: a trailer section or an empty line
// follows.
func AppendChunkSize(dst []byte, n int) []byte {
	return append(strconv.AppendInt(dst, int64(n), 16), "\r\n"...)
}
