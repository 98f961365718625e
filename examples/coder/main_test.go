package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/examples/internal/wscheck"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/gobwas/ws"
)

func TestMain(m *testing.M) { engines.Main(m) }

// subject returns the handler and the channel of what it logs at the end of
// each connection.
func subject(every time.Duration) (http.Handler, <-chan string) {
	ended := make(chan string, 100)
	return handler(every, engines.Patience, func(format string, args ...any) { ended <- fmt.Sprintf(format, args...) }), ended
}

func patiently(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
	t.Cleanup(cancel)
	return ctx
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

// coder's own client, plain and compressed.
func TestOwnClient(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Hour)
		s := e.Start(t, h)
		for _, mode := range []websocket.CompressionMode{websocket.CompressionDisabled, websocket.CompressionContextTakeover} {
			ctx := patiently(t)
			c, res, err := websocket.Dial(ctx, s.WS("/echo"), &websocket.DialOptions{CompressionMode: mode})
			if err != nil {
				t.Fatalf("%v (%v)", err, res)
			}
			defer c.CloseNow()
			c.SetReadLimit(16 << 20)
			for _, n := range []int{0, 10, 1000, 1 << 20} {
				want := bytes.Repeat([]byte("0123456789"), n/10)
				if err := c.Write(ctx, websocket.MessageBinary, want); err != nil {
					t.Fatal(err)
				}
				kind, got, err := c.Read(ctx)
				if err != nil || kind != websocket.MessageBinary || !bytes.Equal(got, want) {
					t.Fatalf("got %v, %d bytes, %v, want %d", kind, len(got), err, len(want))
				}
			}
			// Ping needs a goroutine that reads the pong.
			read := c.CloseRead(ctx)
			if err := c.Ping(ctx); err != nil {
				t.Errorf("ping: %v", err)
			}
			if err := c.Close(websocket.StatusNormalClosure, "bye"); err != nil {
				t.Errorf("closing: %v", err)
			}
			engines.Await(t, read.Done(), "the reader's end")
			engines.Await(t, ended, "the handler's end")
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
			ctx := patiently(t)
			c, _, err := websocket.Dial(ctx, s.WS("/push"), nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				var m struct{ Now time.Time }
				if err := wsjson.Read(ctx, c, &m); err != nil || m.Now.IsZero() {
					t.Fatal(m, err)
				}
			}
			if politely {
				c.Close(websocket.StatusNormalClosure, "")
			} else {
				c.CloseNow()
			}
			engines.Await(t, ended, "the handler's end")
		}
	})
}

// Shutdown does not wait for a WebSocket, and leaves it working.
func TestShutdown(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		h, ended := subject(time.Hour)
		s := e.Start(t, h)
		c := wscheck.Dial(t, s, "/echo")
		c.Send(ws.OpText, true, "before")
		c.Expect(ws.OpText, "before")
		if err := s.Shutdown(patiently(t)); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		c.Send(ws.OpText, true, "after")
		c.Expect(ws.OpText, "after")
		c.Send(ws.OpClose, true, string(ws.NewCloseFrameBody(ws.StatusNormalClosure, "")))
		c.ExpectClose(ws.StatusNormalClosure)
		c.ExpectEnd()
		engines.Await(t, ended, "the handler's end")
	})
}

// A client that does not read does not hold its handler.
func TestUnread(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		ended := make(chan string, 2)
		h := handler(time.Microsecond, 100*time.Millisecond, func(format string, args ...any) { ended <- fmt.Sprintf(format, args...) })
		s := e.Start(t, h)
		wscheck.Dial(t, s, "/push")
		c := wscheck.Dial(t, s, "/echo")
		go func() {
			frame := ws.MustCompileFrame(ws.MaskFrame(ws.NewBinaryFrame(engines.Random(1 << 20))))
			for {
				if _, err := c.Write(frame); err != nil {
					return
				}
			}
		}()
		for range 2 {
			engines.Await(t, ended, "a handler's end")
		}
	})
}

func TestSame(t *testing.T) {
	const upgrade = "GET /echo HTTP/1.1\nHost: h\nUpgrade: websocket\nConnection: Upgrade\n"
	engines.Same(t, func() http.Handler { return handler(time.Hour, engines.Patience, func(string, ...any) {}) }, nil,
		upgrade+"Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 7\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 13\n\n",
		"GET /echo HTTP/1.1\nHost: h\n\n",
		"POST /echo HTTP/1.1\nHost: h\n\n",
	)
}
