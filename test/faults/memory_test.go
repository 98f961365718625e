package faults

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Idle connections on loops hold no goroutine and no buffer.
func TestFaultsIdleConnsAreSmall(t *testing.T) {
	const n = 500
	fs := engines.StartCounting(t, &chert.Server{Engine: chert.EngineLoops, Handler: faultOK})
	if buf.Live() != 0 {
		t.Fatalf("%d buffers are taken before the test", buf.Live())
	}
	before := runtime.NumGoroutine()
	conns := make([]*servertest.Client, n)
	for round := range 2 {
		for i := range conns {
			if round == 0 {
				conns[i] = fs.Dial()
				conns[i].SetDeadline(time.Now().Add(4 * servertest.Patience)) // workers take time to end
			}
			conns[i].Send(servertest.GET)
		}
		for _, c := range conns {
			c.Status(200)
		}
		servertest.Eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
		// Workers stay a while, as many as handlers have run at once.
		servertest.Eventually(t, "few goroutines are left", func() bool { return runtime.NumGoroutine()-before < 50 })
	}
	if open := fs.Opened.Load() - fs.Closed.Load(); open != n {
		t.Errorf("%d connections are open, want %d", open, n)
	}
	// A partial head takes a buffer, and releases it.
	for _, c := range conns[:50] {
		c.Send("GET / HT")
	}
	servertest.Eventually(t, "the partial heads are held", func() bool { return buf.Live() == 50 })
	for _, c := range conns[:25] {
		c.Close()
	}
	for _, c := range conns[25:50] {
		c.Send("TP/1.1\r\nHost: h\r\n\r\n")
		c.Status(200)
	}
	servertest.Eventually(t, "no buffer is held", func() bool { return buf.Live() == 0 })
}

// gathered is a net.Conn that keeps what is written until it is sent at once.
type gathered struct {
	net.Conn
	keep bool
	b    bytes.Buffer
}

func (g *gathered) Write(p []byte) (int, error) {
	if g.keep {
		return g.b.Write(p)
	}
	return g.Conn.Write(p)
}

// Part of a head holds no more memory because it came in many small records at once.
func TestFaultsRecordsAreSmall(t *testing.T) {
	if !sys.HavePoller {
		t.Skip("records are opened on loops")
	}
	cert, _ := servertest.Certificate(t)
	ts := engines.StartTLS(t, &chert.Server{Engine: chert.EngineLoops, Handler: faultOK}, servertest.ListenTCP(t), cert)
	head := "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 1200)
	const n = 10
	for range n {
		g := &gathered{Conn: servertest.Dial(t, ts.ListenAddr).Conn}
		tc := tls.Client(g, &tls.Config{InsecureSkipVerify: true})
		if err := tc.Handshake(); err != nil {
			t.Fatal(err)
		}
		g.keep = true
		for i := range len(head) {
			io.WriteString(tc, head[i:i+1])
		}
		want := ts.Server.Stats().BytesRead + uint64(g.b.Len())
		if _, err := g.Conn.Write(g.b.Bytes()); err != nil {
			t.Fatal(err)
		}
		servertest.Eventually(t, "they are read", func() bool { return ts.Server.Stats().BytesRead >= want })
	}
	servertest.Eventually(t, "the heads are held, and little else", func() bool {
		_, bytes := buf.Lent()
		return bytes >= n*int64(len(head)) && bytes <= n*4<<10
	})
}
