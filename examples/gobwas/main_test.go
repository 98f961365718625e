package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/examples/internal/wscheck"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

func TestMain(m *testing.M) { engines.Main(m) }

// subject returns the handler and the channel of what it logs at the end of
// each connection.
func subject(every time.Duration) (http.Handler, <-chan string) {
	ended := make(chan string, 100)
	return handler(every, func(format string, args ...any) { ended <- fmt.Sprintf(format, args...) }), ended
}

func TestFrames(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Hour)
		s := e.Start(t, h)
		wscheck.Echo(t, s, "/echo")
		for range 6 { // one for each connection
			engines.Await(t, ended, "a handler's end")
		}
		wscheck.Early(t, s, "/echo")
		for range 2 {
			engines.Await(t, ended, "a handler's end")
		}
	})
}

// gobwas's own client.
func TestOwnClient(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Hour)
		s := e.Start(t, h)
		c, _, _, err := ws.Dial(context.Background(), s.WS("/echo"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(engines.Patience))
		for _, n := range []int{1, 1000, 1 << 20} {
			want := engines.Random(n)
			if err := wsutil.WriteClientBinary(c, want); err != nil {
				t.Fatal(err)
			}
			if got, err := wsutil.ReadServerBinary(c); err != nil || string(got) != string(want) {
				t.Fatalf("got %d bytes, %v, want %d", len(got), err, n)
			}
		}
		ws.WriteFrame(c, ws.MaskFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusNormalClosure, "bye"))))
		if got := engines.Await(t, ended, "the handler's end"); got != "/echo: ws closed: 1000 bye" {
			t.Errorf("got %q", got)
		}
	})
}

// The handler of a pushing server ends when the client leaves, with or without
// a close frame.
func TestPush(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Millisecond)
		s := e.Start(t, h)
		for _, politely := range []bool{true, false} {
			c := wscheck.Dial(t, s, "/push")
			for range 5 {
				op, p := c.Receive()
				if _, err := time.Parse(time.RFC3339Nano, p); op != ws.OpText || err != nil {
					t.Error(op, err)
				}
			}
			if politely {
				c.Send(ws.OpClose, true, "")
			}
			c.Close()
			engines.Await(t, ended, "the handler's end")
		}
	})
}

// Pongs do not come between the head and the payload of a message.
func TestPushPings(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Microsecond)
		c := wscheck.Dial(t, e.Start(t, h), "/push")
		const pings = 2000
		go func() {
			for range pings {
				if ws.WriteFrame(c, ws.MaskFrame(ws.NewPingFrame([]byte("ping")))) != nil {
					return
				}
			}
		}()
		for pongs := 0; pongs < pings; {
			switch op, p := c.Receive(); op {
			case ws.OpPong:
				if pongs++; p != "ping" {
					t.Fatalf("a pong of %q", p)
				}
			default:
				if _, err := time.Parse(time.RFC3339Nano, p); op != ws.OpText || err != nil {
					t.Fatal(op, err)
				}
			}
		}
		c.Close()
		engines.Await(t, ended, "the handler's end")
	})
}

// A client that does not read does not hold the handler, and a message has a limit.
func TestLimits(t *testing.T) {
	h, ended := subject(time.Microsecond)
	srv := engines.NetHTTP.Start(t, wscheck.Bounded(t, h))
	c := wscheck.Dial(t, srv, "/echo")
	c.Send(ws.OpText, true, "hello")
	c.Expect(ws.OpText, "hello")
	c.Send(ws.OpPing, true, "")
	c.Expect(ws.OpPong, "")
	if err := ws.WriteHeader(c, ws.Header{Fin: true, OpCode: ws.OpBinary, Masked: true, Length: maxMessage + 1}); err != nil {
		t.Fatal(err)
	}
	engines.Await(t, ended, "the handler's end")
	c = wscheck.Dial(t, srv, "/push")
	c.Receive()
	c.Close()
	engines.Await(t, ended, "the handler's end")
}

func TestSame(t *testing.T) {
	const upgrade = "GET /echo HTTP/1.1\nHost: h\nUpgrade: websocket\nConnection: Upgrade\n"
	engines.Same(t, func() http.Handler { return handler(time.Hour, func(string, ...any) {}) }, nil,
		upgrade+"Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 7\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 13\n\n",
		"GET /echo HTTP/1.1\nHost: h\n\n",
		"POST /echo HTTP/1.1\nHost: h\n\n",
	)
}
