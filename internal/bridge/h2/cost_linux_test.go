package h2_test

import (
	"bytes"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// BenchmarkPlain reports the CPU time of a GET on a loop without TLS, a part of which is
// the client's: 32 streams in each write.
func BenchmarkPlain(b *testing.B) {
	if !sys.HavePoller {
		b.Skip("no loops")
	}
	s := serve(b, "inline", &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		hello(w, r)
	})})
	c := s.raw()
	const batch = 32
	c.get(1, "/")
	id := uint32(3)
	fields := append(append([]string{}, get...), "user-agent: h2load nghttp2/1.52.0")
	in := make([]byte, 64<<10)
	cpu := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	var spent time.Duration
	n := 0
	for n < b.N {
		b.StopTimer()
		c.SetDeadline(time.Now().Add(servertest.Patience))
		c.fr.WriteWindowUpdate(0, 100*batch*5)
		var all [][]byte
		for range 100 {
			for range batch {
				c.headers(id, true, fields...)
				id += 2
			}
			all = append(all, bytes.Clone(c.out.Bytes()))
			c.out.Reset()
		}
		b.StartTimer()
		before := cpu()
		for _, r := range all {
			c.Write(r)
			n, ends := 0, 0
			for ends < batch {
				k, err := c.Conn.Read(in[n:])
				if err != nil {
					b.Fatal(err)
				}
				n += k
				ends = bytes.Count(in[:n], []byte("hello"))
			}
		}
		spent += cpu() - before
		n += batch * len(all)
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(n), "cpu-ns/op")
}
