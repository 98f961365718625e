package stream

import (
	"bufio"
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

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
)

const patience = 30 * time.Second

// TestMain fails the package if a test leaves buffers behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if n := buf.Live(); code == 0 && n != 0 {
		println(n, "buffers were left behind")
		code = 1
	}
	os.Exit(code)
}

// fake is a Proto whose requests are lines; it checks that it has one owner.
type fake struct {
	*Conn
	t       *testing.T
	line    string
	owner   atomic.Int32
	serve   func(f *fake, line string) conn.Verdict
	expired chan bool
	gone    chan bool
	ended   chan bool // Run has returned
	closed  atomic.Int32
	lefts   atomic.Int32
}

func (f *fake) Quick() bool { return false }
func (f *fake) Refuse()     {}
func (f *fake) Late()       {}

func (f *fake) enter(who string) {
	if !f.owner.CompareAndSwap(0, 1) {
		f.t.Errorf("%s while somebody else is the owner", who)
	}
}

func (f *fake) leave() { f.owner.Store(0) }

func (f *fake) Feed(b []byte, eof bool) (int, conn.Verdict, []byte) {
	f.enter("Feed")
	defer f.leave()
	i := bytes.IndexByte(b, '\n')
	if bytes.HasPrefix(b, []byte("kill\n")) {
		f.Kill()
	}
	switch {
	case i < 0 && eof && len(b) > 0:
		return 0, conn.Linger, []byte("cut\n")
	case i < 0 && eof:
		return 0, conn.Close, nil
	case i < 0:
		return 0, conn.More, nil
	}
	f.line = string(b[:i])
	return i + 1, conn.Run, nil
}

func (f *fake) Serve() conn.Verdict {
	f.enter("Serve")
	defer f.leave()
	return f.serve(f, f.line)
}

func (f *fake) Expired(partial bool) (conn.Verdict, []byte) {
	f.expired <- partial
	if partial {
		return conn.Linger, []byte("late\n")
	}
	return conn.Close, nil
}

func (f *fake) PeerGone(reset bool) {
	select {
	case f.gone <- reset:
	default:
	}
}

func (f *fake) Closed() { f.closed.Add(1) }

func echo(f *fake, line string) conn.Verdict {
	if f.Write2([]byte(line), []byte("\n")) != nil {
		return conn.Close
	}
	return conn.More
}

// client is the other end.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

// hour stands for a limit that does not matter.
const hour = int64(time.Hour)

func open(t *testing.T, lim conn.Limits, serve func(*fake, string) conn.Verdict) (*fake, *client) {
	t.Helper()
	for _, l := range []*int64{&lim.Header, &lim.First, &lim.Idle, &lim.ReadStall, &lim.WriteStall} {
		if *l == 0 {
			*l = hour
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, serve: serve, expired: make(chan bool, 4), gone: make(chan bool, 4), ended: make(chan bool)}
	f.Conn = New(s, &lim, func(*Conn) { f.lefts.Add(1) })
	go func() {
		defer close(f.ended) // deferred for a handler that calls Goexit
		defer f.Leave()
		f.Run(f)
	}()
	nc.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() {
		nc.Close()
		f.Kill()
		await(t, f.ended, "the end of Run")
		if n := f.closed.Load(); n != 1 {
			t.Errorf("Closed was called %d times", n)
		}
		if n := f.lefts.Load(); n != 1 {
			t.Errorf("the connection left %d times", n)
		}
	})
	return f, &client{nc, t, bufio.NewReader(nc)}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *client) want(s string) {
	c.t.Helper()
	b := make([]byte, len(s))
	if n, err := io.ReadFull(c.r, b); string(b) != s {
		c.t.Fatalf("got %.100q (%v), want %.100q", b[:n], err, s)
	}
}

func (c *client) end() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if ne, ok := err.(net.Error); ok && ne.Timeout() || len(b) > 0 {
		c.t.Fatalf("got %.100q (%v), want the end", b, err)
	}
}

func await[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

const short = int64(20 * time.Millisecond)

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		lim     conn.Limits
		in, out string
		partial bool
	}{
		{"first", conn.Limits{First: short}, "", "", false},
		{"first, partial", conn.Limits{First: 25 * short}, "x", "late\n", true},
		{"idle", conn.Limits{Idle: short}, "a\n", "a\n", false},
		{"partial", conn.Limits{Header: short}, "a\nb", "a\nlate\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, c := open(t, tt.lim, echo)
			c.send(tt.in)
			if await(t, f.expired, "Expired") != tt.partial {
				t.Errorf("partial is %v", !tt.partial)
			}
			c.want(tt.out)
			c.end()
		})
	}
}

