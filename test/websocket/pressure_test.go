package websocket

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// conns makes an OnOpen that sends the connections on the channel.
func conns() (func(*websocket.Conn, *http.Request), chan *websocket.Conn) {
	ch := make(chan *websocket.Conn, 1000)
	return func(c *websocket.Conn, _ *http.Request) { ch <- c }, ch
}

// TestSenders: messages of many goroutines are neither lost nor reordered, nor mixed with
// answers, and all that were accepted arrive before the Close frame.
func TestSenders(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		const senders, count, last = 8, 300, 10
		onOpen, opened := conns()
		ts := start(t, fresh(handler(t, &websocket.Options{OnOpen: onOpen, OnMessage: echo, MaxUnsent: -1})))
		c := open(ts)
		conn := servertest.Await(t, opened, "the connection")
		// The client has read all but the last messages of each when Close is called: after that it has seconds.
		most := make(chan bool)
		var wait sync.WaitGroup
		for i := range senders {
			wait.Go(func() {
				for j := range count {
					if j == count-last {
						<-most
					}
					p := binary.BigEndian.AppendUint32([]byte{byte(i)}, uint32(j))
					if err := conn.Send(websocket.TypeBinary, append(p, make([]byte, j*i)...)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		go c.SendAside(strings.Repeat(frame(2, "\xff"), count))
		go func() {
			wait.Wait()
			conn.Close(4000, "")
		}()
		var next [senders]uint32
		all, echoes := 0, 0
		for {
			h, p, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			if h.Op == wsframe.Close {
				break
			}
			if p[0] == 0xff {
				echoes++
				continue
			}
			i, j := p[0], binary.BigEndian.Uint32([]byte(p[1:]))
			if j != next[i] || len(p) != 5+int(j)*int(i) {
				t.Fatalf("message %d of %d, want %d", j, i, next[i])
			}
			next[i]++
			if all++; all == senders*(count-last) {
				close(most)
			}
		}
		for i, n := range next {
			if n != count {
				t.Errorf("%d messages of %d", n, i)
			}
		}
		c.Send(closing(4000, ""))
		c.Ended()
	})
}

// TestSlowReader: what waits for a client that does not read is bounded, Send says so, and
// others are unharmed. Write waits until there is room.
func TestSlowReader(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onOpen, opened := conns()
		ts := start(t, fresh(handler(t, &websocket.Options{OnOpen: onOpen, OnMessage: echo, MaxUnsent: 64 << 10, Slow: websocket.SlowDrop, PingInterval: -1})))
		c, other := open(ts), (*client)(nil)
		conn := servertest.Await(t, opened, "the connection")
		p := bytes.Repeat([]byte("x"), 4000)
		sent, congested := 0, false
		for {
			if err := conn.Send(websocket.TypeText, p); err == websocket.ErrSlow {
				// It may only be that the goroutine that writes has not got to it.
				ctx, cancel := context.WithTimeout(context.Background(), 10*soon)
				err := conn.Write(ctx, websocket.TypeText, p)
				if cancel(); err == context.DeadlineExceeded {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			congested = congested || conn.Congested()
			if sent++; sent > 100_000 {
				t.Fatal("no bound")
			}
		}
		if !congested {
			t.Error("dropped without being congested first")
		}
		other = open(ts)
		other.Send(text("unharmed"))
		other.wants("unharmed")
		done := make(chan error, 1)
		go func() { done <- conn.Write(context.Background(), websocket.TypeText, []byte("waited")) }()
		for range sent {
			c.wants(string(p))
		}
		c.wants("waited")
		servertest.Eventually(t, "no longer congested", func() bool { return !conn.Congested() })
		if err := servertest.Await(t, done, "Write"); err != nil {
			t.Error(err)
		}
		c.Send(text("and again"))
		c.wants("and again")
	})
}

// TestSlowClose: by default the connection of a client that does not read ends.
func TestSlowClose(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onOpen, opened := conns()
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{OnOpen: onOpen, OnClose: onClose})))
		open(ts)
		conn := servertest.Await(t, opened, "the connection")
		var err error
		for err == nil {
			err = conn.Send(websocket.TypeText, bytes.Repeat([]byte("x"), 4000))
		}
		if err != websocket.ErrSlow {
			t.Error(err)
		}
		if err := conn.Send(websocket.TypeText, nil); err != net.ErrClosed {
			t.Error("afterwards:", err)
		}
		if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodePolicy {
			t.Error(e)
		}
	})
}

// TestPings: a client that sends Pings and reads nothing costs bounded memory, and gets the
// answer to its last one.
func TestPings(t *testing.T) {
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo})))
		c := &client{Client: ts.DialSmall(4 << 10)}
		c = opened(c.Client)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const count = 100_000
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			// Many at once, or a busy machine takes longer than a client may read nothing.
			var some []byte
			for i := range count {
				if some = append(some, frame(9, fmt.Sprintf("%0100d", i))...); len(some) > 16<<10 {
					c.Conn.Write(some)
					some = some[:0]
				}
			}
			c.Conn.Write(append(some, frame(1, "end")...))
		}()
		servertest.Await(t, sent, "the Pings")
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
			t.Errorf("%d KiB more", grown>>10)
		}
		last, end := "", false
		for !end || !strings.HasSuffix(last, fmt.Sprint(count-1)) {
			h, p, err := c.read()
			if err != nil {
				t.Fatalf("%v after %q", err, last)
			}
			if h.Op == wsframe.Text {
				end = true
			} else {
				last = p
			}
		}
	})
}

