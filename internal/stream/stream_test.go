package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// fake is a Session whose requests are lines; it checks that it has one owner.
type fake struct {
	*Conn
	t *testing.T
	// The times of a connection: to its first request, of a partial line, and
	// between lines.
	first, partly, idle time.Duration
	serve               func(f *fake, line string) conn.Next // user code
	begun, partial      bool
	owner               atomic.Int32
	expired             chan bool // gets partial
	gone                chan bool
	ended               chan bool // Run has returned
	closed              atomic.Int32
	lefts               atomic.Int32
}

func (f *fake) enter(who string) {
	if !f.owner.CompareAndSwap(0, 1) {
		f.t.Errorf("%s while another goroutine is the owner", who)
	}
}

func (f *fake) leave() { f.owner.Store(0) }

// code is user code.
type code func()

func (c code) Run() { c() }

func (c code) Ended(e exec.End) {
	if v, ok := e.Panic(); ok {
		panic(v)
	}
}

// Write sends a and then b, and waits for room.
func (f *fake) Write(a, b []byte) error {
	return f.Send(&conn.Write{A: a, B: b, Wait: outbox.ForRoom})
}

// Data implements conn.Session.
func (f *fake) Data(eof bool) conn.Next {
	f.enter("Data")
	defer f.leave()
	for {
		b := f.Buffered()
		i := bytes.IndexByte(b, '\n')
		switch {
		case i < 0 && eof && len(b) > 0:
			f.Send(&conn.Write{A: []byte("cut\n")})
			return conn.Linger
		case i < 0 && eof:
			return conn.Close
		case i < 0:
			f.awaits(len(b) > 0)
			return conn.More
		}
		line := string(b[:i])
		if line == "kill" {
			f.Kill()
		}
		f.Discard(i + 1)
		f.begun, f.partial = true, false
		next := conn.Close
		if f.Do(code(func() { next = f.serve(f, line) })); next != conn.More {
			return next
		}
	}
}

func (f *fake) awaits(partial bool) {
	d := f.idle
	if partial {
		if f.partial {
			return
		}
		d = f.partly
	}
	if f.partial = partial; !f.begun {
		return
	}
	by := int64(0)
	if d > 0 {
		by = f.Now() + int64(d)
	}
	f.SetDeadline(by)
}

func (f *fake) Writable() conn.Next {
	f.t.Error("Writable of a link that is not shared")
	return conn.More
}
func (f *fake) Late(time.Duration)    { f.t.Error("Late, where there is no loop") }
func (f *fake) Since(now int64) int64 { return now }

func (f *fake) Expired() conn.Next {
	f.enter("Expired")
	defer f.leave()
	f.expired <- f.partial
	if f.partial {
		f.Send(&conn.Write{A: []byte("late\n")})
		return conn.Linger
	}
	return conn.Close
}

func (f *fake) Drain(since int64) conn.Next {
	f.enter("Drain")
	defer f.leave()
	if f.begun && len(f.Buffered()) == 0 {
		return conn.Close
	}
	f.SetDeadline(since + int64(conn.DrainNew))
	return conn.More
}

func (f *fake) PeerGone(reset bool) {
	select {
	case f.gone <- reset:
	default:
	}
}

func (f *fake) Closed(bool) { f.closed.Add(1) }

func echo(f *fake, line string) conn.Next {
	if f.Write([]byte(line), []byte("\n")) != nil {
		return conn.Close
	}
	return conn.More
}

// short is a time that is to pass.
const short = 20 * time.Millisecond

// open runs f over TCP. Limits that are 0 do not matter.
func open(t *testing.T, lim conn.Limits, f *fake) *servertest.Client {
	t.Helper()
	for _, l := range []*int64{&lim.ReadStall, &lim.WriteStall} {
		if *l == 0 {
			*l = int64(time.Hour)
		}
	}
	s, nc := servertest.TCPConns(t)
	f.t, f.expired, f.gone, f.ended = t, make(chan bool, 4), make(chan bool, 4), make(chan bool)
	f.Conn = New(s, &lim, new(tally.Shard), func(*Conn) { f.lefts.Add(1) })
	if f.first > 0 {
		f.SetDeadline(f.Now() + int64(f.first))
	}
	go func() {
		defer close(f.ended) // deferred for user code that calls Goexit
		defer f.Gone()
		f.Run(f)
	}()
	t.Cleanup(func() {
		nc.Close()
		f.Kill()
		servertest.Await(t, f.ended, "the end of Run")
		if n := f.closed.Load(); n != 1 {
			t.Errorf("Closed was called %d times", n)
		}
		if n := f.lefts.Load(); n != 1 {
			t.Errorf("the connection left %d times", n)
		}
	})
	return servertest.NewClient(t, nc)
}

