package faults

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// stuck opens n connections whose handshakes stop at different points, or as many as
// there are descriptors for, and calls between ten times meanwhile.
func stuck(t testing.TB, addr string, cfg *tls.Config, n int, between func()) (conns []net.Conn) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	n = min(n, (int(limit.Cur)-200)/2) // two for each connection
	t.Cleanup(func() {
		for _, nc := range conns {
			nc.(*net.TCPConn).SetLinger(0)
			nc.Close()
		}
	})
	hello := firstFlight(t, cfg)
	for i := range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
		switch i % 6 {
		case 0: // nothing
		case 1:
			nc.Write(hello[:1])
		case 2:
			nc.Write(hello[:len(hello)/2])
		case 3:
			nc.Write(hello[:len(hello)-1])
		case 4:
			nc.Write(hello) // and no answer to the server's flight
		case 5:
			nc.Write(hello)
			nc.Write([]byte("\x14\x03\x03\x00\x01\x01\x17\x03\x03\x00\x35part of Finished"))
		}
		if i%(n/10) == 0 {
			between()
		}
	}
	return conns
}

// Thousands of handshakes that stop cost little memory and few goroutines, and others
// are served meanwhile. Not parallel: it counts goroutines.
func TestFaultsTLSHandshakes(t *testing.T) {
	const places = 64
	n := 5000
	if testing.Short() {
		n = 1000
	}
	cert, roots := servertest.Certificate(t)
	cfg := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	s := &chert.Server{ReadHeaderTimeout: time.Hour, MaxConns: -1, Handler: faultOK}
	testhook.Of(s).Handshakes(2, places)
	ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
	shake := func() *servertest.Client {
		tc := tls.Client(ts.Dial().Conn, cfg)
		if err := tc.Handshake(); err != nil {
			t.Fatal(err)
		}
		return servertest.Wrap(t, tc)
	}
	old := shake()
	served := func() {
		if _, got := old.Get("/"); got != "ok" {
			t.Errorf("got %q", got)
		}
		fresh := shake()
		if _, got := fresh.Get("/"); got != "ok" {
			t.Errorf("got %q", got)
		}
		fresh.Close()
	}
	served()
	goroutines, memory := runtime.NumGoroutine(), heap()
	conns := stuck(t, ts.ListenAddr, cfg, n, served)
	goroutines, memory = runtime.NumGoroutine()-goroutines, (heap()-memory)/len(conns)
	t.Logf("%d connections: %d goroutines, %d bytes each, with the client's side", len(conns), goroutines, memory)
	if goroutines > places+50 {
		t.Errorf("%d goroutines for %d places", goroutines, places)
	}
	if memory > 8<<10 {
		t.Errorf("%d bytes for each connection", memory)
	}
	served()
}

// What a request, and a connection with a request, take while 5,000 handshakes are
// stuck. The figure is p99.
func BenchmarkTLSBesideHandshakes(b *testing.B) {
	cert, roots := servertest.Certificate(b)
	cfg := &tls.Config{RootCAs: roots, ServerName: "example.com"}
	for _, held := range []int{0, 5000} {
		s := &chert.Server{ReadHeaderTimeout: time.Hour, MaxConns: -1, Handler: faultOK}
		ts := engines.StartTLS(b, s, servertest.ListenTCP(b), cert)
		if held > 0 {
			stuck(b, ts.ListenAddr, cfg, held, func() {})
		}
		dial := func(b *testing.B) *servertest.Client {
			tc := tls.Client(ts.Dial().Conn, cfg)
			if err := tc.Handshake(); err != nil {
				b.Fatal(err)
			}
			return servertest.Wrap(b, tc)
		}
		p99 := func(name string, f func(*testing.B) func()) {
			b.Run(fmt.Sprintf("%s/stuck=%d", name, held), func(b *testing.B) {
				do := f(b)
				var took []time.Duration
				for b.Loop() {
					began := time.Now()
					do()
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			})
		}
		p99("request", func(b *testing.B) func() {
			c := dial(b)
			return func() { c.Get("/") }
		})
		p99("connection", func(b *testing.B) func() {
			return func() {
				c := dial(b)
				c.Get("/")
				c.Close()
			}
		})
	}
}

// firstFlight is a ClientHello in its record.
func firstFlight(t testing.TB, cfg *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan bool)
	go func() {
		defer close(done)
		tls.Client(b, cfg).Handshake()
	}()
	p := make([]byte, 1<<14)
	n, err := io.ReadAtLeast(a, p, 100)
	a.Close()
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return p[:n]
}

// heap is how many bytes are in use after a collection.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