// TestPingsBetween: Pings are answered in the end, however much waits when they come.
func TestPingsBetween(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onOpen, opens := conns()
		came := make(chan bool, 1)
		onMessage := func(*websocket.Conn, websocket.Type, []byte) { came <- true }
		ts := start(t, fresh(handler(t, &websocket.Options{OnOpen: onOpen, OnMessage: onMessage, PingInterval: -1})))
		c := opened(ts.DialSmall(4 << 10))
		conn := servertest.Await(t, opens, "the connection")
		p := bytes.Repeat([]byte("x"), 8000)
		sent := 0
		for ; !conn.Congested(); sent++ {
			conn.Send(websocket.TypeBinary, p)
			c.Send(frame(9, "a Ping") + text("and a message"))
			servertest.Await(t, came, "the message")
		}
		c.Send(frame(9, "the last"))
		for got, last := 0, false; got < sent || !last; {
			h, p, err := c.read()
			if err != nil {
				t.Fatalf("%v after %d messages of %d", err, got, sent)
			}
			switch h.Op {
			case wsframe.Binary:
				got++
			case wsframe.Pong:
				last = last || p == "the last"
			}
		}
	})
}

// TestPartial: many unfinished messages cost what has arrived, not what was announced.
func TestPartial(t *testing.T) {
	eachAlone(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, MaxMessage: 64 << 20})))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		head := masked(wsframe.Header{Op: wsframe.Binary}, strings.Repeat("x", 1<<20))[:20] // 1 MiB is announced
		var all []*client
		for range 50 {
			c := open(ts)
			c.Send(head + "xxx")
			all = append(all, c)
		}
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
		runtime.ReadMemStats(&after)
		if got := int64(after.TotalAlloc) - int64(before.TotalAlloc); got > 40<<20 {
			t.Errorf("%d KiB were allocated", got>>10)
		}
		for _, c := range all {
			c.Close()
		}
	})
}

// TestRoom: each member gets all messages, in order, whatever its parameters; those that
// do not read harm nobody.
func TestRoom(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		var room websocket.Room
		left := make(chan struct{}, 100)
		s := fresh(handler(t, &websocket.Options{
			OnOpen:      func(c *websocket.Conn, _ *http.Request) { room.Join(c); room.Join(c) },
			OnMessage:   func(c *websocket.Conn, typ websocket.Type, p []byte) { room.Broadcast(typ, p) },
			OnClose:     func(c *websocket.Conn, _ websocket.Code, _ string) { left <- struct{}{} },
			Slow:        websocket.SlowDrop,
			Compression: &websocket.Compression{Threshold: 100},
		}))
		ts := start(t, s)
		var all []*client
		for range 5 {
			all = append(all, open(ts))
		}
		slow := opened(ts.DialSmall(4 << 10))
		servertest.Eventually(t, "all are in the room", func() bool { return room.Len() == 6 })
		want := numbered(50)
		for i := range want {
			want[i] += strings.Repeat("x", 2000)
		}
		all[0].SendAside(frames(want))
		for _, c := range all {
			c.wants(want...)
		}
		// Many more, until the slow one drops.
		for i := 0; room.Broadcast(websocket.TypeText, []byte(want[0])) == 0; i++ {
			for _, c := range all {
				c.wants(want[0])
			}
			if i > 10_000 {
				t.Fatal("no bound")
			}
		}
		for _, c := range all {
			c.wants(want[0])
		}
		slow.Close()
		servertest.Await(t, left, "the slow one's end")
		if n := room.Len(); n != 5 {
			t.Error(n, "members")
		}
	})
}

// TestNoGoroutines: idle connections have none, on loops.
func TestNoGoroutines(t *testing.T) {
	h := handler(t, &websocket.Options{OnMessage: echo})
	ts := start(t, &chert.Server{Handler: h})
	if ts.Engine == chert.EngineGoroutines {
		t.Skip("no loops here")
	}
	one := open(ts)
	one.Send(text("a"))
	one.wants("a")
	before := runtime.NumGoroutine()
	var all []*client
	for range 300 {
		c := open(ts)
		c.Send(text("hello"))
		c.wants("hello")
		all = append(all, c)
	}
	servertest.Eventually(t, "no goroutine for each connection", func() bool { return runtime.NumGoroutine() < before+50 })
	for _, c := range all {
		c.Close()
	}
}

// TestWriteGivesUp: Write of a message's code, which waits until the client reads, does not
// wait for one that has gone, accepts nothing for too long, or for the server's end.
func TestWriteGivesUp(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for _, way := range []string{"gone", "stall", "server"} {
			full, failed := make(chan bool, 1), make(chan error, 1)
			s := fresh(handler(t, &websocket.Options{Slow: websocket.SlowDrop, OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
				big := make([]byte, 1<<20)
				for c.Send(websocket.TypeBinary, big) == nil {
				}
				full <- true
				for {
					if err := c.Write(context.Background(), websocket.TypeBinary, big); err != nil {
						failed <- err
						return
					}
				}
			}}))
			if way == "stall" {
				if s.Engine == engines.NetHTTP {
					continue // half a minute
				}
				s.WriteStallTimeout = soon
			}
			ts := start(t, s)
			c := open(ts)
			c.Send(text("a"))
			servertest.Await(t, full, "a client that does not read")
			switch way {
			case "gone":
				c.Close()
			case "server":
				if ts.Server.Close(); s.Engine == engines.NetHTTP {
					c.Close() // it does not end what was hijacked
				}
			}
			servertest.Await(t, failed, way+": the end of Write")
			c.Close()
		}
	})
}
