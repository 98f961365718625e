package websocket

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// TestFloodersTurns: clients that send without pause wait for one turn each, however long
// they do, and so does an HTTP/2 connection.
func TestFloodersTurns(t *testing.T) {
	const flooders = 8
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(handler(t, &websocket.Options{OnMessage: echo}))
		if s.Engine != chert.EngineLoops || s.ExtendedConnect {
			t.Skip("for event loops; the adapter of HTTP/2 sends less than a flood")
		}
		t.Run("WebSockets", func(t *testing.T) {
			ts := start(t, s)
			floods(t, ts, strings.Repeat(frame(9, "a Ping"), 4000), flooders, flooders+1, func() net.Conn { return open(ts).Conn })
		})
		t.Run("HTTP/2", func(t *testing.T) {
			s := &chert.Server{Placement: s.Placement, Handler: s.Handler, Protocols: new(http.Protocols)}
			s.Protocols.SetUnencryptedHTTP2(true)
			ts := engines.Start(t, s)
			pings := "\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678"
			floods(t, ts, strings.Repeat(pings, 1000), flooders, 3*flooders, func() net.Conn {
				c := ts.Dial()
				c.Send(http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
				return c.Conn
			})
		})
	})
}

// floods sends p again and again on n connections at a time, which read what they get, and
// compares how many wait for a turn with how many there are.
func floods(t *testing.T, ts *engines.Server, p string, n, limit int, dial func() net.Conn) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	var wait sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range n {
		nc := dial()
		wait.Go(func() {
			defer left.Add(-1)
			for range rounds {
				reads := make(chan bool)
				go func() {
					io.Copy(io.Discard, nc)
					close(reads)
				}()
				_, err := io.WriteString(nc, p)
				for i := 0; i < rounds && err == nil; i++ {
					_, err = io.WriteString(nc, p)
				}
				nc.Close()
				if <-reads; err == nil {
					return
				}
				nc = dial() // there were too many useless frames
			}
			nc.Close()
		})
	}
	most := int64(0)
	servertest.Eventually(t, "the flood is over", func() bool {
		for _, l := range ts.Server.Stats().Loops {
			most = max(most, l.Requeued)
		}
		return left.Load() == 0
	})
	wait.Wait()
	// Beside them the listener may wait for a turn, and connections that have just ended.
	if most > int64(limit) {
		t.Errorf("%d sockets wait for a turn, of %d connections at a time", most, n)
	}
}

// A client that sends Pings without pause and never answers a Close frame does not hold
// Shutdown, whether it reads or not: without a bound of its own the wait for what it does not
// accept would be WriteStallTimeout, which is longer than this test waits.
func TestFloodersShutdown(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		s := fresh(handler(t, &websocket.Options{OnMessage: echo}))
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http's server does not know its hijacked connections")
		}
		if s.ExtendedConnect {
			t.Skip("the adapter of HTTP/2 ends a client that does not read")
		}
		s.WriteStallTimeout = time.Hour
		ts := start(t, s)
		pings := strings.Repeat(frame(9, strings.Repeat("x", 100)), 1000)
		var wait sync.WaitGroup
		begun := make(chan bool, 2)
		for _, reads := range []bool{true, false} {
			c := open(ts)
			if reads {
				wait.Go(func() { io.Copy(io.Discard, c.Conn) })
			}
			wait.Go(func() {
				for i := 0; ; i++ {
					_, err := io.WriteString(c.Conn, pings)
					if i == 0 {
						begun <- true
					}
					if err != nil {
						c.Conn.Close()
						return
					}
				}
			})
		}
		for range 2 {
			servertest.Await(t, begun, "the flood")
		}
		ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
			s.Close()
		}
		wait.Wait()
	})
}
