package h2_test

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/race"
)

// A request that is answered on the loop takes few allocations, and a direct one hardly
// any; the client here makes none.
func TestAllocs(t *testing.T) {
	if !sys.HavePoller || race.Enabled {
		t.Skip("allocations are others there")
	}
	for _, tt := range []struct {
		name  string
		h     http.Handler
		most  float64
		bytes float64
	}{
		{"plain", hf(hello), 3, 704 + 48 + 32}, // the exchange, the header's map, the strings
		{"direct", direct.NewResponse(200, http.Header{"Content-Type": {"text/plain"}}, []byte("hello")), 0, 0},
	} {
		s := serve(t, "inline", &chert.Server{Handler: tt.h})
		c := s.raw()
		c.get(1, "/")
		const batch = 100
		id := uint32(3)
		requests := make([][]byte, 50)
		for i := range requests {
			for range batch {
				c.headers(id, true, get...)
				id += 2
			}
			requests[i] = bytes.Clone(c.out.Bytes())
			c.out.Reset()
		}
		one := 0 // bytes of an answer
		c.Write(requests[0])
		in := make([]byte, 64<<10)
		count := func() int {
			ends := 0
			n := 0
			for ends < batch {
				k, err := io.ReadFull(c.Conn, in[:9])
				if err != nil {
					t.Fatal(err)
				}
				length := int(in[0])<<16 | int(in[1])<<8 | int(in[2])
				if in[3] == 0 && in[4]&1 != 0 {
					ends++
				}
				m, err := io.ReadFull(c.Conn, in[:length])
				if err != nil {
					t.Fatal(err)
				}
				n += k + m
			}
			return n
		}
		one = count() / batch
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, r := range requests[1:] {
			c.Write(r)
			count()
		}
		runtime.ReadMemStats(&after)
		got := float64(after.Mallocs-before.Mallocs) / float64(batch*(len(requests)-1))
		t.Logf("%s: %.1f allocations of %.0f bytes, %d bytes on the wire", tt.name, got, float64(after.TotalAlloc-before.TotalAlloc)/float64(batch*(len(requests)-1)), one)
		if got > tt.most+0.5 { // a garbage collection empties pools
			t.Errorf("%s: %.1f allocations for each request, %v at most", tt.name, got, tt.most)
		}
		if size := float64(after.TotalAlloc-before.TotalAlloc) / float64(batch*(len(requests)-1)); size > tt.bytes+80 {
			t.Errorf("%s: %.0f bytes for each request, %v at most", tt.name, size, tt.bytes)
		}
	}
}
