package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// TestStress has senders, broadcasts, closers on both sides and Shutdown at the same time.
// Each connection that was opened is closed, once.
func TestStress(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		const count = 40
		var room websocket.Room
		var mu sync.Mutex
		open, closed := make(map[*websocket.Conn]bool), make(chan *websocket.Conn, count)
		s := fresh(handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, _ *http.Request) {
				mu.Lock()
				open[c] = true
				mu.Unlock()
				room.Join(c)
			},
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				c.Send(typ, p)
				switch p[0] % 16 {
				case 0:
					go c.Send(typ, append([]byte(nil), p...))
				case 1:
					room.Broadcast(typ, p)
				case 2:
					room.Leave(c)
				case 3:
					c.Close(4000, "")
				}
			},
			OnClose:     func(c *websocket.Conn, _ websocket.Code, _ string) { closed <- c },
			Compression: &websocket.Compression{Threshold: 10},
		}))
		ts := start(t, s)
		var wait sync.WaitGroup
		for i := range count {
			c := opened(ts.Dial(), "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
			wait.Go(func() {
				for j := range 50 {
					if _, err := c.Conn.Write([]byte(text(fmt.Sprintf("%c message %d", 'a'+(i*7+j*3)%16, j)))); err != nil {
						break
					}
				}
				if i%4 == 0 {
					c.Conn.Close()
				}
			})
			wait.Go(func() {
				for {
					h, _, err := c.read()
					if err != nil {
						return
					}
					if h.Op == wsframe.Close {
						c.Conn.Write([]byte(closing(1000, "")))
					}
				}
			})
		}
		if s.Engine == engines.NetHTTP {
			mu.Lock()
			for c := range open {
				go c.Close(1001, "")
			}
			mu.Unlock()
		} else if err := s.Shutdown(context.Background()); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		for range count {
			c := servertest.Await(t, closed, "OnClose")
			mu.Lock()
			if !open[c] {
				t.Error("closed twice")
			}
			delete(open, c)
			mu.Unlock()
		}
		wait.Wait()
		servertest.Eventually(t, "the room is empty", func() bool { return room.Len() == 0 })
	})
}

// TestTLS: over TLS, with messages of several records.
func TestTLS(t *testing.T) {
	eachHTTP1(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		cert, roots := servertest.Certificate(t)
		s := fresh(handler(t, &websocket.Options{OnMessage: echo, OnClose: onClose}))
		ts := engines.StartTLS(t, s, servertest.ListenTCP(t), cert)
		nc, err := tls.Dial("tcp", ts.ListenAddr, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		c := opened(servertest.NewClient(t, nc))
		long := string(make([]byte, 100_000))
		for range 3 {
			c.SendAside(text("a") + text(long) + text("b"))
			c.wants("a", long, "b")
		}
		c.Send(closing(1000, ""))
		c.closes(1000)
		servertest.Await(t, closed, "OnClose")
	})
}
