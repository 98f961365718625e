package proxy

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chert-http/chert"
)

// nginxCases are what nginx's own tests (github.com/nginx/nginx-tests) require of a proxy, by the
// names of their files. Those are in Perl, and their servers end lines with LF alone, which a
// strict proxy refuses; here servers send CRLF.
var nginxCases = []struct {
	name     string // the file, and what it calls the case
	request  string // the target, or all of it if there is a space
	response string
	want     string // of all that the client receives, a regexp
	not      string
}{
	{"proxy_extra_data: response with extra data", "/", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSEE-THIS-BUT-NOT-THIS\n", "SEE-THIS$", "BUT"},
	{"proxy_extra_data: too short response", "/", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSEE-THIS-TOO-SHORT-RESPONSE\n", "(?s)Content-Length: 100.*SEE-THIS-TOO", ""},
	{"proxy_extra_data: empty too short response", "/", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "200 OK(?s:.*)\r\n\r\n$", ""},
	{"proxy_extra_data: no data in HEAD", "HEAD / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSEE-THIS-BUT-NOT-THIS\n", "200 OK", "SEE"},
	{"proxy_extra_data: too short to HEAD", "HEAD / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nSEE-THIS\n", "200 OK", "SEE"},
	{"proxy_extra_data: empty response to HEAD", "HEAD / HTTP/1.1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "(?s)200 OK.*Content-Length: 100", ""},
	{"proxy_extra_data: zero size", "/", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nNOT-THIS\n", "200 OK", "NOT-THIS"},
	{"proxy_chunked: chunked", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nSEE-THIS\n\r\n0\r\n\r\n", "SEE-THIS", ""},
	{"proxy_chunked: long chunk, extension", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0009;x=y\r\nSEE-THIS\n\r\n0\r\n\r\n", "SEE-THIS", "x=y"},
	{"proxy_chunked: trailers", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nSEE-THIS\n\r\n0\r\nX: y\r\n\r\n", "(?s)SEE-THIS.*\r\n0\r\n\r\n$", "X: y"},
	{"proxy_chunked_extra: chunked with extra data", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nzzz", "200 OK", "zzz"},
	{"proxy_connection_headers: upgrade in 200", "/", "HTTP/1.1 200 OK\r\nUpgrade: foo\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\n", "200 OK", "Upgrade: foo"},
	{"proxy_connection_headers: upgrade in 101", "GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "(?is) 101 .*Upgrade: websocket", ""},
	{"proxy_duplicate_headers: invalid length", "/", "HTTP/1.1 200 OK\r\nContent-Length: foo\r\n\r\n", "502 Bad", ""},
	{"proxy_duplicate_headers: duplicate length", "/", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", "502 Bad", ""},
	{"proxy_duplicate_headers: unknown transfer encoding", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n", "502 Bad", ""},
	{"proxy_duplicate_headers: duplicate transfer encoding", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 Bad", ""},
	{"proxy_duplicate_headers: length and transfer encoding", "/", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "502 Bad", ""},
	{"proxy_duplicate_headers: transfer encoding and length", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", "502 Bad", ""},
	{"proxy_early_hints: early hints", "/", "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSEE-THIS",
		"(?s)103 Early.*Link.*200 OK.*SEE-THIS", ""},
	{"proxy_early_hints: early hints only", "/", "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n", "502 Bad Gateway", ""},
	{"proxy_early_hints: early hints off", "GET / HTTP/1.0\r\n", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSEE-THIS", "SEE-THIS", "103"},
	{"proxy_method: get", "/", "echo", "GET / HTTP/1.1", ""},
	{"proxy_method: preserve", "PRESERVE / HTTP/1.1\r\n", "echo", "PRESERVE / HTTP/1.1", ""},
	{"proxy_trailers: trailers", "GET / HTTP/1.1\r\nTE: trailers\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nSEE-THIS\r\n0\r\nX-Trailer: foo\r\n\r\n", "(?s)SEE-THIS\r\n0\r\nX-Trailer: foo\r\n\r\n$", ""},
	{"proxy_trailers: trailers, no body", "GET / HTTP/1.1\r\nTE: trailers\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: foo\r\n\r\n", "(?s)\r\n\r\n0\r\nX-Trailer: foo\r\n\r\n$", ""},
	{"proxy_trailers: to a POST", "POST / HTTP/1.1\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 200 OK\r\nTrailer: X-Trailer\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: foo\r\n\r\n", "(?s)\r\n\r\n0\r\nX-Trailer: foo\r\n\r\n$", ""},
	{"proxy_trailers: trailers not allowed", "GET / HTTP/1.1\r\nTE: trailers\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nSEE-THIS\r\n0\r\nContent-Length: 3\r\n\r\n", "SEE-THIS\r\n$", "Content-Length: 3"}, // nginx leaves the field out; it is refused here
	{"proxy_unfinished: length no final chunk", "/", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nunfinished\r\n", "unfinished\r\n$", "\r\n0\r\n"},
	{"proxy_unfinished: chunked no final chunk", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nunfinished\r\n", "unfinished", "\r\n0\r\n"},
	{"proxy_unfinished: length final chunk", "/", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfinished\r\n", "finished\r\n$", ""},
	{"proxy_unfinished: chunked final chunk", "/", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nfinished\r\n\r\n0\r\n\r\n", "finished\r\n\r\n0\r\n\r\n$", ""},
	{"proxy_noclose: no close", "/", "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nTEST-OK-IF-Y", "TEST-OK-IF-Y$", ""},
	{"proxy_request_buffering_chunked: body", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", "echo", "\r\n0123456789$", "(?i)transfer-encoding: chunked\r\n(?s:.*)content-length: \\d"},
	{"proxy_pass_request: headers", "GET / HTTP/1.1\r\nX-Blah: a\r\nConnection: close, X-Hop\r\nX-Hop: b\r\n", "echo", "X-Blah: a", "X-Hop"},
	{"proxy_upstream_cookie: two cookies", "/", "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n", "(?s)Set-Cookie: a=1.*Set-Cookie: b=2", ""},
	{"proxy_non_idempotent: post", "POST / HTTP/1.1\r\nContent-Length: 0\r\n", "", "502 Bad", ""},
}

func TestNginxCases(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		for _, c := range nginxCases {
			t.Run(c.name, func(t *testing.T) {
				o := start(t, func(conn *conn) {
					r, body, ok := conn.request()
					if !ok {
						return
					}
					if c.response != "echo" {
						conn.put(c.response)
						return
					}
					var b strings.Builder
					b.WriteString(r.Method + " " + r.RequestURI + " " + r.Proto + "\r\n")
					r.Header.Write(&b)
					text := b.String() + "\r\n" + body
					(&http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, ContentLength: int64(len(text)),
						Body: io.NopCloser(strings.NewReader(text))}).Write(conn)
				})
				ts := (&setup{}).start(t, e, o.addr())
				client := ts.Dial()
				request := c.request
				if !strings.Contains(request, " ") {
					request = "GET " + request + " HTTP/1.1\r\n"
				}
				if !strings.Contains(request, "Connection: ") {
					request += "Connection: close\r\n"
				}
				request += "Host: localhost\r\n\r\n"
				if strings.Contains(request, "chunked") {
					request += "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"
				}
				client.Send(request)
				b, _ := io.ReadAll(client.R) // a response that is cut off may end with a reset
				got := string(b)
				if !regexp.MustCompile(c.want).MatchString(got) || c.not != "" && regexp.MustCompile(c.not).MatchString(got) {
					t.Errorf("received %q, want %s and not %s", got, c.want, c.not)
				}
				if n := o.dials(); n != 1 && c.response != "" && !strings.Contains(c.want, "502") {
					t.Errorf("%d connections", n)
				}
			})
		}
	})
}
