package servertest

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

const (
	// GET is a request.
	GET = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
	// Smuggled is a request that must not be served when it hides in a body,
	// and must be when it follows one.
	Smuggled = "GET /quiet HTTP/1.1\r\nHost: h\r\n\r\n"
	// Switched is the response of a hijacker that switches to another protocol.
	Switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
)

// Ask returns a request of HTTP/1.1 without a body: line is its method and
// target.
func Ask(line string, fields ...string) string {
	return RawHead(append([]string{line + " HTTP/1.1", "Host: h"}, fields...)...)
}

// Ask10 is Ask for HTTP/1.0, without Host.
func Ask10(line string, fields ...string) string {
	return RawHead(append([]string{line + " HTTP/1.0"}, fields...)...)
}

// Post returns a request with a body of a known length, PostChunks one in
// chunks.
func Post(path, body string, fields ...string) string {
	return Ask("POST "+path, append(fields, fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

func PostChunks(path, wire string, fields ...string) string {
	return Ask("POST "+path, append(fields, "Transfer-Encoding: chunked")...) + wire
}

// RawHead returns a head of any lines.
func RawHead(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// Chunks splits s into chunks of n bytes, with the last chunk after them.
func Chunks(s string, n int) string {
	var b strings.Builder
	for len(s) > 0 {
		k := min(n, len(s))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", k, s[:k])
		s = s[k:]
	}
	return b.String() + "0\r\n\r\n"
}

// Set, Put and Flush abbreviate what handlers do.
func Set(w http.ResponseWriter, key string, values ...string) { w.Header()[key] = values }
func Put(w io.Writer, s string)                               { io.WriteString(w, s) }
func Flush(w http.ResponseWriter)                             { w.(http.Flusher).Flush() }

// DateLine matches the field of a response that differs from run to run.
var DateLine = regexp.MustCompile(`Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

// Undated removes the Date lines from a response.
func Undated(s string) string { return DateLine.ReplaceAllString(s, "") }

// BeforeRefusal returns wire up to the status of the last response, a refusal,
// whose text differs between servers.
func BeforeRefusal(wire string) string {
	i := strings.LastIndex(wire, "HTTP/1.1 ")
	return wire[:min(i+len("HTTP/1.1 400"), len(wire))]
}

// Brief shortens the output of a failure.
func Brief(s string) string {
	if len(s) <= 700 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q ... %q (%d bytes)", s[:400], s[len(s)-200:], len(s))
}

// Pattern returns n bytes in which no two stretches are equal. They are shared:
// do not write to them.
func Pattern(n int) []byte { return numbers()[:n:n] }

var numbers = sync.OnceValue(func() []byte {
	b := make([]byte, 0, 9<<20)
	for i := 0; len(b) < 8<<20; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), ',')
	}
	return b
})

// RequestNote describes everything in a request that its handler can see and
// that is not empty.
func RequestNote(r *http.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q %s host=%q", r.Method, r.RequestURI, r.Proto, r.Host)
	add := func(show bool, format string, args ...any) {
		if show {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	u := r.URL
	add(u.Scheme != "", "scheme=%q", u.Scheme)
	add(u.Opaque != "", "opaque=%q", u.Opaque)
	add(u.User != nil, "user=%q", u.User)
	add(u.Host != "", "urlhost=%q", u.Host)
	add(u.Path != r.RequestURI, "path=%q", u.Path)
	add(u.RawPath != "", "rawpath=%q", u.RawPath)
	add(u.ForceQuery, "forcequery")
	add(u.RawQuery != "", "query=%q", u.RawQuery)
	add(u.Fragment != "", "fragment=%q", u.Fragment)
	add(u.OmitHost, "omithost")
	add(len(r.Header) > 0, "header=%q", r.Header)
	add(r.Header == nil, "noheader")
	add(r.ContentLength != 0, "length=%d", r.ContentLength)
	add(r.TransferEncoding != nil, "te=%q", r.TransferEncoding)
	add(r.Trailer != nil, "trailer=%q", r.Trailer)
	add(r.Close, "close")
	add(r.Body != http.NoBody, "body")
	add(r.ProtoMajor != 1 || r.ProtoMinor != int(r.Proto[7]-'0'), "major=%d minor=%d", r.ProtoMajor, r.ProtoMinor)
	add(r.Form != nil || r.PostForm != nil || r.MultipartForm != nil || r.GetBody != nil || r.Response != nil ||
		r.TLS != nil || r.Pattern != "", "odd=%v", r)
	return b.String()
}
