package websocket

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// serveEcho is echo for Options.Serve.
func serveEcho(c *websocket.Conn, _ *http.Request) {
	for {
		t, p, err := c.Read(context.Background())
		if err != nil {
			return
		}
		c.Send(t, p)
	}
}

// TestUnread: a client that sends and does not read is slowed down. It gets all echoes, in
// order, when it reads, and what waits for it meanwhile is bounded.
func TestUnread(t *testing.T) {
	total, small := 64<<20, 200
	if testing.Short() {
		small = 2 << 10
	}
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for _, size := range []int{small, 16 << 10, 300 << 10} {
			t.Run(fmt.Sprint(size), func(t *testing.T) {
				ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, PingInterval: -1})))
				unread(opened(reluctant(ts)), size, total)
			})
		}
		t.Run("serve", func(t *testing.T) {
			ts := start(t, fresh(handler(t, &websocket.Options{Serve: serveEcho, PingInterval: -1})))
			unread(opened(reluctant(ts)), 16<<10, total)
		})
		t.Run("tls", func(t *testing.T) {
			if fresh(nil).ExtendedConnect {
				t.Skip("the adapter speaks plain text")
			}
			cert, roots := servertest.Certificate(t)
			ts := engines.StartTLS(t, fresh(handler(t, &websocket.Options{OnMessage: echo, PingInterval: -1})), servertest.ListenTCP(t), cert)
			nc := tls.Client(reluctant(ts).Conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			unread(opened(servertest.NewClient(t, nc)), 16<<10, total)
		})
	})
}

// reluctant dials for a client of which little is held on the way.
func reluctant(ts *engines.Server) *servertest.Client {
	ts.T.Helper()
	c := ts.DialSmall(64 << 10)
	c.TCP().SetWriteBuffer(64 << 10)
	return c
}

// unread sends messages of size bytes, and reads nothing until no more is accepted. How much
// that is depends on the system's buffers; more than total it is not.
func unread(c *client, size, total int) {
	c.T.Helper()
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var sent atomic.Int64
	var enough atomic.Bool
	go func() {
		pad := strings.Repeat("x", size-4)
		for i := 0; i*size < total && !enough.Load(); i++ {
			if _, err := c.Conn.Write([]byte(frame(2, string(binary.BigEndian.AppendUint32(nil, uint32(i)))+pad))); err != nil {
				return
			}
			sent.Add(1)
		}
		c.Conn.Write([]byte(text("and again")))
	}()
	last, same := int64(0), 0
	servertest.Eventually(c.T, "nothing more is accepted", func() bool {
		n := sent.Load()
		if same++; n != last || n == 0 {
			last, same = n, 0
		}
		return same > 100
	})
	if last*int64(size) >= int64(total) {
		c.T.Error("all was accepted")
	}
	enough.Store(true)
	runtime.GC()
	runtime.ReadMemStats(&during)
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		c.T.Errorf("%d KiB more", grown>>10)
	}
	for i := int64(0); ; i++ {
		h, p, err := c.read()
		if err == nil && h.Op == wsframe.Text && p == "and again" && i == sent.Load() {
			return
		}
		if err != nil || h.Op != wsframe.Binary || len(p) != size || binary.BigEndian.Uint32([]byte(p)) != uint32(i) {
			c.T.Fatalf("message %d: %+v, %d bytes, %v", i, h, len(p), err)
		}
	}
}

// TestPauseEnds: a connection that is not read from because its client does not read is not
// idle.
func TestPauseEnds(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, OnClose: onClose, IdleTimeout: 2 * time.Second, PingInterval: time.Second})))
		c := opened(reluctant(ts))
		const size, count = 16 << 10, 2000
		var sent atomic.Int64
		go func() {
			p := frame(2, strings.Repeat("x", size))
			for range count {
				if _, err := c.Conn.Write([]byte(p)); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		last, since := int64(0), time.Now()
		servertest.Eventually(t, "nothing more is accepted for longer than the idle time", func() bool {
			n := sent.Load()
			if n != last || n == 0 {
				last, since = n, time.Now()
			}
			return time.Since(since) > 2500*time.Millisecond // not many times that: it must not stall
		})
		select {
		case e := <-closed:
			t.Fatal("ended", e)
		default:
		}
		n := sent.Load()
		c.Conn.(*net.TCPConn).CloseWrite()
		for i := range n {
			h, p, err := c.read()
			for err == nil && h.Op == wsframe.Ping {
				h, p, err = c.read() // when the client has been slow to read for so long
			}
			if err != nil || h.Op != wsframe.Binary || len(p) != size {
				t.Fatalf("message %d of %d: %+v, %d bytes, %v; %v", i, n, h, len(p), err, <-closed)
			}
		}
	})
}
