package faults

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
)

// Some servers read each of these differently. Here it is refused once, and
// what follows it is never served as a request.
func TestFaultsSmuggling(t *testing.T) {
	t.Parallel()
	const (
		p  = "POST / HTTP/1.1\r\n"
		h  = "Host: h\r\n"
		te = "Transfer-Encoding: chunked\r\n"
		z  = "0\r\n\r\n"
	)
	chunk := func(s string) string { return p + h + te + "\r\n" + s }
	for _, tt := range []struct {
		name   string
		in     string
		status int
	}{
		{"CL and TE", p + h + "Content-Length: 5\r\n" + te + "\r\n" + z, 400},
		{"TE and CL", p + h + te + "Content-Length: 5\r\n\r\n" + z, 400},
		{"two CL, equal", p + h + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", 400},
		{"two CL, different", p + h + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
		{"CL list", p + h + "Content-Length: 1, 1\r\n\r\na", 400},
		{"CL with sign", p + h + "Content-Length: +1\r\n\r\na", 400},
		{"CL negative", p + h + "Content-Length: -1\r\n\r\na", 400},
		{"CL hexadecimal", p + h + "Content-Length: 0x1\r\n\r\na", 400},
		{"CL empty", p + h + "Content-Length: \r\n\r\na", 400},
		{"CL too large", p + h + "Content-Length: 9223372036854775808\r\n\r\na", 400},
		{"CL with junk", p + h + "Content-Length: 1 a\r\n\r\na", 400},
		{"CL with digits of another script", p + h + "Content-Length: \u0661\r\n\r\na", 400},
		{"TE chunked twice", p + h + te + te + "\r\n" + z, 400},
		{"TE chunked twice in a list", p + h + "Transfer-Encoding: chunked, chunked\r\n\r\n" + z, 400},
		{"TE xchunked", p + h + "Transfer-Encoding: xchunked\r\n\r\n" + z, 501},
		{"TE chunked and another", p + h + "Transfer-Encoding: chunked, gzip\r\n\r\n" + z, 400},
		{"TE another and chunked", p + h + "Transfer-Encoding: gzip, chunked\r\n\r\n" + z, 501},
		{"TE identity", p + h + "Transfer-Encoding: identity\r\n\r\n", 501},
		{"TE with a parameter", p + h + "Transfer-Encoding: chunked;a=b\r\n\r\n" + z, 400},
		{"TE quoted", p + h + "Transfer-Encoding: \"chunked\"\r\n\r\n" + z, 501},
		{"TE empty", p + h + "Transfer-Encoding:\r\n\r\n" + z, 400},
		{"TE in 1.0", "POST / HTTP/1.0\r\n" + h + te + "\r\n" + z, 400},
		{"TE behind VT", p + h + "Transfer-Encoding:\vchunked\r\n\r\n" + z, 400},
		{"obs-fold", p + h + "X: a\r\n b\r\nContent-Length: 0\r\n\r\n", 400},
		{"obs-fold of TE", p + h + "Transfer-Encoding:\r\n chunked\r\n\r\n" + z, 400},
		{"space before the first field", p + " " + h + "\r\n", 400},
		{"space before the colon", p + h + "Content-Length : 1\r\n\r\na", 400},
		{"tab before the colon", p + h + "Transfer-Encoding\t: chunked\r\n\r\n" + z, 400},
		{"no colon", p + h + "Content-Length\r\n\r\na", 400},
		{"empty name", p + h + ": a\r\n\r\n", 400},
		{"bare LF behind the request line", "POST / HTTP/1.1\n" + h + "\r\n", 400},
		{"bare LF behind a field", p + "Host: h\nContent-Length: 0\r\n\r\n", 400},
		{"bare LF as the empty line", p + h + "\n", 400},
		{"bare CR in a value", p + h + "X: a\rContent-Length: 1\r\n\r\na", 400},
		{"bare CR in the request line", "POST /\r HTTP/1.1\r\n" + h + "\r\n", 400},
		{"NUL in a value", p + h + "X: a\x00b\r\n\r\n", 400},
		{"NUL in a name", p + h + "X\x00: a\r\n\r\n", 400},
		{"NUL in the target", "POST /\x00 HTTP/1.1\r\n" + h + "\r\n", 400},
		{"no Host", p + "\r\n", 400},
		{"two Hosts", p + h + h + "\r\n", 400},
		{"space in the target", "POST /a b HTTP/1.1\r\n" + h + "\r\n", 400},
		{"two spaces", "POST  / HTTP/1.1\r\n" + h + "\r\n", 400},
		{"version 2", "POST / HTTP/2.0\r\n" + h + "\r\n", 505},
		{"preface of HTTP/2 with a field", "PRI * HTTP/2.0\r\n" + h + "\r\nSM\r\n\r\n", 505},
		{"no version", "POST /\r\n" + h + "\r\n", 400},
		{"CONNECT to nowhere", "CONNECT / x HTTP/1.1\r\n" + h + "\r\n", 400},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400},

		{"chunk size too large", chunk("8000000000000000\r\na\r\n" + z), 400},
		{"chunk size of many digits", chunk("fffffffffffffffff\r\na\r\n" + z), 400},
		{"chunk size that wraps to 1", chunk("10000000000000001\r\na\r\n" + z), 400},
		{"chunk size of many zeros", chunk("00000000000000001\r\na\r\n" + z), 400},
		{"chunk size negative", chunk("-1\r\na\r\n" + z), 400},
		{"chunk size with plus", chunk("+1\r\na\r\n" + z), 400},
		{"chunk size with 0x", chunk("0x1\r\na\r\n" + z), 400},
		{"chunk size with junk", chunk("1z\r\na\r\n" + z), 400},
		{"chunk size with space and junk", chunk("1 1\r\na\r\n" + z), 400},
		{"chunk size with underscore", chunk("1_0\r\n0123456789abcdef\r\n" + z), 400},
		{"chunk size missing", chunk("\r\na\r\n" + z), 400},
		{"chunk size behind a space", chunk(" 1\r\na\r\n" + z), 400},
		{"chunk line with bare LF", chunk("1\na\r\n" + z), 400},
		{"chunk line with bare CR", chunk("1\r1\r\na\r\n" + z), 400},
		{"chunk data too long", chunk("1\r\nab\r\n" + z), 400},
		{"chunk data without CRLF", chunk("1\r\na" + z), 400},
		{"chunk data with bare LF", chunk("1\r\na\n" + z), 400},
		{"chunk extension with NUL", chunk("1;a=\x00\r\na\r\n" + z), 400},
		{"chunk extension with bare LF", chunk("1;a\n\r\na\r\n" + z), 400},
		{"chunk extension not closed", chunk("1;a=\"b\r\na\r\n" + z), 400},
		{"trailer with framing", chunk("1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n"), 400},
		{"trailer with TE", chunk("1\r\na\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
		{"trailer folded", chunk("1\r\na\r\n0\r\nA: b\r\n c\r\n\r\n"), 400},
		{"trailer with bare LF", chunk("1\r\na\r\n0\r\nA: b\n\n"), 400},
		{"trailer with a space before the colon", chunk("1\r\na\r\n0\r\nA : b\r\n\r\n"), 400},
		{"trailer announced for framing", p + h + te + "Trailer: Content-Length\r\n\r\n" + z, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/smuggled" {
						t.Error("the second request was served")
					}
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						if errors.Is(err, io.EOF) {
							t.Errorf("the body ended well: %v", err)
						}
						http.Error(w, "bad body", 400)
					}
				})})
				for _, before := range []string{"", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"} {
					for _, size := range []int{1 << 20, 1} {
						c := fs.Dial()
						c.SendSlowly(before+tt.in+"GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", size)
						if before != "" {
							c.Status(200)
						}
						c.Refused(tt.status)
					}
				}
				fs.Settled(4)
			})
		})
	}
}

// The same malformed bodies under a handler that ignores them, or aborts:
// nothing of them is ever served.
func TestFaultsBadBodyUnread(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		h      http.HandlerFunc
		status int
	}{
		{"read, error ignored", func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, 400},
		{"unread", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }, 200},
		{"closed", func(w http.ResponseWriter, r *http.Request) { r.Body.Close(); io.WriteString(w, "ok") }, 200},
		{"flushed before", func(w http.ResponseWriter, r *http.Request) {
			http.NewResponseController(w).EnableFullDuplex()
			w.(http.Flusher).Flush()
			io.Copy(io.Discard, r.Body)
		}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/" {
						t.Error("the second request was served")
					}
					tt.h(w, r)
				})})
				for _, body := range []string{"0x1\r\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "1\r\na\r\n0\r\nContent-Length: 1\r\n\r\n"} {
					c := fs.Dial()
					c.Send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body + strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n", 3))
					c.Status(tt.status)
					c.Ended()
					c.Close()
				}
				fs.Settled(3)
			})
		})
	}
}
