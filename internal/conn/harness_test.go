//go:build linux || darwin

package conn

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/loop"
)

// patience bounds the waits for what must happen; nothing passes by waiting it
// out.
const patience = 30 * time.Second

// TestMain fails the package if a test leaves buffers behind. (A connection
// that is left behind fails its own test: see rig.)
func TestMain(m *testing.M) {
	code := m.Run()
	if n := buf.Live(); code == 0 && n != 0 {
		println(n, "buffers were left behind")
		code = 1
	}
	os.Exit(code)
}

// rig is a running loop.
type rig struct {
	t      testing.TB
	loop   *loop.Loop
	shared *Shared
}

// hour stands for a limit that does not matter.
const hour = int64(time.Hour)

func newRig(t testing.TB, lim Limits) *rig {
	t.Helper()
	for _, l := range []*int64{&lim.Header, &lim.First, &lim.Idle, &lim.ReadStall, &lim.WriteStall} {
		if *l == 0 {
			*l = hour
		}
	}
	l, err := loop.New()
	if err != nil {
		t.Fatal(err)
	}
	if lim.Slice == 0 {
		lim.Slice = int64(time.Minute) // else a busy machine would cut a go short
	}
	r := &rig{t, l, &Shared{Limits: lim, Gate: loop.NewGate(0, 0)}}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Do(func() {
			l.Broadcast(Kill)
			l.Retire()
		})
		if err := await(t, done, "the loop's end"); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// fake is a Proto whose requests are lines. It checks that there is one owner
// at a time.
type fake struct {
	quick bool
	Conn
	t    testing.TB
	line string
	// quickly, when not nil, says in place of quick whether a line is.
	quickly func(line string) bool
	// whole: a quick line is fed as RunWhole; raw is the line where it lies.
	whole   bool
	raw     []byte
	refused bool // Serve is to say so
	eof     bool // Feed has seen the end
	owner   atomic.Int32
	runs    atomic.Int32
	// serve is Serve's work for a line.
	serve func(f *fake, line string) Verdict
	// reply, when not nil, may answer a line on the loop.
	reply func(line string) (Verdict, []byte)
	// fed, when not nil, is called when Feed has found a line.
	fed     func(f *fake, line string)
	expired chan bool // gets partial
	gone    chan bool // gets reset
	closed  chan bool // closed by Closed
}

func (f *fake) Quick() bool {
	switch {
	case f.refused:
		return true
	case f.quickly != nil:
		return f.quickly(f.line)
	}
	return f.quick
}

func (f *fake) Refuse() { f.refused = true }
func (f *fake) Late()   {}

// enter and leave are around everything that only the owner may do.
func (f *fake) enter(who string) {
	if !f.owner.CompareAndSwap(0, 1) {
		f.t.Errorf("%s while somebody else is the owner", who)
	}
}

func (f *fake) leave() { f.owner.Store(0) }

func (f *fake) Feed(b []byte, eof bool) (int, Verdict, []byte) {
	f.enter("Feed")
	defer f.leave()
	f.eof = eof
	i := bytes.IndexByte(b, '\n')
	switch {
	case i < 0 && eof && len(b) > 0:
		return 0, Linger, []byte("cut\n")
	case i < 0 && eof:
		return 0, Close, nil
	case i < 0:
		return 0, More, nil
	}
	f.line = string(b[:i])
	if f.fed != nil {
		f.fed(f, f.line)
	}
	if f.reply != nil {
		if v, reply := f.reply(f.line); v != Run {
			return 0, v, reply
		}
	}
	if f.raw = nil; f.whole && f.Quick() {
		f.raw = b[:i+1]
		return i + 1, RunWhole, nil
	}
	return i + 1, Run, nil
}

func (f *fake) Serve() Verdict {
	f.enter("Serve")
	defer f.leave()
	if f.refused {
		f.refused = false
		return last(f, "busy")
	}
	f.runs.Add(1)
	return f.serve(f, f.line)
}

func (f *fake) Expired(partial bool) (Verdict, []byte) {
	f.enter("Expired")
	defer f.leave()
	f.expired <- partial
	if partial {
		return Linger, []byte("late\n")
	}
	return Close, nil
}

func (f *fake) PeerGone(reset bool) {
	select {
	case f.gone <- reset:
	default:
	}
}

func (f *fake) Closed() { close(f.closed) }

// echo answers a line with itself.
func echo(f *fake, line string) Verdict {
	if f.Write2([]byte(line), []byte("\n")) != nil {
		return Close
	}
	return More
}

// last is echo by WriteLast.
func last(f *fake, line string) Verdict {
	if f.WriteLast([]byte(line+"\n")) != nil {
		return Close
	}
	return More
}

// pair is two connected sockets: a descriptor for the loop and a client.
func pair(t testing.TB) (int, net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.CloseOnExec(fd)
		syscall.SetNonblock(fd, true)
	}
	file := os.NewFile(uintptr(fds[1]), "client")
	defer file.Close()
	nc, err := net.FileConn(file)
	if err != nil {
		t.Fatal(err)
	}
	return fds[0], nc
}

// tcpPair is pair over TCP, for what only TCP has: resets.
func tcpPair(t testing.TB) (int, net.Conn) {
	t.Helper()
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
	defer s.Close()
	raw, _ := s.(*net.TCPConn).SyscallConn()
	fd := -1
	raw.Control(func(orig uintptr) { fd, err = syscall.Dup(int(orig)) })
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	return fd, nc
}

// client speaks lines.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// open starts f on one end of a socket pair and returns the other.
func (r *rig) open(f *fake) *client {
	r.t.Helper()
	fd, nc := pair(r.t)
	return r.start(f, fd, nc)
}

func (r *rig) start(f *fake, fd int, nc net.Conn) *client {
	r.t.Helper()
	f.t = r.t
	if f.serve == nil {
		f.serve = echo
	}
	f.expired, f.gone, f.closed = make(chan bool, 10), make(chan bool, 10), make(chan bool)
	r.shared.Gate.Enter()
	r.on(func() {
		if err := f.Start(r.loop, fd, "peer", nc.RemoteAddr(), f, r.shared); err != nil {
			r.t.Errorf("Start: %v", err)
		}
	})
	nc.SetDeadline(time.Now().Add(patience))
	r.t.Cleanup(func() { nc.Close() })
	return &client{nc, r.t, bufio.NewReader(nc)}
}

// on runs f on the loop and waits for it.
func (r *rig) on(f func()) {
	r.t.Helper()
	done := make(chan bool)
	r.loop.Do(func() { f(); close(done) })
	await(r.t, done, "the loop")
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

// ended waits for the end of the stream, or a reset, with nothing before it.
func (c *client) ended() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if ne, ok := err.(net.Error); ok && ne.Timeout() || len(b) > 0 {
		c.t.Fatalf("got %.100q (%v), want the end", b, err)
	}
}

func (c *client) closeWrite() { c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

func await[T any](t testing.TB, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
	}
}
