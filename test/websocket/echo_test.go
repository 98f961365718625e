package websocket

import (
	"context"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

func TestEcho(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, OnClose: onClose})))
		long := strings.Repeat("é", 100<<10)
		c := open(ts)
		c.Send(text("Hello"))
		c.wants("Hello")
		c.Send(text("") + text(long))
		c.wants("", long)
		c.Send(frame(-1, "a") + frame(9, "ping") + frame(-middle, "b") + frame(-middle, "") + frame(0, "c"))
		// A Pong waits while much is queued, as the last message still may be.
		got := map[string]wsframe.Opcode{}
		for range 2 {
			h, p, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			got[p] = h.Op
		}
		if got["ping"] != wsframe.Pong || got["abc"] != wsframe.Text {
			t.Fatal(got)
		}
		c.SendSlowly(text("by bytes")+frame(-1, "€"[:2])+frame(0, "€"[2:]), 1)
		c.wants("by bytes", "€")
		all := numbered(1000) // more than a batch
		c.SendAside(frames(all))
		c.wants(all...)
		c.Send(frame(2, "\xff"))
		if h, p, err := c.read(); h.Op != wsframe.Binary || p != "\xff" || err != nil {
			t.Fatal(h, p, err)
		}
		c.Send(closing(4321, "bye") + text("too late"))
		c.closes(4321)
		if e := servertest.Await(t, closed, "OnClose"); e != (ended{4321, "bye"}) {
			t.Error(e)
		}
	})
}

// TestProved has a handler prove that it is quick, on one connection.
func TestProved(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onLoop := make(chan bool, 1)
		s := fresh(handler(t, &websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			if string(p) == "where" {
				onLoop <- engines.OnDriver()
			}
			c.Send(typ, p)
		}}))
		ts := start(t, s)
		c := open(ts)
		proven := func() bool {
			for range 100 {
				c.Send(text("x"))
				c.wants("x")
			}
			c.Send(text("where"))
			c.wants("where")
			return servertest.Await(t, onLoop, "the message")
		}
		switch {
		case s.Engine != chert.EngineLoops:
		case s.Placement == chert.PlacementPooled:
			if proven() {
				t.Error("on the loop")
			}
		default: // a busy machine may make a run slow
			servertest.Eventually(t, "it runs on the loop", proven)
		}
	})
}

func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, OnClose: onClose, MaxMessage: 1000, MaxFragments: 10,
		})))
		for _, tt := range []struct {
			name, in string
			code     websocket.Code
		}{
			{"unmasked", "\x81\x01a", websocket.CodeProtocol},
			{"reserved bit", "\xc1\x80", websocket.CodeProtocol},
			{"invalid text", text("\xff"), websocket.CodeInvalid},
			{"too large", frame(2, strings.Repeat("x", 1001)), websocket.CodeTooBig},
			{"too large, announced", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00", websocket.CodeTooBig},
			{"too large in fragments", frame(-2, strings.Repeat("x", 999)) + frame(0, "xx"), websocket.CodeTooBig},
			{"empty fragments without end", frame(-2, "") + strings.Repeat(frame(-middle, ""), 100), websocket.CodePolicy},
			{"bad close code", closing(1005, ""), websocket.CodeProtocol},
			{"bad close reason", closing(1000, "\xff"), websocket.CodeInvalid},
			{"close of one byte", frame(8, "x"), websocket.CodeProtocol},
		} {
			c := open(ts)
			c.Send(text("before") + tt.in)
			c.wants("before")
			c.closes(tt.code)
			c.Close()
			if e := servertest.Await(t, closed, "OnClose of "+tt.name); e.code != tt.code {
				t.Error(tt.name, e)
			}
		}
		c := open(ts)
		c.Send(text("before") + frame(-1, "unfinished"))
		c.wants("before")
		c.CloseWrite()
		c.Ended()
		if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodeAbnormal {
			t.Error("end of stream:", e)
		}
		c = open(ts)
		c.Reset()
		if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodeAbnormal {
			t.Error("reset:", e)
		}
	})
}

