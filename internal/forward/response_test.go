package forward

import (
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/http1"
)

const ok = "HTTP/1.1 200 OK\r\n"

func TestAppendResponse(t *testing.T) {
	date := Response{Minor: 1, Date: []byte("now")}
	one, zero := Response{Minor: 1}, Response{}
	head, connect := http1.Expected{Head: true}, http1.Expected{Connect: true}
	ws := http1.Expected{Upgrade: []byte("websocket")}
	const (
		none, length, chunked = http1.FramingNone, http1.FramingLength, http1.FramingChunked
		close, tunnel         = http1.FramingClose, http1.FramingTunnel
	)
	for _, c := range []struct {
		in      string
		req     http1.Expected
		o       Response
		want    string
		framing http1.Framing
		why     string
	}{
		// Status line.
		{"HTTP/1.1 404 Not  Here\t\x80 \r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 404 Not  Here\t\x80 |Content-Length: 0", length, "the reason stays"},
		{"HTTP/1.1 200\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 200 |Content-Length: 0", length, "RFC 9112 4: the SP must be sent"},
		{"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 0", length, "the version is this server's"},
		// Fields that stay.
		{ok + "Server: a\r\nset-cookie: b\r\nSet-Cookie:\t c \r\nX_Y:\r\nContent-Length: 1\r\nETag: \"d\"\r\n", http1.Expected{}, one,
			"HTTP/1.1 200 OK|Server: a|set-cookie: b|Set-Cookie: c|X_Y: |ETag: \"d\"|Content-Length: 1", length, "order, case and duplicates are kept"},
		// Hop by hop.
		{ok + "Connection: close\r\nKeep-Alive: timeout=5\r\nProxy-Connection: a\r\nProxy-Authenticate: b\r\nUpgrade: c\r\nTE: d\r\nTrailer: e\r\nContent-Length: 0\r\n",
			http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 0", length, "all of them"},
		{ok + "X-A: 1\r\nConnection: x-a, X-B\r\nx-b: 2\r\nX-C: 3\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|X-C: 3|Content-Length: 0", length, "listed"},
		{ok + "Connection: Content-Length, Via\r\nVia: a\r\nContent-Length: 1\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 1", length, "listed; the framing is this server's"},
		{ok + manyOptions(16) + "X15: a\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 0", length, "as many as may be"},
		// Framing for a client of 1.1.
		{ok + "content-length: 007\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 7", length, "made anew"},
		{ok + "transfer-encoding: ,CHUNKED\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Transfer-Encoding: chunked", chunked, "made anew"},
		{ok, http1.Expected{}, one, "HTTP/1.1 200 OK|Transfer-Encoding: chunked", chunked, "until close becomes chunked"},
		{ok + "Content-Length: 5\r\n", head, one, "HTTP/1.1 200 OK|Content-Length: 5", none, "HEAD"},
		{ok + "Transfer-Encoding: chunked\r\n", head, one, "HTTP/1.1 200 OK", none, "HEAD"},
		{ok, head, one, "HTTP/1.1 200 OK", none, "HEAD"},
		{"HTTP/1.1 304 x\r\nContent-Length: 5\r\n", http1.Expected{}, one, "HTTP/1.1 304 x|Content-Length: 5", none, "304"},
		{"HTTP/1.1 204 x\r\nContent-Length: 5\r\n", http1.Expected{}, one, "HTTP/1.1 204 x", none, "204: removed"},
		{"HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n", http1.Expected{}, one, "HTTP/1.1 204 x", none, "204: removed"},
		{ok + "Content-Length: 5\r\n", connect, one, "HTTP/1.1 200 OK", tunnel, "2xx to CONNECT: removed"},
		{ok + "Content-Length: 1\r\n", http1.Expected{}, Response{Minor: 1, Close: true}, "HTTP/1.1 200 OK|Content-Length: 1|Connection: close", length, "the server closes"},
		// Framing for a client of 1.0.
		{ok + "Content-Length: 1\r\n", http1.Expected{}, zero, "HTTP/1.0 200 OK|Content-Length: 1|Connection: keep-alive", length, "it has asked for keep-alive"},
		{ok + "Content-Length: 1\r\n", http1.Expected{}, Response{Close: true}, "HTTP/1.0 200 OK|Content-Length: 1|Connection: close", length, "it has not"},
		{ok + "Transfer-Encoding: chunked\r\nTrailer: a\r\n", http1.Expected{}, Response{Trailers: true}, "HTTP/1.0 200 OK|Connection: close", close, "chunked ends with the connection"},
		{ok, http1.Expected{}, zero, "HTTP/1.0 200 OK|Connection: close", close, "until close"},
		{ok, head, zero, "HTTP/1.0 200 OK|Connection: keep-alive", none, "HEAD"},
		// Trailers.
		{ok + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", http1.Expected{}, Response{Minor: 1, Trailers: true}, "HTTP/1.1 200 OK|Trailer: X-Sum|Transfer-Encoding: chunked", chunked, "announced"},
		{ok + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Transfer-Encoding: chunked", chunked, "the client takes none"},
		{ok + "Trailer: X-Sum\r\n", http1.Expected{}, Response{Minor: 1, Trailers: true}, "HTTP/1.1 200 OK|Transfer-Encoding: chunked", chunked, "until close has none"},
		// Interim responses and switches.
		{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nX: y\r\nContent-Length: 0\r\n", http1.Expected{}, date, "HTTP/1.1 103 Early Hints|Link: </a>", none, "103"},
		{"HTTP/1.1 100 Continue\r\n", http1.Expected{}, Response{Minor: 1, Close: true}, "HTTP/1.1 100 Continue", none, "nothing closes with it"},
		{"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n", http1.Expected{}, zero, "", none, "RFC 9110 15.2: not to 1.0"},
		{"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: a\r\n", ws, Response{Minor: 1, Close: true},
			"HTTP/1.1 101 x|Upgrade: websocket|Sec-WebSocket-Accept: a|Connection: Upgrade", tunnel, "101"},
		{"HTTP/1.1 426 x\r\nUpgrade: a, b\r\nConnection: upgrade\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 426 x|Upgrade: a, b|Content-Length: 0|Connection: Upgrade", length, "426 must have it"},
		{"HTTP/1.1 426 x\r\nUpgrade: a\r\nConnection: upgrade\r\nContent-Length: 0\r\n", http1.Expected{}, Response{Minor: 1, Close: true}, "HTTP/1.1 426 x|Upgrade: a|Content-Length: 0|Connection: Upgrade, close", length, "and the server closes"},
		{ok + "Upgrade: h2c\r\nConnection: upgrade\r\nContent-Length: 0\r\n", http1.Expected{}, one, "HTTP/1.1 200 OK|Content-Length: 0", length, "an offer of the upstream to the gateway"},
		// What is added.
		{ok + "Content-Length: 0\r\n", http1.Expected{}, date, "HTTP/1.1 200 OK|Date: now|Content-Length: 0", length, "RFC 9110 6.6.1"},
		{ok + "date: then\r\nContent-Length: 0\r\n", http1.Expected{}, date, "HTTP/1.1 200 OK|date: then|Content-Length: 0", length, "the upstream's"},
		{ok + "Date: then\r\nConnection: date\r\nContent-Length: 0\r\n", http1.Expected{}, date, "HTTP/1.1 200 OK|Date: now|Content-Length: 0", length, "the upstream's was removed"},
		{"HTTP/1.0 200 OK\r\nVia: 1.1 a\r\nContent-Length: 0\r\n", http1.Expected{}, Response{Minor: 1, Via: "chert", Add: []byte("A: b\r\n")},
			"HTTP/1.1 200 OK|Via: 1.1 a|Content-Length: 0|Via: 1.0 chert|A: b", length, "Via has the version that was received"},
		{ok + "Location: /a\r\nContent-Location: //h?b\r\nSet-Cookie: c=d; Path=/\r\nContent-Length: 0\r\n", http1.Expected{},
			Response{Minor: 1, Outer: &Outer{"/p", "h"}}, "HTTP/1.1 200 OK|Location: /p/a|Content-Location: //h/p?b|Set-Cookie: c=d; Path=/p|Content-Length: 0", length, "below a prefix"},
		{"HTTP/1.1 103 Early Hints\r\nLocation: /a\r\n", http1.Expected{}, Response{Minor: 1, Outer: &Outer{"/p", "h"}},
			"HTTP/1.1 103 Early Hints|Location: /a", none, "not in interim ones"},
		{ok + "Connection: x-a\r\nX-A: evil\r\nContent-Length: 0\r\n", http1.Expected{}, Response{Minor: 1, Add: []byte("X-A: me\r\n")}, "HTTP/1.1 200 OK|Content-Length: 0|X-A: me", length, "removed, then added"},
	} {
		got, framing, err := sendBack(t, c.in+"\r\n", c.req, c.o)
		if lines(got) != c.want || c.want != "" && !strings.HasSuffix(got, "\r\n\r\n") || framing != c.framing || err != nil {
			t.Errorf("%s: %q\n got %q, %v, %v\nwant %s, %v", c.why, c.in, got, framing, err, c.want, c.framing)
		}
	}
	if got, _, err := sendBack(t, ok+manyOptions(17)+"\r\n", http1.Expected{}, one); err != errManyOptionsBack {
		t.Errorf("one option more than may be: got %q, %v", got, err)
	}
}
