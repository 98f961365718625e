package bridge

import (
	"context"
	"testing"

	"github.com/chert-http/chert/internal/http1"
)

const browserGET = "GET /articles/2026/stone?page=2 HTTP/1.1\r\n" +
	"Host: www.example.com\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
	"Accept-Language: en-GB,en;q=0.5\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Referer: https://www.example.com/articles\r\n" +
	"Connection: keep-alive\r\n" +
	"Cookie: session=0123456789abcdef; theme=dark\r\n" +
	"Upgrade-Insecure-Requests: 1\r\n" +
	"Sec-Fetch-Dest: document\r\n" +
	"Sec-Fetch-Mode: navigate\r\n" +
	"Sec-Fetch-Site: same-origin\r\n" +
	"Priority: u=0, i\r\n\r\n"

func testConn() *Conn {
	return &Conn{ctx: context.Background(), t: &idleTransport{}, cfg: &Config{
		BaseContext: context.Background(),
		KeepAlives:  func() bool { return true },
	}}
}

// requests are heads with the allocations that their http.Request may cost:
// the block, the head's string, and the header map, which is one while it is
// empty, two up to eight entries and four beyond.
var requests = []struct {
	name, head string
	allocs     float64
}{
	{"no fields but Host", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 3},
	{"curl", "GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n", 5},
	{"eight fields", "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\nF: 6\r\nG: 7\r\n\r\n", 5},
	{"POST", "POST /x?y=z HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n", 6},
	{"browser", browserGET, 7},
}

func TestRequestAllocations(t *testing.T) {
	for _, r := range requests {
		c, head := testConn(), []byte(r.head)
		var h http1.Request
		if n, err := h.Parse(head, nil, nil); n != len(head) {
			t.Fatal(r.name, n, err)
		}
		got := testing.AllocsPerRun(100, func() {
			if _, err := c.newExchange(&h, head); err != nil {
				t.Fatal(err)
			}
		})
		if got > r.allocs {
			t.Errorf("%s: %v allocations, want at most %v", r.name, got, r.allocs)
		}
	}
}

func BenchmarkNewExchange(b *testing.B) {
	for _, r := range requests {
		b.Run(r.name, func(b *testing.B) {
			c, head := testConn(), []byte(r.head)
			var h http1.Request
			n, err := h.Parse(head, nil, nil)
			if n != len(head) {
				b.Fatal(n, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.newExchange(&h, head); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