func TestStalls(t *testing.T) {
	t.Parallel()
	errs := make(chan error, 1)
	_, c := open(t, conn.Limits{ReadStall: short, WriteStall: short}, func(f *fake, line string) conn.Verdict {
		if line == "read" {
			errs <- f.Fill()
			return echo(f, line)
		}
		errs <- f.Write2(make([]byte, 64<<20), nil)
		return conn.Reset
	})
	for _, line := range []string{"read", "read", "write"} {
		c.send(line + "\n")
		if err := await(t, errs, line); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %v", line, err)
		}
		if line == "read" {
			c.want("read\n")
		}
	}
}

func TestDrainAndKill(t *testing.T) {
	t.Parallel()
	f, c := open(t, conn.Limits{}, echo)
	c.send("a\n")
	c.want("a\n")
	f.Drain()
	c.end()
	// In the middle of a request: it is finished.
	entered, leave := make(chan bool, 1), make(chan bool)
	held := func(f *fake, line string) conn.Verdict {
		entered <- true
		<-leave
		return echo(f, line)
	}
	f, c = open(t, conn.Limits{}, held)
	c.send("a\n")
	await(t, entered, "Serve")
	f.Drain()
	close(leave)
	c.want("a\n")
	c.end()
	// Killed: what the handler does fails.
	errs := make(chan error, 1)
	f, c = open(t, conn.Limits{}, func(f *fake, line string) conn.Verdict {
		entered <- true
		errs <- f.Fill()
		return conn.More
	})
	c.send("a\n")
	await(t, entered, "Serve")
	f.Kill()
	if err := await(t, errs, "the read"); err == nil {
		t.Error("no error")
	}
	c.end()
}

// Killed between a request's Feed and its Serve: PeerGone found no handler
// that it could tell, so none may begin.
func TestKillBeforeServe(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"kill\n", "a\nkill\n"} {
		f, c := open(t, conn.Limits{}, func(f *fake, line string) conn.Verdict {
			if line == "kill" {
				f.t.Error("Serve was called after Kill")
			}
			return conn.More
		})
		c.send(in)
		await(t, f.ended, "the end of Run")
	}
}

// The watch reads a pipelined request, an end or nothing; the connection goes
// on as if it had not.
func TestWatchPeer(t *testing.T) {
	t.Parallel()
	f, c := open(t, conn.Limits{ReadStall: short}, func(f *fake, line string) conn.Verdict {
		f.WatchPeer()
		f.WatchPeer()
		if strings.HasPrefix(line, "wait") {
			if await(f.t, f.gone, "PeerGone") {
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
			c.send(line)
			c.want(line)
			continue
		}
		c.send(line + line)
		c.want(line + line)
	}
	c.send("wait\n")
	c.Conn.(*net.TCPConn).CloseWrite()
	c.want("wait\n")
	c.end()
	await(t, f.ended, "the end of Run")
}

func TestHijack(t *testing.T) {
	t.Parallel()
	for _, watch := range []bool{false, true} {
		hijacked := make(chan net.Conn, 1)
		f, c := open(t, conn.Limits{Idle: short}, func(f *fake, line string) conn.Verdict {
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
		c.send("x\nrest")
		h := await(t, hijacked, "the hijack")
		await(t, f.ended, "the end of Run")
		f.Kill()
		f.Drain()
		if s, err := c.r.ReadString('\n'); err != nil {
			t.Errorf("got %q, %v", s, err)
		}
		c.send("!")
		for b := []byte{0}; b[0] != '!'; {
			if _, err := h.Read(b); err != nil {
				t.Fatalf("the hijacker: %v", err)
			}
		}
		h.Close()
		c.end()
	}
}

func TestGoexit(t *testing.T) {
	t.Parallel()
	_, c := open(t, conn.Limits{}, func(f *fake, line string) conn.Verdict {
		f.WatchPeer()
		runtime.Goexit()
		return conn.More
	})
	c.send("a\nb\n")
	c.end()
}
