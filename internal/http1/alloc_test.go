package http1

import (
	"testing"

	"github.com/chert-http/chert/internal/testing/race"
)

func TestAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var r Request
	var p Progress
	var fields [8]Field
	get := []byte(browserGET)
	put := []byte("PUT http://a/ HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: , chunked\r\nExpect: 100-continue, x\r\n" +
		"Connection: close, upgrade\r\nUpgrade: h2c\r\nTrailer: x-sum\r\nX-Other: a\tb\r\n\r\n")
	bad := []byte("GET / HTTP/1.1\r\nHost : a\r\n\r\n")
	chunks := []byte("5;a=\"b\"\r\nhello\r\n1\r\nx\r\n0\r\n")
	trailer := []byte("X-Sum: 1\r\nX-Other: 2\r\n\r\n")
	dst := make([]byte, 0, 1024)
	name := []byte("content-type")
	var resp Response
	answer := []byte(appResponse + "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n")
	switched := []byte("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
	badResponse := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
	r.Parse(get, nil, nil) // lets Fields grow
	resp.Parse(answer, &Expected{}, nil, nil)
	for what, f := range map[string]func(){
		"Parse GET":    func() { r.Parse(get, &p, &DefaultLimits) },
		"Parse PUT":    func() { r.Parse(put, &p, nil) },
		"Parse no p":   func() { r.Parse(get, nil, nil) },
		"Parse refuse": func() { r.Parse(bad, &p, nil) },
		"Parse byte by byte": func() {
			for i := range get {
				r.Parse(get[:i], &p, nil)
			}
			p = Progress{}
		},
		"Response": func() {
			n, _ := resp.Parse(answer, &Expected{}, nil, &DefaultLimits)
			d := resp.Body()
			_, used, _ := d.Decode(dst[:cap(dst)], answer[n:])
			d.Trailer(answer[n+used:], fields[:], &p, nil)
			if !d.Reusable(nil) {
				t.Error("not whole")
			}
		},
		"Response switch": func() { resp.Parse(switched, &Expected{Upgrade: []byte("WebSocket")}, &p, nil) },
		"Response refuse": func() { resp.Parse(badResponse, &Expected{}, &p, nil) },
		"Response byte by byte": func() {
			for i := range answer[:200] {
				resp.Parse(answer[:i], &Expected{}, &p, nil)
			}
			p = Progress{}
		},
		"ParseTrailer": func() { ParseTrailer(trailer, fields[:], &p, nil) },
		"Decode": func() {
			var c Chunked
			c.Decode(dst[:cap(dst)], chunks)
		},
		"Append": func() {
			dst = AppendStatusLine(dst[:0], 1, 200)
			dst = AppendStatusLine(dst, 0, 599)
			dst = AppendField(dst, "A", " b\r\nc ")
			dst = AppendChunkSize(dst, 4711)
		},
		"CanonicalName": func() { CanonicalName(name, LookupField(name)) },
		"HasToken":      func() { HasToken(name, "close") },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	unknown := []byte("x-unknown-field")
	if n := testing.AllocsPerRun(100, func() { CanonicalName(unknown, FieldUnknown) }); n != 1 {
		t.Errorf("CanonicalName of an unknown name: %v allocations, want 1", n)
	}
}
