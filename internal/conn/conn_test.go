//go:build linux || darwin

package conn

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLines(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{}
	c := r.open(f)
	c.send("a\n")
	c.want("a\n")
	c.send("b\nc\nd")
	c.want("b\nc\n")
	c.send("\n")
	c.want("d\n")
	c.closeWrite()
	c.ended()
	await(t, f.closed, "Closed")
	if n := r.shared.Gate.Open(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// The next line comes at any moment around the end of Serve, so that release
// meets the event in every order. A lost event would hang the client.
func TestReleaseMeetsEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var clients sync.WaitGroup
	for i := range 8 {
		c := r.open(&fake{serve: func(f *fake, line string) Verdict {
			v := echo(f, line)
			for range i * 10 {
				runtime.Gosched()
			}
			return v
		}})
		clients.Go(func() {
			for j := range 1000 {
				line := fmt.Sprintf("%d-%d\n", i, j)
				if j%3 == 0 {
					// Half a line, for the handler or the loop to complete.
					c.send(line[:2])
					runtime.Gosched()
					line = line[2:]
					c.send(line)
					c.want(fmt.Sprintf("%d-%d\n", i, j))
					continue
				}
				c.send(line)
				c.want(line)
			}
		})
	}
	clients.Wait()
}

// The same with FIN at any moment.
func TestReleaseMeetsEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	for i := range 500 {
		f := &fake{}
		c := r.open(f)
		c.send("x\n")
		if i%2 == 0 {
			c.want("x\n")
		}
		for range i % 50 {
			runtime.Gosched()
		}
		c.closeWrite()
		if i%2 == 1 {
			c.want("x\n")
		}
		c.ended()
		await(t, f.closed, "Closed")
		c.Close()
	}
}

// The timer fires while the handler owns the connection: it is armed again
// when the connection comes back.
func TestExpireWhileOwned(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{Idle: int64(20 * time.Millisecond)})
	f := &fake{serve: func(f *fake, line string) Verdict {
		eventually(f.t, "the timer has fired", func() bool { return f.state.Load()&noTimer != 0 })
		return echo(f, line)
	}}
	c := r.open(f)
	c.send("a\nb\n")
	c.want("a\nb\n")
	if await(t, f.expired, "Expired") {
		t.Error("an idle connection expired as a partial one")
	}
	c.ended()
	await(t, f.closed, "Closed")
}

// A partial line behind the one that is served needs a shorter time than the
// timer is set for.
func TestPartialBehindRequestExpires(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"a\nb", "a\n"} {
		r := newRig(t, Limits{Header: int64(20 * time.Millisecond)})
		entered, leave := make(chan bool, 1), make(chan bool)
		f := &fake{serve: func(f *fake, line string) Verdict {
			entered <- true
			<-leave
			return echo(f, line)
		}}
		c := r.open(f)
		c.send(first)
		await(t, entered, "Serve")
		if len(first) == 2 {
			c.send("b")
		}
		close(leave)
		c.want("a\n")
		if !await(t, f.expired, "Expired") {
			t.Error("a partial line expired as an idle connection")
		}
		c.want("late\n")
		c.Close()
		await(t, f.closed, "Closed")
	}
}

func TestFirstTimeCountsFromAccept(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{First: int64(500 * time.Millisecond)})
	f := &fake{}
	c := r.open(f)
	if await(t, f.expired, "Expired") {
		t.Error("partial without a byte")
	}
	c.ended()
	f = &fake{}
	c = r.open(f)
	c.send("x")
	if !await(t, f.expired, "Expired") {
		t.Error("not partial")
	}
	c.want("late\n")
}

// A handler waits for bytes or for room, with and without a deadline.
func TestHandlerWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{ReadStall: int64(20 * time.Millisecond), WriteStall: int64(20 * time.Millisecond)})
	errs := make(chan error, 1)
	f := &fake{serve: func(f *fake, line string) Verdict {
		switch line {
		case "read":
			errs <- f.Fill()
		case "deadline":
			f.SetReadDeadline(time.Now().Add(-time.Second))
			_, err := f.Read(make([]byte, 1))
			f.SetReadDeadline(time.Time{})
			errs <- err
		case "moved":
			// Another goroutine ends the wait.
			moved := make(chan bool)
			go func() {
				f.SetReadDeadline(time.Now().Add(-time.Second))
				close(moved)
			}()
			_, err := f.Read(make([]byte, 1))
			<-moved
			f.SetReadDeadline(time.Time{})
			errs <- err
		case "write":
			errs <- f.Write2(make([]byte, 64<<20), nil)
			return Reset
		}
		return echo(f, line)
	}}
	c := r.open(f)
	check := func(what string) {
		t.Helper()
		if ne, ok := await(t, errs, what).(net.Error); !ok || !ne.Timeout() {
			t.Errorf("%s: not a timeout", what)
		}
	}
	for _, line := range []string{"read", "deadline", "moved", "read"} {
		c.send(line + "\n")
		c.want(line + "\n")
		check(line)
	}
	c.send("write\n")
	check("write")
	await(t, f.closed, "Closed")
}

