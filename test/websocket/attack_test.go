package websocket

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// TestExactly: messages of exactly MaxMessage and MaxFragments are accepted, plain,
// compressed or incompressible, and none beyond.
func TestExactly(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		const most = 70_000
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, MaxMessage: most, MaxFragments: 50, Compression: &websocket.Compression{Threshold: most + 1},
		})))
		compressed := func(p string) string {
			return masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Text}, string(wsdeflate.Deflate(nil, []byte(p), nil, 15)))
		}
		// stored is p in blocks of ten bytes, as of a client without the memory for more.
		stored := func(p string) string {
			var b strings.Builder
			for ; len(p) > 0; p = p[10:] {
				b.WriteString("\x00\x0a\x00\xf5\xff" + p[:10])
			}
			return b.String()
		}
		a := strings.Repeat("a", most)
		for _, tt := range []struct {
			name, in, want string
			code           websocket.Code
		}{
			{"plain", text(a) + text(a+"b"), a, websocket.CodeTooBig},
			{"fragments", frame(-1, a[:most-1]) + frame(0, "a") + frame(-1, a) + frame(0, "b"), a, websocket.CodeTooBig},
			{"compressed", compressed(a) + compressed(a+"b"), a, websocket.CodeTooBig},
			{"stored", masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Text}, stored(a[:most/2])+"\x00") + compressed(a+"b"), a[:most/2], websocket.CodeTooBig},
			{"empty fragments", frame(-1, "") + strings.Repeat(frame(-middle, ""), 48) + frame(0, "a") + frame(-1, "") + strings.Repeat(frame(-middle, ""), 50), "a", websocket.CodePolicy},
		} {
			c := open(ts, "Sec-WebSocket-Extensions: permessage-deflate")
			c.SendAside(tt.in)
			if _, got, err := c.read(); err != nil || got != tt.want {
				t.Errorf("%s: %d bytes, %v", tt.name, len(got), err)
			}
			c.closes(tt.code)
		}
	})
}

// TestBitByBit: frames, and a Close frame, that arrive byte by byte.
func TestBitByBit(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, OnClose: onClose})))
		c := open(ts)
		for _, b := range []byte(frame(-1, "h\xc3") + frame(9, "ping") + frame(0, "\xa9") + closing(4321, "reason")) {
			c.Send(string([]byte{b}))
		}
		if h, p, err := c.read(); h.Op != wsframe.Pong || p != "ping" || err != nil {
			t.Fatal(h, p, err)
		}
		c.wants("h\u00e9")
		c.closes(4321)
		if e := servertest.Await(t, closed, "OnClose"); e != (ended{4321, "reason"}) {
			t.Error(e)
		}
	})
}

// TestShutdownQueued: what was accepted for a client that has not read yet arrives before
// 1001, although the server stops meanwhile.
func TestShutdownQueued(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onOpen, opens := conns()
		onClose, closed := ends()
		s := fresh(handler(t, &websocket.Options{OnOpen: onOpen, OnClose: onClose}))
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http's server does not know its hijacked connections")
		}
		ts := start(t, s)
		c := opened(ts.DialSmall(4 << 10))
		conn := servertest.Await(t, opens, "the connection")
		p := strings.Repeat("x", 8000)
		sent := 0
		for ; !conn.Congested(); sent++ {
			if err := conn.Send(websocket.TypeText, []byte(p)); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		servertest.Eventually(t, "the server stops", func() bool {
			return conn.Send(websocket.TypeText, nil) == net.ErrClosed
		})
		for range sent {
			c.wants(p)
		}
		for {
			h, p, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if h.Op == wsframe.Close {
				if p != "\x03\xe9" {
					t.Errorf("%q", p)
				}
				break
			}
		}
		c.Send(closing(1001, ""))
		c.Ended()
		servertest.Await(t, closed, "OnClose")
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
	})
}

// TestWriteEnds: a Write that waits for a client that does not read returns when the server
// is closed, and when the client resets the connection, wherever it waits.
func TestWriteEnds(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for _, by := range []string{"server", "client"} {
			for _, where := range []string{"OnMessage", "OnOpen's goroutine", "Serve"} {
				writes, begun := make(chan error, 1), make(chan struct{})
				write := func(c *websocket.Conn) {
					p := []byte(strings.Repeat("x", 8000))
					for c.Send(websocket.TypeText, p) == nil {
					}
					close(begun)
					var err error
					for err == nil {
						err = c.Write(context.Background(), websocket.TypeText, p)
					}
					writes <- err
				}
				onClose, closed := ends()
				o := &websocket.Options{OnClose: onClose, Slow: websocket.SlowDrop}
				switch where {
				case "OnMessage":
					o.OnMessage = func(c *websocket.Conn, _ websocket.Type, _ []byte) { write(c) }
				case "Serve":
					o.Serve = func(c *websocket.Conn, _ *http.Request) { write(c) }
				default:
					o.OnOpen = func(c *websocket.Conn, _ *http.Request) { go write(c) }
				}
				s := fresh(handler(t, o))
				hijacked := s.Engine == engines.NetHTTP || where == "Serve"
				if hijacked && by == "server" {
					continue // it does not know the connection
				}
				ts := start(t, s)
				c := opened(ts.DialSmall(4 << 10))
				c.Send(text("a"))
				servertest.Await(t, begun, "Write")
				if by == "server" {
					s.Close()
				} else {
					c.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
					c.Close()
				}
				if err := servertest.Await(t, writes, where+": Write, ended by the "+by); !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				servertest.Await(t, closed, "OnClose")
			}
		}
	})
}
