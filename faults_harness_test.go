package chert

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// faultGet is the request that most of these tests send.
const faultGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// soon is a time after which a client that has just connected is late. It is
// the time of a loaded machine: a test's client must not be late by accident.
const soon = time.Second

// faultOK is the handler for tests in which the handler does not matter.
var faultOK = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })

// faultServer is a server that counts its connections.
type faultServer struct {
	*testServer
	opened, ended atomic.Int64
}

// faultStart serves s and counts its connections.
func faultStart(t testing.TB, s *Server) *faultServer {
	fs := new(faultServer)
	fs.count(s)
	fs.testServer = start(t, s)
	return fs
}

func (fs *faultServer) count(s *Server) {
	s.ConnState = func(_ net.Conn, st http.ConnState) {
		switch st {
		case http.StateNew:
			fs.opened.Add(1)
		case http.StateClosed, http.StateHijacked:
			fs.ended.Add(1)
		}
	}
}

// settled waits until every connection, of which there were n, has ended.
func (fs *faultServer) settled(n int64) {
	fs.t.Helper()
	eventually(fs.t, "all connections have ended", func() bool {
		return fs.opened.Load() >= n && fs.ended.Load() == fs.opened.Load()
	})
}

// alive checks that the server still answers a new client.
func (fs *faultServer) alive() {
	fs.t.Helper()
	c := fs.dial()
	c.send("GET /alive HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	c.status(200)
	c.closed()
}

// faultConn is a client with what these tests need besides.
type faultConn struct{ *rawConn }

func (fs *faultServer) dial() *faultConn {
	fs.t.Helper()
	return &faultConn{fs.testServer.dial()}
}

// status reads a response to a GET and checks its status.
func (c *faultConn) status(want int) string {
	c.t.Helper()
	res, body := c.response("GET")
	if res.StatusCode != want {
		c.t.Fatalf("got %v %q, want %d", res.Status, body, want)
	}
	return body
}

func (c *faultConn) tcp() *net.TCPConn { return c.Conn.(*net.TCPConn) }

// reset ends the connection with RST.
func (c *faultConn) reset() {
	c.tcp().SetLinger(0)
	c.Close()
}

// halfClose sends FIN.
func (c *faultConn) halfClose() {
	c.t.Helper()
	if err := c.tcp().CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// refused waits until the server has answered with the given status and
// closed, in this order and with nothing behind the answer, and closes c.
func (c *faultConn) refused(status int) {
	c.t.Helper()
	res, body := c.response("GET")
	if res.StatusCode != status {
		c.t.Fatalf("got %v %q, want %d", res.Status, body, status)
	}
	if !res.Close {
		c.t.Errorf("the answer does not announce the close: %v", res.Header)
	}
	c.closed()
	c.Close() // or the server would linger
}

// trickle sends head and then a byte of tail at a time for ever, until the
// connection fails. The test waits for its end.
func (c *faultConn) trickle(head, tail string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.WriteString(c, head); err != nil {
			return
		}
		for i := 0; ; i = (i + 1) % len(tail) {
			if _, err := io.WriteString(c, tail[i:i+1]); err != nil {
				return
			}
			time.Sleep(5 * time.Millisecond) // a slow client
		}
	}()
	c.t.Cleanup(func() {
		c.Close()
		<-done
	})
}

// smallSockets listens on a socket whose connections have small send buffers,
// so that writes are partial.
func smallSockets(t testing.TB, size int) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: setBuffer(syscall.SO_SNDBUF, size)}
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dialSmall connects with a small receive buffer.
func (fs *faultServer) dialSmall(size int) *faultConn {
	fs.t.Helper()
	d := net.Dialer{Control: setBuffer(syscall.SO_RCVBUF, size)}
	nc, err := d.Dial("tcp", fs.addr)
	if err != nil {
		fs.t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(patience))
	fs.t.Cleanup(func() { nc.Close() })
	return &faultConn{&rawConn{nc, fs.t, bufio.NewReader(nc)}}
}

// isTimeout reports whether err says that time ran out, the ways that callers
// ask for it.
func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout() && errors.Is(err, os.ErrDeadlineExceeded)
}

// noise is n bytes that differ from place to place.
func noise(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// countLines counts the lines of s that contain sub.
func countLines(s, sub string) (n int) {
	for l := range strings.SplitSeq(s, "\n") {
		if strings.Contains(l, sub) {
			n++
		}
	}
	return n
}