// A reply that the socket does not take at once is written by the loop as the
// client reads.
func TestReplyIsFlushed(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 1<<18)
	for name, open := range map[string]func(testing.TB) (int, net.Conn){"unix": pair, "tcp": tcpPair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{WriteStall: int64(time.Second)})
			f := &fake{reply: func(string) (Verdict, []byte) { return Linger, []byte(big) }}
			fd, nc := open(t)
			c := r.start(f, fd, nc)
			c.send("x\n")
			eventually(t, "the socket is full", func() (full bool) {
				r.on(func() { full = f.phase == flushing })
				return full
			})
			c.want(big)
			c.ended()
			c.Close()
			await(t, f.closed, "Closed")
			// And for nobody: the time is bounded.
			r = newRig(t, Limits{WriteStall: int64(20 * time.Millisecond)})
			f = &fake{reply: func(string) (Verdict, []byte) { return Linger, []byte(big) }}
			fd, nc = open(t)
			r.start(f, fd, nc).send("x\n")
			await(t, f.closed, "Closed")
		})
	}
}

func TestLingering(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	refuse := func(string) (Verdict, []byte) { return Linger, []byte("no\n") }
	// What the client still sends is read, and does not cost it the answer.
	f := &fake{reply: refuse}
	fd, nc := tcpPair(t)
	c := r.start(f, fd, nc)
	c.send("x\n")
	for range 64 {
		c.send(strings.Repeat("y", 64<<10))
	}
	c.want("no\n")
	c.ended()
	select {
	case <-f.closed:
		t.Error("closed before the client was")
	default:
	}
	c.Close()
	await(t, f.closed, "Closed")
	// A client that does not close is not waited for.
	f = &fake{reply: refuse}
	c = r.open(f)
	c.send("x\n")
	await(t, f.closed, "Closed")
	c.want("no\n")
	c.ended()
}

func TestHijack(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) (int, net.Conn){"unix": pair, "tcp": tcpPair} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{Idle: int64(20 * time.Millisecond)})
			hijacked := make(chan net.Conn, 1)
			f := &fake{}
			f.serve = func(f *fake, line string) Verdict {
				f.leave()
				defer f.owner.Store(1)
				nc, rest, err := f.Hijack()
				if err != nil || string(rest) != "rest" {
					t.Errorf("Hijack: %q, %v", rest, err)
					return Close
				}
				await(t, f.closed, "Closed, while Serve runs")
				hijacked <- nc
				return Detached
			}
			fd, nc := open(t)
			c := r.start(f, fd, nc)
			c.send("x\nrest")
			h := await(t, hijacked, "the hijack")
			defer h.Close()
			if n := r.shared.Gate.Open(); n != 0 {
				t.Errorf("%d places are taken", n)
			}
			r.loop.Post(f.place, Kill)
			r.on(func() { r.loop.Broadcast(Kill) })
			c.send("ping\n")
			b := make([]byte, 5)
			if _, err := io.ReadFull(h, b); err != nil || string(b) != "ping\n" {
				t.Errorf("read %q, %v", b, err)
			}
			io.WriteString(h, "pong\n")
			c.want("pong\n")
			h.SetReadDeadline(time.Now().Add(-time.Second))
			if _, err := h.Read(b); !os.IsTimeout(err) {
				t.Errorf("the deadline does not work: %v", err)
			}
			h.Close()
			c.ended()
		})
	}
}

// A handler that ends its goroutine loses its connection, no more.
func TestGoexit(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	for range 10 {
		f := &fake{serve: func(f *fake, line string) Verdict {
			runtime.Goexit()
			return More
		}}
		c := r.open(f)
		c.send("x\ny\n")
		c.ended()
		c.Close()
		await(t, f.closed, "Closed")
		if f.runs.Load() != 1 {
			t.Errorf("served %d times", f.runs.Load())
		}
	}
}

func TestPeerGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		leave func(c *client)
		reset bool
	}{
		{"end", func(c *client) { c.closeWrite() }, false},
		{"close", func(c *client) { c.Close() }, false},
		{"reset", func(c *client) { c.Conn.(*net.TCPConn).SetLinger(0); c.Close() }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			entered := make(chan bool, 1)
			f := &fake{}
			f.serve = func(f *fake, line string) Verdict {
				entered <- true
				if got := await(f.t, f.gone, "PeerGone"); got != tt.reset {
					t.Errorf("reset is %v", got)
				}
				return Close
			}
			fd, nc := tcpPair(t)
			c := r.start(f, fd, nc)
			c.send("x\n")
			await(t, entered, "Serve")
			tt.leave(c)
			await(t, f.closed, "Closed")
		})
	}
}
