package main

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/examples/internal/wscheck"
	"github.com/gobwas/ws"
	"github.com/gorilla/websocket"
)

func TestMain(m *testing.M) { engines.Main(m) }

func dial(t *testing.T, d *websocket.Dialer, url string) *websocket.Conn {
	t.Helper()
	c, res, err := d.Dial(url, nil)
	if err != nil {
		t.Fatalf("%v (%v)", err, res)
	}
	c.SetReadDeadline(time.Now().Add(engines.Patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// ended waits for all handlers.
func ended(t *testing.T, s *sockets) {
	t.Helper()
	engines.Eventually(t, "the handlers have ended", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.open) == 0
	})
}

func TestFrames(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := newSockets()
		srv := e.Start(t, s.handler(time.Hour))
		wscheck.Echo(t, srv, "/echo")
		ended(t, s)
	})
}

// gorilla's own client, plain and compressed, which makes fragments of what
// exceeds its buffer.
func TestOwnClient(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := newSockets()
		s.upgrader.EnableCompression = true
		srv := e.Start(t, s.handler(time.Hour))
		for _, d := range []*websocket.Dialer{{}, {WriteBufferSize: 512}, {EnableCompression: true}} {
			c := dial(t, d, srv.WS("/echo"))
			for _, n := range []int{0, 10, 1000, 100000} {
				for _, kind := range []int{websocket.TextMessage, websocket.BinaryMessage} {
					want := bytes.Repeat([]byte("0123456789"), n/10)
					if err := c.WriteMessage(kind, want); err != nil {
						t.Fatal(err)
					}
					k, got, err := c.ReadMessage()
					if err != nil || k != kind || !bytes.Equal(got, want) {
						t.Fatalf("got kind %d, %d bytes, %v; want %d, %d bytes", k, len(got), err, kind, len(want))
					}
				}
			}
			bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			if err := c.WriteControl(websocket.CloseMessage, bye, time.Now().Add(engines.Patience)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Errorf("closing: %v", err)
			}
		}
		ended(t, s)
	})
}

// The handler of a pushing server ends when the client leaves, with or without
// a close frame.
func TestPush(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := newSockets()
		srv := e.Start(t, s.handler(time.Millisecond))
		for _, politely := range []bool{true, false} {
			c := dial(t, websocket.DefaultDialer, srv.WS("/push"))
			for range 5 {
				_, p, err := c.ReadMessage()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := time.Parse(time.RFC3339Nano, string(p)); err != nil {
					t.Error(err)
				}
			}
			if politely {
				c.WriteControl(websocket.CloseMessage, nil, time.Now().Add(engines.Patience))
			}
			c.Close()
			ended(t, s)
		}
	})
}

// A client that does not read does not hold its handler.
func TestWritesEnd(t *testing.T) {
	s := newSockets()
	srv := engines.NetHTTP.Start(t, wscheck.Bounded(t, s.handler(time.Millisecond)))
	c := wscheck.Dial(t, srv, "/echo")
	c.Send(ws.OpText, true, "hello")
	c.Expect(ws.OpText, "hello")
	c.Close()
	c = wscheck.Dial(t, srv, "/push")
	c.Receive()
	c.Close()
	ended(t, s)
}

// Shutdown with a WebSocket open: the client receives a close frame, and
// everything ends.
func TestShutdown(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := newSockets()
		srv := e.Start(t, s.handler(time.Hour), func(f *engines.Fields) { f.OnShutdown = s.goAway })
		c := wscheck.Dial(t, srv, "/echo")
		c.Send(ws.OpText, true, "hello")
		c.Expect(ws.OpText, "hello")
		ctx, cancel := context.WithTimeout(context.Background(), engines.Patience)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		// The connection outlives the server: its closing handshake comes now.
		c.ExpectClose(ws.StatusGoingAway)
		c.Send(ws.OpClose, true, string(ws.NewCloseFrameBody(ws.StatusGoingAway, "")))
		c.ExpectEnd()
		ended(t, s)
	})
}

// After Hijack the context is done when the handler returns, not when the
// client leaves.
func TestContext(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		type seen struct{ whileOpen, afterLeaving error }
		got := make(chan seen, 1)
		ctxs := make(chan context.Context, 1)
		srv := e.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := new(websocket.Upgrader).Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.ReadMessage()
			var s seen
			s.whileOpen = r.Context().Err()
			c.ReadMessage()
			s.afterLeaving = r.Context().Err()
			ctxs <- r.Context()
			got <- s
		}))
		c := dial(t, websocket.DefaultDialer, srv.WS("/"))
		c.WriteMessage(websocket.TextMessage, nil)
		c.Close()
		if s := engines.Await(t, got, "the handler"); s.whileOpen != nil || s.afterLeaving != nil {
			t.Errorf("context: %+v", s)
		}
		engines.Await(t, engines.Await(t, ctxs, "the context").Done(), "the context's end")
	})
}

// gorilla rejects bytes that were sent before the response to the handshake. It
// finds them in the buffered reader that Hijack returns.
func TestEarly(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		errs := make(chan error, 1)
		srv := e.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := new(websocket.Upgrader).Upgrade(w, r, nil)
			errs <- err
		}))
		c := srv.Dial(t)
		c.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n\x81\x80abcd"))
		if err := engines.Await(t, errs, "Upgrade"); err == nil || !strings.Contains(err.Error(), "before handshake") {
			t.Errorf("Upgrade: %v", err)
		}
	})
}

func TestSame(t *testing.T) {
	const upgrade = "GET /echo HTTP/1.1\nHost: h\nUpgrade: websocket\nConnection: Upgrade\n"
	engines.Same(t, func() http.Handler { return newSockets().handler(time.Hour) }, nil,
		upgrade+"Sec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 7\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		upgrade+"Sec-WebSocket-Version: 13\n\n",
		upgrade+"Origin: http://elsewhere\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n",
		"GET /echo HTTP/1.1\nHost: h\n\n",
		"POST /echo HTTP/1.1\nHost: h\n\n",
	)
}
