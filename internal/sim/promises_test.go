//go:build linux

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// What the engine relies on of its poller and of TCP, as one table that runs on the real kernel and on the simulated
// one: the model must not promise more, nor less.

// place is a kernel with a poller and a listening socket.
type place interface {
	poller() poll.Poller
	listener() int // its descriptor, which is not watched
	dial(t *testing.T) client
	// wait is Wait for what is there, or else until something comes for at most patience.
	wait(t *testing.T, events []poll.Event, patience time.Duration) int
}

// client is the other end of a connection.
type client interface {
	send(p string)
	read(n int) error // of n bytes
	closeWrite()
	close()
	reset()
}

// rig is a place with what a case needs of it.
type rig struct {
	*testing.T
	place
	p    poll.Poller
	key  poll.Key
	open []int // descriptors of connections
}

// accept accepts a connection, or fails with e.
func (r *rig) accept() (fd int, e sys.Errno) {
	fd, _, e = r.p.Accept(r.listener())
	if e == 0 {
		r.open = append(r.open, fd)
	}
	return fd, e
}

func (r *rig) close(fd int) {
	r.p.CloseFD(fd)
	r.open = slices.DeleteFunc(r.open, func(o int) bool { return o == fd })
}

// conn makes a connection that the poller does not watch.
func (r *rig) conn() (fd int, c client) {
	r.Helper()
	c = r.dial(r.T)
	servertest.Eventually(r.T, "a connection to accept", func() bool { return r.p.Pending(r.listener()) })
	fd, e := r.accept()
	if e != 0 {
		r.Fatal(e)
	}
	return fd, c
}

// watched makes one that it watches, with its first event.
func (r *rig) watched() (fd int, c client) {
	r.Helper()
	fd, c = r.conn()
	r.add(fd)
	r.gets(poll.Writable)
	r.quiet()
	return fd, c
}

func (r *rig) add(fd int) {
	r.Helper()
	r.key++
	if err := r.p.Add(fd, r.key); err != nil {
		r.Fatal(err)
	}
}

// gets waits for events of the last key until they add up to want, and checks that they are no more than want and may.
func (r *rig) gets(want poll.Ready, may ...poll.Ready) {
	r.Helper()
	most := want | poll.Writable
	for _, m := range may {
		most |= m
	}
	var got poll.Ready
	for got&want != want {
		var events [4]poll.Event
		n := r.wait(r.T, events[:], servertest.Patience)
		if n == 0 {
			r.Fatalf("no more events: got %05b, want %05b", got, want)
		}
		for _, e := range events[:n] {
			if e.Key != r.key {
				r.Fatalf("an event of key %d", e.Key)
			}
			got |= e.Ready
		}
	}
	if got&^most != 0 {
		r.Errorf("got %05b, want %05b and at most %05b", got, want, most)
	}
}

// quiet checks that there is no event.
func (r *rig) quiet() {
	r.Helper()
	var events [4]poll.Event
	if n := r.wait(r.T, events[:], 0); n != 0 {
		r.Errorf("unexpected: %v", events[:n])
	}
}

// reads checks what Read with a buffer of n bytes returns.
func (r *rig) reads(fd, n int, want string, e sys.Errno) {
	r.Helper()
	p := make([]byte, n)
	if got, err := r.p.Read(fd, p); got != len(want) || err != e || string(p[:max(got, 0)]) != want {
		r.Fatalf("read %d %q, %v; want %q, %v", got, p[:max(got, 0)], err, want, e)
	}
}

// fill writes until there is no room, and returns how much that was.
func (r *rig) fill(fd int) (sent int) {
	r.Helper()
	p := make([]byte, 1<<20)
	for {
		n, e := r.p.Write2(fd, p[:1], p)
		if sent += max(n, 0); sys.Again(e) {
			return sent
		}
		if e != 0 || n == 0 {
			r.Fatalf("wrote %d, %v", n, e)
		}
	}
}

// file makes a file with content.
func (r *rig) file(content string) int {
	r.Helper()
	name := filepath.Join(r.TempDir(), "file")
	r.must(os.WriteFile(name, []byte(content), 0o666))
	f, err := os.Open(name)
	r.must(err)
	r.Cleanup(func() { f.Close() })
	return int(f.Fd())
}