func TestServerCloses(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				c.Send(typ, []byte("last"))
				c.Close(4000, "enough")
				if err := c.Send(typ, p); err != net.ErrClosed {
					t.Error(err)
				}
				if err := c.Write(context.Background(), typ, p); err == nil {
					t.Error("Write after Close")
				}
				c.Close(4001, "again")
			}, OnClose: onClose,
		})))
		c := open(ts)
		c.Send(text("a") + text("ignored"))
		c.wants("last")
		h, p, err := c.read()
		if h.Op != wsframe.Close || p[2:] != "enough" || err != nil {
			t.Fatal(h, p, err)
		}
		c.Send(text("ignored") + closing(4000, ""))
		c.Ended()
		if e := servertest.Await(t, closed, "OnClose"); e.code != 4000 {
			t.Error(e)
		}
	})
}

// TestOpen: what OnOpen sends is the first that arrives, and its request is there.
func TestOpen(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, r *http.Request) {
				c.SetValue(r.Host)
				c.Send(websocket.TypeText, []byte("welcome "+r.Host))
				if c.Subprotocol() == "leave" {
					c.Close(4002, "")
				}
			},
			OnMessage:    func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, []byte(c.Value().(string))) },
			OnClose:      onClose,
			Subprotocols: []string{"b", "leave"},
		})))
		c := opened(ts.Dial(), "Sec-WebSocket-Protocol: a, b", "Sec-WebSocket-Protocol: leave")
		if got := c.header.Get("Sec-WebSocket-Protocol"); got != "b" {
			t.Error(got)
		}
		c.Send(text("who"))
		c.wants("welcome example.com", "example.com")
		c.Send(closing(1000, ""))
		c.closes(1000)
		servertest.Await(t, closed, "OnClose")
		// Frames may follow the handshake before its answer.
		sc := ts.Dial()
		sc.Send(upgrade("Sec-WebSocket-Protocol: x") + text("early"))
		e := &client{Client: sc}
		if res, err := http.ReadResponse(sc.R, nil); err != nil || res.StatusCode != 101 || res.Header["Sec-Websocket-Protocol"] != nil {
			t.Fatal(res, err)
		}
		e.wants("welcome example.com", "example.com")
		sc.Close()
		servertest.Await(t, closed, "OnClose")
		c = open(ts, "Sec-WebSocket-Protocol: leave")
		c.wants("welcome example.com")
		c.Send(closing(4002, ""))
		c.closes(4002)
		servertest.Await(t, closed, "OnClose")
	})
}

func TestPanic(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		s := fresh(handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, r *http.Request) {
				if r.Header.Get("X-Panic") != "" {
					panic(http.ErrAbortHandler)
				}
			},
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				switch string(p) {
				case "panic":
					panic(http.ErrAbortHandler)
				case "exit":
					runtime.Goexit()
				}
				c.Send(typ, p)
			}, OnClose: onClose,
		}))
		ts := start(t, s)
		other := open(ts)
		for range 3 {
			c := open(ts)
			c.Send(text("a") + text("panic") + text("b"))
			c.wants("a")
			c.closes(websocket.CodeInternal)
			if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodeInternal {
				t.Error(e)
			}
			c = open(ts)
			c.Send(text("a") + text("exit"))
			c.wants("a")
			c.Ended()
			c.Close()
			servertest.Await(t, closed, "OnClose")
			c = open(ts, "X-Panic: 1")
			c.closes(websocket.CodeInternal)
			servertest.Await(t, closed, "OnClose")
		}
		other.Send(text("still here"))
		other.wants("still here")
	})
}

// TestLate: what a message's code sends does not wait for its end, even where it was
// expected to be quick.
func TestLate(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		hold := make(chan struct{})
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			c.Send(typ, p)
			if string(p) == "hold" {
				<-hold
			}
		}})))
		c, other := open(ts), open(ts)
		for range 100 {
			c.Send(text("quick"))
			c.wants("quick")
		}
		c.Send(text("hold") + text("after"))
		c.wants("hold")
		other.Send(text("unharmed"))
		other.wants("unharmed")
		close(hold)
		c.wants("after")
	})
}
