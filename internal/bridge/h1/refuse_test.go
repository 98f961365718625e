package h1

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// The page that a client does not read is not copied: all share one.
func TestRefusalPageIsShared(t *testing.T) {
	t.Parallel()
	page := make([]byte, 1<<20)
	cfg := testConfig(http.NotFoundHandler())
	cfg.RefusalPage = func(int) (string, []byte) { return "text/html", page }
	l := &fakeLink{now: sys.Nanotime(), most: 64 << 10, in: []byte("GET\r\n\r\n")}
	s := cfg.New(l)
	if next := s.Data(false); next != conn.Linger || !l.out.Blocked() {
		t.Fatalf("%v, with nothing left", next)
	}
	if l.owner == nil {
		t.Fatal("without a Holder the Link copies what waits")
	}
	for l.out.Blocked() {
		l.resume()
	}
}

// A refusal costs the same, whatever the size of the page.
func TestRefusalPageAllocations(t *testing.T) {
	page := make([]byte, 1<<20)
	cfg := testConfig(http.NotFoundHandler())
	cfg.RefusalPage = func(int) (string, []byte) { return "text/html", page }
	l := &fakeLink{now: sys.Nanotime()}
	s := cfg.New(l)
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			l.in = []byte("GET\r\n\r\n")
			s.Data(false)
		}
	})
	if n := r.AllocedBytesPerOp(); n > 4<<10 {
		t.Errorf("%d bytes", n)
	}
}
