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

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/timer"
)

// The next line comes at any moment around the end of user code, so that the return
// of the connection meets the event in every order. A lost event would hang the client.
func TestReleaseMeetsEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	var clients sync.WaitGroup
	for i := range 8 {
		c := r.open(&fake{serve: func(f *fake, line string) Next {
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
					c.Send(line[:2])
					runtime.Gosched()
					line = line[2:]
					c.Send(line)
					c.Want(fmt.Sprintf("%d-%d\n", i, j))
					continue
				}
				c.Send(line)
				c.Want(line)
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
		c.Send("x\n")
		if i%2 == 0 {
			c.Want("x\n")
		}
		for range i % 50 {
			runtime.Gosched()
		}
		c.CloseWrite()
		if i%2 == 1 {
			c.Want("x\n")
		}
		c.Ended()
		servertest.Await(t, f.closed, "Closed")
		c.Close()
	}
}

// The timer fires while the handler owns the connection: it is armed again
// when the connection comes back.
func TestExpireWhileOwned(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		r := newRig(t, Limits{})
		f := &fake{quick: quick, idle: moment, first: moment, serve: func(f *fake, line string) Next {
			if line == "a" {
				due, turns := sys.Nanotime()+moment+timer.Tick, 0
				servertest.Eventually(f.t, "the timer has fired", func() bool {
					f.onLoop(func() {
						if f.loop.Now() > due {
							turns++
						}
					})
					return turns > 1 // timers come last in a turn
				})
			}
			return echo(f, line)
		}}
		c := r.openAfter("a\nb\n", f)
		c.Want("a\nb\n")
		if servertest.Await(t, f.expired, "Expired") {
			t.Error("an idle connection expired as a partial one")
		}
		c.Ended()
		servertest.Await(t, f.closed, "Closed")
	}
}

// A partial line after the one that is served needs a shorter time than the
// timer is set for.
func TestPartialAfterRequestExpires(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		for _, first := range []string{"a\nb", "a\n"} {
			r := newRig(t, Limits{})
			entered, leave := make(chan bool, 1), make(chan bool)
			f := &fake{quick: quick, first: hour, partly: moment, idle: hour, serve: func(f *fake, line string) Next {
				entered <- true
				<-leave
				return echo(f, line)
			}}
			c := r.open(f)
			c.Send(first)
			servertest.Await(t, entered, "Serve")
			if len(first) == 2 {
				c.Send("b")
			}
			close(leave)
			c.Want("a\n")
			if !servertest.Await(t, f.expired, "Expired") {
				t.Error("a partial line expired as an idle connection")
			}
			c.Want("late\n")
			c.Close()
			servertest.Await(t, f.closed, "Closed")
		}
	}
}

// The deadline of Open counts from the accept, whatever has arrived since.
func TestFirstTimeCountsFromAccept(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	f := &fake{first: 25 * moment}
	c := r.open(f)
	if servertest.Await(t, f.expired, "Expired") {
		t.Error("partial without a byte")
	}
	c.Ended()
	f = &fake{first: 25 * moment, partly: hour}
	c = r.openAfter("x", f)
	if !servertest.Await(t, f.expired, "Expired") {
		t.Error("not partial")
	}
	c.Want("late\n")
}

// A handler waits for bytes or for room, with and without a deadline.
func TestHandlerWaits(t *testing.T) {
	t.Parallel()
	for _, quick := range []bool{true, false} {
		testHandlerWaits(t, quick)
	}
}

func testHandlerWaits(t *testing.T, quick bool) {
	r := newRig(t, Limits{ReadStall: moment, WriteStall: moment})
	errs := make(chan error, 1)
	f := &fake{quick: quick, serve: func(f *fake, line string) Next {
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
			errs <- f.Write(make([]byte, 64<<20), nil)
			return Reset
		}
		return echo(f, line)
	}}
	c := r.open(f)
	check := func(what string) {
		t.Helper()
		if ne, ok := servertest.Await(t, errs, what).(net.Error); !ok || !ne.Timeout() {
			t.Errorf("%s: not a timeout", what)
		}
	}
	for _, line := range []string{"read", "deadline", "moved", "read"} {
		c.Send(line + "\n")
		c.Want(line + "\n")
		check(line)
	}
	c.Send("write\n")
	check("write")
	servertest.Await(t, f.closed, "Closed")
}

