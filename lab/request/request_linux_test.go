package request

import (
	"errors"
	"net/http"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/testhook"
)

// serve has the path's server serve requests of a client in memory until the test ends.
func serve(tb testing.TB, p Path) *memory {
	m := newMemory(p.Client())
	s := p.Server()
	testhook.Of(s).Kernel(&testhook.Kernel{
		Loops:   1,
		Poller:  func() (poll.Poller, error) { return m, nil },
		Sockets: func(n int) ([]int, error) { return []int{listenFD}, nil },
	})
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	tb.Cleanup(func() {
		if m.lost.Load() {
			tb.Error("the server has closed the connection")
		}
		s.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			tb.Error(err)
		}
	})
	return m
}

// settled is after how many requests handlers run on the loop, and pools and maps have their sizes.
const settled = 2000

// BenchmarkRequest is one request and its response: all that chert does, and nothing that the kernel does. cpu-ns/op is
// the processor time of all threads, with that of the garbage collector, and less sensitive to other programs.
func BenchmarkRequest(b *testing.B) {
	for _, p := range Paths() {
		b.Run(p.Name, func(b *testing.B) {
			m := serve(b, p)
			m.run(settled)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			m.run(b.N)
			b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu returns the processor time of this process in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// TestMemory checks that the benchmark's server serves requests, one for each wait of its loop.
func TestMemory(t *testing.T) {
	for _, p := range Paths() {
		t.Run(p.Name, func(t *testing.T) {
			m := serve(t, p)
			m.run(settled)
			if waits := m.waits.Load(); waits < settled {
				t.Errorf("%d requests in %d waits", settled, waits)
			}
		})
	}
}