// sends checks how much of n bytes Sendfile sends.
func (r *rig) sends(fd, file int, offset int64, n, want int) {
	r.Helper()
	if sent, e := r.p.Sendfile(fd, file, offset, n); sent != want || e != 0 {
		r.Fatalf("sent %d, %v; want %d", sent, e, want)
	}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

var promises = []struct {
	name string
	run  func(r *rig)
}{
	{"a new connection is writable, once", func(r *rig) {
		r.watched()
	}},
	{"what came before Add is reported", func(r *rig) {
		fd, c := r.conn()
		c.send("x")
		servertest.Eventually(r.T, "a byte", func() bool { n, _ := r.p.Peek(fd); return n > 0 })
		r.add(fd)
		r.gets(poll.Readable | poll.Writable)
		r.quiet()
	}},
	{"unread bytes are reported once, and again when more come", func(r *rig) {
		fd, c := r.watched()
		c.send("a")
		r.gets(poll.Readable)
		r.quiet()
		c.send("b")
		r.gets(poll.Readable)
		r.quiet()
		r.reads(fd, 10, "ab", 0)
		r.reads(fd, 10, "", syscall.EAGAIN)
	}},
	{"a read that fills its buffer leaves the rest, without an event", func(r *rig) {
		fd, c := r.watched()
		c.send("abc")
		r.gets(poll.Readable)
		r.reads(fd, 2, "ab", 0)
		r.quiet()
		r.reads(fd, 2, "c", 0)
	}},
	{"EAGAIN of a read is followed by an event", func(r *rig) {
		fd, c := r.watched()
		r.reads(fd, 1, "", syscall.EAGAIN)
		c.send("a")
		r.gets(poll.Readable)
		r.reads(fd, 1, "a", 0)
	}},
	{"EAGAIN of a write is followed by an event", func(r *rig) {
		fd, c := r.watched()
		for range 2 {
			// The real kernel goes on to move bytes to the client's, and then reports room.
			sent := r.fill(fd)
			r.must(c.read(sent))
			r.gets(poll.Writable)
		}
	}},
	{"so is a write that was accepted in part", func(r *rig) {
		fd, c := r.watched()
		p := make([]byte, 64<<20)
		n, e := r.p.Write2(fd, p, nil)
		if e != 0 || n >= len(p) {
			r.Fatalf("wrote %d, %v", n, e)
		}
		r.must(c.read(n))
		r.gets(poll.Writable)
	}},
	{"a write that was accepted whole is not", func(r *rig) {
		fd, c := r.watched()
		if n, e := r.p.Write2(fd, []byte("a"), []byte("b")); n != 2 || e != 0 {
			r.Fatal(n, e)
		}
		r.must(c.read(2))
		r.quiet()
	}},
	{"bytes may precede the end, after which the other direction lives", func(r *rig) {
		fd, c := r.watched()
		c.send("last")
		c.closeWrite()
		r.gets(poll.Readable | poll.PeerClosed)
		r.reads(fd, 100, "last", 0)
		r.reads(fd, 100, "", 0)
		r.reads(fd, 100, "", 0)
		if n, e := r.p.Write2(fd, []byte("a"), nil); n != 1 || e != 0 {
			r.Fatal(n, e)
		}
		r.must(c.read(1))
	}},
	{"a reset is a hangup, and its error comes once, after what was received", func(r *rig) {
		fd, c := r.watched()
		c.send("ab")
		r.gets(poll.Readable)
		c.reset()
		r.gets(poll.Readable|poll.Hangup, poll.PeerClosed)
		r.reads(fd, 1, "a", 0)
		r.reads(fd, 9, "b", 0)
		r.reads(fd, 9, "", syscall.ECONNRESET)
		r.reads(fd, 9, "", 0)
		if _, e := r.p.Write2(fd, []byte("a"), nil); e != syscall.EPIPE {
			r.Error(e)
		}
	}},
	{"the error of a reset may come with a peek", func(r *rig) {
		fd, c := r.watched()
		c.reset()
		r.gets(poll.Readable|poll.Hangup, poll.PeerClosed)
		if _, e := r.p.Peek(fd); e != syscall.ECONNRESET {
			r.Error(e)
		}
		r.reads(fd, 9, "", 0)
	}},
	{"the error of a reset may come with a write", func(r *rig) {
		fd, c := r.watched()
		c.reset()
		r.gets(poll.Readable|poll.Hangup, poll.PeerClosed)
		for _, want := range []sys.Errno{syscall.ECONNRESET, syscall.EPIPE} {
			if _, e := r.p.Write2(fd, []byte("a"), nil); e != want {
				r.Errorf("got %v, want %v", e, want)
			}
		}
		r.reads(fd, 9, "", 0)
	}},
	{"what comes for a client that has closed is answered by a reset", func(r *rig) {
		fd, c := r.watched()
		c.close()
		r.gets(poll.Readable | poll.PeerClosed)
		r.reads(fd, 9, "", 0)
		if n, e := r.p.Write2(fd, []byte("a"), nil); n != 1 || e != 0 {
			r.Fatal(n, e)
		}
		r.gets(poll.Readable|poll.Hangup, poll.PeerClosed)
		if _, e := r.p.Write2(fd, []byte("a"), nil); e != syscall.EPIPE {
			r.Error(e)
		}
	}},
	{"a client that closes with bytes unread resets", func(r *rig) {
		fd, c := r.watched()
		if n, e := r.p.Write2(fd, []byte("a"), nil); n != 1 || e != 0 {
			r.Fatal(n, e)
		}
		r.must(c.read(0))
		c.close()
		r.gets(poll.Readable|poll.Hangup, poll.PeerClosed)
		r.reads(fd, 9, "", syscall.ECONNRESET)
	}},
	{"both ends are a hangup", func(r *rig) {
		fd, c := r.watched()
		r.p.CloseWrite(fd)
		r.gets(poll.Writable)
		if _, e := r.p.Write2(fd, []byte("a"), nil); e != syscall.EPIPE {
			r.Error(e)
		}
		if err := c.read(1); err != io.EOF {
			r.Error(err)
		}
		c.closeWrite()
		r.gets(poll.Readable | poll.PeerClosed | poll.Hangup)
		r.reads(fd, 9, "", 0)
	}},
	{"shutdown in both directions is an event, and the end", func(r *rig) {
		fd, _ := r.watched()
		r.p.CloseBoth(fd)
		r.gets(poll.Readable | poll.Writable | poll.PeerClosed | poll.Hangup)
		r.reads(fd, 9, "", 0)
		if _, e := r.p.Write2(fd, []byte("a"), nil); e != syscall.EPIPE {
			r.Error(e)
		}
	}},
	{"a close with bytes unread is a reset", func(r *rig) {
		fd, c := r.watched()
		c.send("a")
		r.gets(poll.Readable)
		r.close(fd)
		if err := c.read(1); !errors.Is(err, syscall.ECONNRESET) {
			r.Error(err)
		}
	}},
	{"a close without is an end", func(r *rig) {
		fd, c := r.watched()
		r.close(fd)
		if err := c.read(1); err != io.EOF {
			r.Error(err)
		}
	}},
	{"unless it shall be a reset", func(r *rig) {
		fd, c := r.watched()
		r.p.SetReset(fd)
		r.close(fd)
		if err := c.read(1); !errors.Is(err, syscall.ECONNRESET) {
			r.Error(err)
		}
	}},
	{"a descriptor that was closed has no events, nor has its number", func(r *rig) {
		fd, c := r.watched()
		c.send("a")
		servertest.Eventually(r.T, "a byte", func() bool { n, _ := r.p.Peek(fd); return n > 0 })
		r.close(fd)
		again, _ := r.conn()
		if again != fd {
			r.Logf("descriptor %d, then %d", fd, again) // another test may have it
		}
		r.quiet()
	}},
	{"a descriptor that was removed has none", func(r *rig) {
		fd, c := r.watched()
		c.send("a")
		servertest.Eventually(r.T, "a byte", func() bool { n, _ := r.p.Peek(fd); return n > 0 })
		r.p.Remove(fd)
		r.quiet()
	}},
	{"events wait for a Wait with room", func(r *rig) {
		for range 3 {
			fd, _ := r.conn()
			r.add(fd)
		}
		seen := make(map[poll.Key]bool)
		for range 3 {
			var one [1]poll.Event
			if n := r.wait(r.T, one[:], servertest.Patience); n != 1 || seen[one[0].Key] {
				r.Fatal(n, one, seen)
			}
			seen[one[0].Key] = true
		}
		r.quiet()
	}},
	{"connections to accept are reported as bytes are", func(r *rig) {
		r.add(r.listener())
		r.quiet()
		r.dial(r.T)
		r.gets(poll.Readable)
		r.dial(r.T)
		r.gets(poll.Readable)
		r.quiet()
		if _, e := r.accept(); e != 0 {
			r.Fatal(e)
		}
		r.quiet()
		if !r.p.Pending(r.listener()) {
			r.Error("no connection is pending")
		}
		if _, e := r.accept(); e != 0 {
			r.Fatal(e)
		}
		if _, e := r.accept(); !sys.Again(e) {
			r.Error(e)
		}
		r.dial(r.T)
		r.gets(poll.Readable)
	}},
	{"sendfile sends what there is from an offset, and then nothing", func(r *rig) {
		fd, c := r.watched()
		f := r.file("0123456789")
		r.sends(fd, f, 2, 5, 5)
		r.sends(fd, f, 7, 100, 3)
		r.sends(fd, f, 10, 100, 0)
		r.must(c.read(8))
		// Without an offset it moves the file's own, which has not moved yet.
		r.sends(fd, f, -1, 4, 4)
		r.sends(fd, f, -1, 100, 6)
		r.sends(fd, f, -1, 100, 0)
		r.must(c.read(10))
		r.quiet()
	}},
	{"sendfile finds no room, and an event follows when there is", func(r *rig) {
		fd, c := r.watched()
		f := r.file("0123456789")
		sent := r.fill(fd)
		if _, e := r.p.Sendfile(fd, f, 0, 10); !sys.Again(e) {
			r.Error(e)
		}
		r.sends(fd, f, 10, 10, 0) // the end needs no room
		r.must(c.read(sent))
		r.gets(poll.Writable)
		r.sends(fd, f, 0, 10, 10)
	}},
}

func TestPromises(t *testing.T) {
	for _, kind := range []struct {
		name string
		make func(t *testing.T) place
	}{{"kernel", newRealPlace}, {"simulation", newSimPlace}} {
		for _, tt := range promises {
			t.Run(kind.name+"/"+tt.name, func(t *testing.T) {
				at := kind.make(t)
				r := &rig{T: t, place: at, p: at.poller()}
				t.Cleanup(func() {
					for _, fd := range r.open {
						r.p.CloseFD(fd)
					}
				})
				tt.run(r)
			})
		}
	}
}

// simPlace is the simulation, without faults.
type simPlace struct {
	k  *Kernel
	p  *Poller
	l  *Listener
	fd int
}

func newSimPlace(t *testing.T) place {
	k := NewKernel(NewDice(1, Faults{}), 100)
	k.Violated = func(f string, a ...any) { t.Errorf(f, a...) }
	s := &simPlace{k: k, p: k.NewPoller()}
	var err error
	if s.l, s.fd, err = k.Listen(10); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *simPlace) poller() poll.Poller { return s.p }
func (s *simPlace) listener() int       { return s.fd }

func (s *simPlace) dial(*testing.T) client { return &simClient{s.l.Dial("client", 64<<10)} }

func (s *simPlace) wait(_ *testing.T, events []poll.Event, _ time.Duration) int {
	s.p.free <- struct{}{} // the World would let it
	n, _ := s.p.Wait(events, poll.Now)
	return n
}

type simClient struct{ s *Socket }

func (c *simClient) arrive() {
	for c.s.Arrive(1 << 20) {
	}
}
func (c *simClient) send(p string) { c.s.Send([]byte(p)); c.arrive() }
func (c *simClient) closeWrite()   { c.s.CloseWrite(); c.arrive() }
func (c *simClient) close()        { c.s.Close(); c.arrive() }
func (c *simClient) reset()        { c.s.Reset() }

func (c *simClient) read(n int) error {
	for p := make([]byte, n); len(p) > 0; {
		k, err := c.s.Receive(p)
		if k == 0 && err == nil {
			err = io.ErrNoProgress
		}
		if err != nil {
			return err
		}
		p = p[k:]
	}
	return nil
}

// realPlace is the kernel of this machine.
type realPlace struct {
	p    poll.Poller
	fd   int
	addr string
}

func newRealPlace(t *testing.T) place {
	p, err := poll.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sys.Close(fd) })
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 10)); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return &realPlace{p, fd, fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)}
}

func (k *realPlace) poller() poll.Poller { return k.p }
func (k *realPlace) listener() int       { return k.fd }

func (k *realPlace) dial(t *testing.T) client {
	c, err := net.Dial("tcp", k.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(servertest.Patience))
	return &realClient{t, c.(*net.TCPConn)}
}

func (k *realPlace) wait(t *testing.T, events []poll.Event, patience time.Duration) int {
	until := poll.Now
	if patience > 0 {
		until = sys.Nanotime() + int64(patience)
	}
	for {
		n, err := k.p.Wait(events, until)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 || sys.Nanotime() >= until {
			return n
		}
	}
}

type realClient struct {
	t *testing.T
	c *net.TCPConn
}

func (c *realClient) send(p string) {
	if _, err := io.WriteString(c.c, p); err != nil {
		c.t.Fatal(err)
	}
}
func (c *realClient) closeWrite() { c.c.CloseWrite() }
func (c *realClient) close()      { c.c.Close() }
func (c *realClient) reset()      { c.c.SetLinger(0); c.c.Close() }

func (c *realClient) read(n int) error {
	_, err := io.CopyN(&bytes.Buffer{}, c.c, int64(n))
	return err
}