// An answer without user code that the socket does not take at once is sent by
// the loop as the client reads.
func TestReplyIsFlushed(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789abcdef", 1<<20) // more than sockets grow to hold
	for name, open := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{WriteStall: int64(servertest.Patience)})
			f := &fake{reply: func(string) ([]byte, Next, bool) { return []byte(big), Linger, true }}
			fd, nc := open(t)
			c := r.start(f, fd, nc)
			c.Send("x\n")
			r.inPhase(f, ending)
			c.Want(big)
			c.Ended()
			c.Close()
			servertest.Await(t, f.closed, "Closed")
			// For a client that does not read the time is bounded.
			r = newRig(t, Limits{WriteStall: moment})
			f = &fake{reply: func(string) ([]byte, Next, bool) { return []byte(big), Linger, true }}
			fd, nc = open(t)
			r.start(f, fd, nc).Send("x\n")
			servertest.Await(t, f.closed, "Closed")
		})
	}
}

func TestLingering(t *testing.T) {
	t.Parallel()
	r := newRig(t, Limits{})
	refuse := func(string) ([]byte, Next, bool) { return []byte("no\n"), Linger, true }
	// What the client still sends is read, and does not cost it the answer.
	f := &fake{reply: refuse}
	fd, nc := tcpPair(t)
	c := r.start(f, fd, nc)
	began := time.Now()
	c.Send("x\n")
	c.SendSlowly(strings.Repeat("y", 4<<20), 64<<10)
	c.Want("no\n")
	c.Ended()
	select {
	case <-f.closed:
		if time.Since(began) < LingerFor {
			t.Error("closed before the client was")
		}
	default:
	}
	c.Close()
	servertest.Await(t, f.closed, "Closed")
	// A client that does not close is not waited for.
	f = &fake{reply: refuse}
	c = r.open(f)
	c.Send("x\n")
	servertest.Await(t, f.closed, "Closed")
	c.Want("no\n")
	c.Ended()
}

func TestHijack(t *testing.T) {
	t.Parallel()
	for name, open := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, quick := range []bool{true, false} {
				testHijack(t, open, quick)
			}
		})
	}
}

func testHijack(t *testing.T, open servertest.Pair, quick bool) {
	r := newRig(t, Limits{})
	hijacked := make(chan net.Conn, 1)
	f := &fake{quick: quick, idle: moment}
	f.serve = func(f *fake, line string) Next {
		nc, rest, err := f.Hijack()
		if err != nil || string(rest) != "rest" {
			t.Errorf("Hijack: %q, %v", rest, err)
			return Close
		}
		servertest.Await(t, f.closed, "Closed, while Serve runs")
		hijacked <- nc
		return Detached
	}
	fd, nc := open(t)
	c := r.start(f, fd, nc)
	c.Send("x\nrest")
	h := servertest.Await(t, hijacked, "the hijack")
	defer h.Close()
	if n := r.shared.Gate.Open(); n != 0 {
		t.Errorf("%d places are taken, want none for the hijacker", n)
	}
	r.tell(f, Kill)
	r.on(func() { r.loop.Broadcast(Kill) })
	c.Send("ping\n")
	b := make([]byte, 5)
	if _, err := io.ReadFull(h, b); err != nil || string(b) != "ping\n" {
		t.Errorf("read %q, %v", b, err)
	}
	io.WriteString(h, "pong\n")
	c.Want("pong\n")
	h.SetReadDeadline(time.Now().Add(-time.Second))
	if _, err := h.Read(b); !os.IsTimeout(err) {
		t.Errorf("the deadline does not work: %v", err)
	}
	h.Close()
	c.Ended()
}

func TestPeerGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		leave func(c *client)
		reset bool
		quick bool
	}{
		{"end", func(c *client) { c.CloseWrite() }, false, false},
		{"close", func(c *client) { c.Close() }, false, false},
		{"reset", func(c *client) { c.Reset() }, true, false},
		{"end, on the loop", func(c *client) { c.CloseWrite() }, false, true},
		{"close, on the loop", func(c *client) { c.Close() }, false, true},
		{"reset, on the loop", func(c *client) { c.Reset() }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Limits{})
			entered := make(chan bool, 1)
			f := &fake{quick: tt.quick}
			f.serve = func(f *fake, line string) Next {
				entered <- true
				if got := servertest.Await(f.t, f.gone, "PeerGone"); got != tt.reset {
					t.Errorf("reset is %v", got)
				}
				return Close
			}
			fd, nc := tcpPair(t)
			c := r.start(f, fd, nc)
			c.Send("x\n")
			servertest.Await(t, entered, "Serve")
			tt.leave(c)
			servertest.Await(t, f.closed, "Closed")
		})
	}
}
