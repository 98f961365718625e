package forward

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/testing/race"
)

const (
	browserGET = "GET /static/app/main.css?v=20260101 HTTP/1.1\r\n" +
		"Host: www.example.com\r\n" +
		"Connection: keep-alive\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36\r\n" +
		"Accept: text/css,*/*;q=0.1\r\n" +
		"Referer: https://www.example.com/products/list?page=2\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-GB,en;q=0.9\r\n" +
		"Cookie: session=4f8a1c9e2b7d4c6f; theme=dark\r\n\r\n"
	appResponse = ok +
		"Server: gunicorn\r\n" +
		"Date: Thu, 26 Nov 2026 12:00:00 GMT\r\n" +
		"Content-Type: application/json; charset=utf-8\r\n" +
		"Set-Cookie: session=4f8a1c9e2b7d4c6f; Path=/; HttpOnly; SameSite=Lax\r\n" +
		"Connection: keep-alive\r\n" +
		"Keep-Alive: timeout=5\r\n" +
		"Content-Length: 512\r\n\r\n"
)

var full = Request{Peer: []byte("2001:db8::1"), Proto: "https", Trusted: true, XForwarded: true, RealIP: true, Forwarded: true,
	Via: "chert", Upgrade: true, Expect: true, Add: []byte("X-Added: me\r\n")}

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	dst := make([]byte, 0, 4096)
	for _, in := range []string{
		browserGET,
		"TRACE http://t?b HTTP/1.1\r\nHost: h\r\nConnection: upgrade, x-a, te\r\nX-A: 1\r\nX_B: 2\r\nUpgrade: h2c, websocket\r\nTE: trailers\r\n" +
			"X-Forwarded-For: a\r\nX-Forwarded-For: b\r\nForwarded: for=c\r\nVia: 1.1 chert\r\nMax-Forwards: 2147483647\r\n\r\n",
		"PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nTrailer: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nConnection: cookie\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n" + manyOptions(17) + "\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X_Y: z\r\n", 50) + "\r\n",
	} {
		var r http1.Request
		head := []byte(in)
		r.Parse(head, nil, nil)
		if n := testing.AllocsPerRun(100, func() { AppendRequest(dst, head, &r, &full) }); n != 0 {
			t.Errorf("%q: %v allocations", in, n)
		}
	}
	for _, in := range append(responseSeeds, appResponse) {
		var r http1.Response
		head := []byte(in)
		r.Parse(head, &http1.Expected{Upgrade: []byte("websocket")}, nil, nil)
		o := Response{Minor: 1, Close: true, Trailers: true, Via: "chert", Date: []byte("now"), Add: full.Add}
		if n := testing.AllocsPerRun(100, func() { AppendResponse(dst, head, &r, &o) }); n != 0 {
			t.Errorf("%q: %v allocations", in, n)
		}
	}
	trailer := []byte("X-Sum: 1\r\nX_Y: z\r\nCookie: a\r\n\r\n")
	_, fields, _ := http1.ParseTrailer(trailer, nil, nil, nil)
	if n := testing.AllocsPerRun(100, func() { AppendTrailer(dst, trailer, fields) }); n != 0 {
		t.Errorf("AppendTrailer: %v allocations", n)
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	head := []byte(browserGET)
	var r http1.Request
	r.Parse(head, nil, nil)
	o := Request{Peer: []byte("192.0.2.1"), Proto: "https", XForwarded: true, Via: "chert"}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(head)))
	for b.Loop() {
		if _, _, err := AppendRequest(dst, head, &r, &o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	head := []byte(appResponse)
	var r http1.Response
	r.Parse(head, &http1.Expected{}, nil, nil)
	o := Response{Minor: 1}
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(head)))
	for b.Loop() {
		if _, _, err := AppendResponse(dst, head, &r, &o); err != nil {
			b.Fatal(err)
		}
	}
}