// serving is open of a fake with user code only.
func serving(t *testing.T, lim conn.Limits, serve func(f *fake, line string) conn.Next) (*fake, *servertest.Client) {
	t.Helper()
	f := &fake{serve: serve}
	return f, open(t, lim, f)
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		f       *fake
		in, out string
		partial bool
	}{
		{"first", &fake{first: short}, "", "", false},
		{"first, partial", &fake{first: 25 * short}, "x", "late\n", true},
		{"idle", &fake{idle: short}, "a\n", "a\n", false},
		{"partial", &fake{partly: short}, "a\nb", "a\nlate\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.f.serve = echo
			c := open(t, conn.Limits{}, tt.f)
			c.Send(tt.in)
			if servertest.Await(t, tt.f.expired, "Expired") != tt.partial {
				t.Errorf("partial is %v", !tt.partial)
			}
			c.Want(tt.out)
			c.Ended()
		})
	}
}

func TestStalls(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	serve := func(f *fake, line string) conn.Next {
		if line == "read" {
			errs <- f.Fill()
			return echo(f, line)
		}
		errs <- f.Write(make([]byte, 64<<20), nil)
		return conn.Reset
	}
	// A busy machine may take longer than short to send a line.
	_, reads := serving(t, conn.Limits{ReadStall: int64(short)}, serve)
	_, writes := serving(t, conn.Limits{WriteStall: int64(short)}, serve)
	for _, line := range []string{"read", "read", "write"} {
		c := reads
		if line == "write" {
			c = writes
		}
		c.Send(line + "\n")
		if err := servertest.Await(t, errs, line); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", line, err)
		}
		if line == "read" {
			c.Want("read\n")
		}
	}
}

// Killed between the end of a line and its user code: PeerGone found none that it
// could tell, so none may begin.
func TestKillBeforeUserCode(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"kill\n", "a\nkill\n"} {
		f, c := serving(t, conn.Limits{}, func(f *fake, line string) conn.Next {
			if line == "kill" {
				f.t.Error("user code began after Kill")
			}
			return conn.More
		})
		c.Send(in)
		servertest.Await(t, f.ended, "the end of Run")
	}
}

// The watch reads a pipelined request, an end or nothing; the connection goes
// on as if it had not.
func TestWatchPeer(t *testing.T) {
	t.Parallel()
	f, c := serving(t, conn.Limits{ReadStall: int64(short)}, func(f *fake, line string) conn.Next {
		f.WatchPeer()
		f.WatchPeer()
		if strings.HasPrefix(line, "wait") {
			if servertest.Await(f.t, f.gone, "PeerGone") {
				f.t.Error("an end is a reset")
			}
		}
		for range len(line) {
			runtime.Gosched()
		}
		return echo(f, line)
	})
	for i := range 500 {
		line := fmt.Sprintf("%d%s\n", i, strings.Repeat("x", i%40))
		if i%2 == 0 {
			c.Send(line)
			c.Want(line)
			continue
		}
		c.Send(line + line)
		c.Want(line + line)
	}
	c.Send("wait\n")
	c.CloseWrite()
	c.Want("wait\n")
	c.Ended()
	servertest.Await(t, f.ended, "the end of Run")
}

func TestHijack(t *testing.T) {
	t.Parallel()
	for _, watch := range []bool{false, true} {
		hijacked := make(chan net.Conn, 1)
		f, c := serving(t, conn.Limits{}, func(f *fake, line string) conn.Next {
			if watch {
				f.WatchPeer()
			}
			nc, rest, err := f.Hijack()
			if err != nil || !strings.HasPrefix("rest", string(rest)) {
				t.Errorf("Hijack: %q, %v", rest, err)
			}
			io.WriteString(nc, string(rest)+"\n")
			hijacked <- nc
			return conn.Detached
		})
		c.Send("x\nrest")
		h := servertest.Await(t, hijacked, "the hijack")
		servertest.Await(t, f.ended, "the end of Run")
		f.Kill()
		f.Conn.Drain()
		if s, err := c.R.ReadString('\n'); err != nil {
			t.Errorf("got %q, %v", s, err)
		}
		c.Send("!")
		for b := []byte{0}; b[0] != '!'; {
			if _, err := h.Read(b); err != nil {
				t.Fatalf("the hijacker: %v", err)
			}
		}
		h.Close()
		c.Ended()
	}
}

func TestGoexit(t *testing.T) {
	t.Parallel()
	_, c := serving(t, conn.Limits{}, func(f *fake, line string) conn.Next {
		f.WatchPeer()
		runtime.Goexit()
		return conn.More
	})
	c.Send("a\nb\n")
	c.Ended()
}
