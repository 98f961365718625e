package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/examples/internal/wscheck"
	"github.com/gobwas/ws"
)

func TestMain(m *testing.M) { engines.Main(m) }

// styles are the paths, and whether a silent connection has a goroutine.
var styles = []struct {
	path string
	each int // goroutines
}{
	{"/hand", 0},
	{"/wsutil", 0},
	{"/gorilla", 0},
	{"/loop", 1},
}

func eachStyle(t *testing.T, f func(t *testing.T, srv *engines.Server, s *sockets, path string)) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		for _, style := range styles {
			t.Run(style.path[1:], func(t *testing.T) {
				s := new(sockets)
				f(t, e.Start(t, s.handler()), s, style.path)
				engines.Eventually(t, "the connections have ended", func() bool { return s.count() == 0 })
			})
		}
	})
}

func (s *sockets) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func TestFrames(t *testing.T) {
	eachStyle(t, func(t *testing.T, srv *engines.Server, s *sockets, path string) {
		wscheck.Echo(t, srv, path)
		if path == "/hand" || path == "/wsutil" { // gorilla refuses it
			wscheck.Early(t, srv, path)
		}
	})
}

// Messages that have come together are answered without another byte; also pings between
// them, and the Close frame at their end.
func TestTogether(t *testing.T) {
	eachStyle(t, func(t *testing.T, srv *engines.Server, s *sockets, path string) {
		c := wscheck.Dial(t, srv, path)
		var all []byte
		for _, f := range []ws.Frame{
			ws.NewTextFrame([]byte("first")), ws.NewPingFrame([]byte("p")), ws.NewPongFrame(nil), ws.NewTextFrame([]byte("second")),
			ws.NewPingFrame(nil), ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "")),
		} {
			all = append(all, ws.MustCompileFrame(ws.MaskFrame(f))...)
		}
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		c.Expect(ws.OpText, "first")
		c.Expect(ws.OpPong, "p")
		c.Expect(ws.OpText, "second")
		c.Expect(ws.OpPong, "")
		c.ExpectClose(ws.StatusNormalClosure)
		c.ExpectEnd()
	})
}

// A client that does not read holds no goroutine.
func TestWritesEnd(t *testing.T) {
	for _, style := range styles {
		s := new(sockets)
		c := wscheck.Dial(t, engines.NetHTTP.Start(t, wscheck.Bounded(t, s.handler())), style.path)
		for _, op := range []ws.OpCode{ws.OpText, ws.OpPing, ws.OpClose} {
			c.Send(op, true, "")
			c.Receive()
		}
		engines.Eventually(t, "the connection has ended", func() bool { return s.count() == 0 })
	}
}

// A connection that is closed by the server's program, by the client, or without a Close
// frame leaves nothing.
func TestEnds(t *testing.T) {
	eachStyle(t, func(t *testing.T, srv *engines.Server, s *sockets, path string) {
		var all []*wscheck.Client
		for range 3 {
			c := wscheck.Dial(t, srv, path)
			c.Send(ws.OpText, true, "hello")
			c.Expect(ws.OpText, "hello")
			all = append(all, c)
		}
		all[0].Close()
		engines.Eventually(t, "the first has ended", func() bool { return s.count() == 2 })
		s.closeAll()
		for _, c := range all[1:] {
			c.ExpectEnd()
		}
		ctx, cancel := context.WithTimeout(t.Context(), engines.Patience)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A client that only sends pings holds no goroutine, and neither do 4,096 that are
// silent after a message: 0, 0, 0, and gorilla's usual loop.
func TestGoroutines(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a parked connection has a goroutine on this system")
	}
	before := runtime.NumGoroutine()
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		n := 512
		if e != engines.NetHTTP && !testing.Short() {
			n = 4096
		}
		if files := maxFiles(); files < 3*n { // both ends are here; and a server's default is half of them
			t.Skipf("%d connections: the limit of open files is %d", n, files)
		}
		for _, style := range styles {
			t.Run(style.path[1:], func(t *testing.T) {
				engines.Eventually(t, "earlier connections have ended", func() bool { return runtime.NumGoroutine() <= before+3 }) // those of e.Run and t.Run
				s := new(sockets)
				srv := e.Start(t, s.handler())
				first := open(t, srv, style.path)
				base := runtime.NumGoroutine() - style.each
				conns := []net.Conn{first}
				for len(conns) < n {
					conns = append(conns, open(t, srv, style.path))
				}
				want := base + style.each*n
				engines.Eventually(t, fmt.Sprintf("there are %d goroutines", want), func() bool { return runtime.NumGoroutine() <= want })
				more := runtime.NumGoroutine() - base
				t.Logf("%d connections, %d goroutines more than without", len(conns), more)
				if style.each > 0 && more < n-8 { // a few of the base may have ended
					t.Errorf("%d connections, only %d goroutines: what has been counted?", n, more)
				}
				if got := s.count(); got != n {
					t.Errorf("%d of %d connections are open", got, n)
				}
				for _, c := range conns {
					exchange(t, c, ws.NewPingFrame([]byte("ping")), ws.NewPongFrame([]byte("ping")))
				}
				engines.Eventually(t, fmt.Sprintf("there are %d goroutines after pings", want), func() bool { return runtime.NumGoroutine() <= want })
				for _, c := range conns {
					c.(*net.TCPConn).SetLinger(0)
					c.Close()
				}
				engines.Eventually(t, "the connections have ended", func() bool { return s.count() == 0 })
			})
		}
	})
}

// open opens a WebSocket and exchanges a message on it.
func open(t *testing.T, srv *engines.Server, path string) net.Conn {
	t.Helper()
	c := srv.Dial(t)
	c.SetDeadline(time.Now().Add(10 * engines.Patience))
	io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res, err)
	}
	exchange(t, c, ws.NewTextFrame([]byte("hello")), ws.NewTextFrame([]byte("hello")))
	return c
}

func exchange(t *testing.T, c net.Conn, send, want ws.Frame) {
	t.Helper()
	if _, err := c.Write(ws.MustCompileFrame(ws.MaskFrame(send))); err != nil {
		t.Fatal(err)
	}
	answer := ws.MustCompileFrame(want)
	got := make([]byte, len(answer))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != string(answer) {
		t.Fatalf("got %q, %v, want %q", got, err, answer)
	}
}
