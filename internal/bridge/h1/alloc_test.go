package h1

import (
	"testing"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http1"
)

// heads are those of requests with the allocations that their http.Request may cost:
// the block, the head's string, and the header map, which is one while it is
// empty, two up to eight entries and four beyond.
var heads = []struct {
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
	for _, r := range heads {
		s, head := testConfig(nil).New(new(fakeLink)), []byte(r.head)
		var h http1.Request
		if n, err := h.Parse(head, nil, nil); n != len(head) {
			t.Fatal(r.name, n, err)
		}
		got := testing.AllocsPerRun(100, func() {
			if _, err := s.newExchange(&h, head, bridge.Timing{}); err != nil {
				t.Fatal(err)
			}
		})
		if got > r.allocs {
			t.Errorf("%s: %v allocations, want at most %v", r.name, got, r.allocs)
		}
	}
}

func BenchmarkNewExchange(b *testing.B) {
	for _, r := range heads {
		b.Run(r.name, func(b *testing.B) {
			s, head := testConfig(nil).New(new(fakeLink)), []byte(r.head)
			var h http1.Request
			n, err := h.Parse(head, nil, nil)
			if n != len(head) {
				b.Fatal(n, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.newExchange(&h, head, bridge.Timing{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
