//go:build linux || darwin

package poll

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func open(t *testing.T) Poller {
	t.Helper()
	p, err := New(new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// pair is two connected non-blocking sockets.
func pair(t *testing.T) (a, b int) {
	t.Helper()
	a, b = sockets(t)
	t.Cleanup(func() {
		sys.Close(a)
		sys.Close(b)
	})
	return a, b
}

// sockets is pair for a test that closes them.
func sockets(t *testing.T) (a, b int) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		syscall.SetNonblock(fd, true)
		syscall.CloseOnExec(fd)
	}
	return fds[0], fds[1]
}

// until waits for events of key until they add up to want.
func until(t *testing.T, p Poller, key Key, want Ready) (got Ready) {
	t.Helper()
	events := make([]Event, 8)
	for end := sys.Nanotime() + int64(servertest.Patience); got&want != want; {
		n, err := p.Wait(events, end)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events[:n] {
			if e.Key == key {
				got |= e.Ready
			}
		}
		if sys.Nanotime() > end {
			t.Fatalf("waited too long for %b, got %b", want, got)
		}
	}
	return got
}

// quiet checks that there is nothing to say now.
func quiet(t *testing.T, p Poller) {
	t.Helper()
	events := make([]Event, 8)
	if n, err := p.Wait(events, Now); n != 0 || err != nil {
		t.Errorf("unexpected events %v, %v", events[:n], err)
	}
}

func TestEdges(t *testing.T) {
	t.Parallel()
	p := open(t)
	a, b := pair(t)
	const key = Key(7)<<32 | 9
	if err := p.Add(a, key); err != nil {
		t.Fatal(err)
	}
	until(t, p, key, Writable)
	quiet(t, p)
	// Unread bytes are reported once.
	sys.Write(b, []byte("hello"))
	until(t, p, key, Readable)
	quiet(t, p)
	// A read that fills its buffer may leave some unread, and no event reports that.
	buf := make([]byte, 2)
	if n, e := p.Read(a, buf); n != 2 || e != 0 {
		t.Fatalf("read %d, %v", n, e)
	}
	quiet(t, p)
	// A short read has drained: bytes that arrive later are reported.
	buf = make([]byte, 100)
	if n, e := p.Read(a, buf); n != 3 || e != 0 {
		t.Fatalf("read %d, %v", n, e)
	}
	sys.Write(b, []byte("more"))
	until(t, p, key, Readable)
	if n, e := p.Read(a, buf); n != 4 || e != 0 {
		t.Fatalf("read %d, %v", n, e)
	}
	// EAGAIN is a promise.
	if n, e := p.Read(a, buf); n != 0 || !sys.Again(e) {
		t.Fatalf("read %d, %v", n, e)
	}
	sys.Write(b, []byte("x"))
	until(t, p, key, Readable)
}

func TestWriteEdge(t *testing.T) {
	t.Parallel()
	p := open(t)
	a, b := pair(t)
	if err := p.Add(a, 1); err != nil {
		t.Fatal(err)
	}
	until(t, p, 1, Writable)
	big := make([]byte, 1<<20)
	for round := range 3 {
		var sent int
		for {
			n, e := p.Write2(a, big[:1000], big)
			if sent += n; sys.Again(e) {
				break
			}
			if e != 0 || n == 0 {
				t.Fatalf("wrote %d, %v", n, e)
			}
		}
		quiet(t, p)
		// Room is reported when it becomes free.
		for got := 0; got < sent; {
			n, e := sys.Read(b, big)
			if e != 0 {
				t.Fatalf("round %d: read %d of %d, %v", round, got, sent, e)
			}
			got += n
		}
		until(t, p, 1, Writable)
	}
}

// Bytes may precede the end; the event says both, and a short read is no sign
// that all was read then.
func TestPeerClosed(t *testing.T) {
	t.Parallel()
	p := open(t)
	a, b := pair(t)
	if err := p.Add(a, 1); err != nil {
		t.Fatal(err)
	}
	until(t, p, 1, Writable)
	sys.Write(b, []byte("last"))
	sys.CloseWrite(b)
	if got := until(t, p, 1, Readable|PeerClosed); got&Hangup != 0 {
		t.Errorf("a half-close is a hangup: %b", got)
	}
	buf := make([]byte, 100)
	if n, e := p.Read(a, buf); n != 4 || e != 0 {
		t.Fatalf("read %d, %v", n, e)
	}
	if n, e := p.Read(a, buf); n != 0 || e != 0 {
		t.Fatalf("no end: %d, %v", n, e)
	}
	// The other direction lives.
	if n, e := p.Write2(a, []byte("a"), []byte("b")); n != 2 || e != 0 {
		t.Fatalf("wrote %d, %v", n, e)
	}
	sys.CloseBoth(b)
	until(t, p, 1, Hangup)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	p := open(t)
	a, b := pair(t)
	if err := p.Add(a, 1); err != nil {
		t.Fatal(err)
	}
	until(t, p, 1, Writable)
	p.Remove(a)
	sys.Write(b, []byte("x"))
	quiet(t, p)
	// The number may be watched anew, under another key.
	if err := p.Add(a, 2); err != nil {
		t.Fatal(err)
	}
	until(t, p, 2, Readable|Writable)
}

func TestWaitDeadline(t *testing.T) {
	t.Parallel()
	p := open(t)
	events := make([]Event, 8)
	for range 5 {
		end := sys.Nanotime() + int64(3*time.Millisecond)
		for {
			n, err := p.Wait(events, end)
			if n != 0 || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
			if sys.Nanotime() >= end {
				break
			}
		}
	}
	// A deadline that is over does not wait, one far away does not keep the
	// next from being near.
	done := make(chan bool)
	go func() {
		defer close(done)
		p.Wait(events, sys.Nanotime()-1)
		p.Wait(events, 1)
	}()
	select {
	case <-done:
	case <-time.After(servertest.Patience):
		t.Fatal("a Wait whose time is over does not return")
	}
}

func TestWake(t *testing.T) {
	t.Parallel()
	p := open(t)
	wait := func() <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := p.Wait(make([]Event, 8), Never)
			done <- err
		}()
		return done
	}
	check := func(done <-chan error, when string) {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(servertest.Patience):
			t.Fatalf("Wake %s Wait did not end it", when)
		}
	}
	for range 100 {
		p.Wake()
		p.Wake()
		check(wait(), "before")
		done := wait()
		runtime.Gosched()
		p.Wake()
		check(done, "around")
	}
}

// Wake by many while Wait is called again and again: none is lost.
func TestWakeRace(t *testing.T) {
	t.Parallel()
	p := open(t)
	const n = 5000
	asked := make(chan bool)
	var waker sync.WaitGroup
	waker.Go(func() {
		for range asked {
			p.Wake()
		}
	})
	events := make([]Event, 8)
	end := time.AfterFunc(servertest.Patience, func() { panic("a Wake was lost") })
	defer end.Stop()
	for range n {
		asked <- true
		if _, err := p.Wait(events, Never); err != nil {
			t.Fatal(err)
		}
	}
	close(asked)
	waker.Wait()
}

// A Wake beside Close, or after it, writes to nothing that has got its descriptor's number.
func TestWakeAfterClose(t *testing.T) {
	t.Parallel()
	for range 200 {
		p, err := New(new(atomic.Bool))
		if err != nil {
			t.Fatal(err)
		}
		var stop atomic.Bool
		var waker sync.WaitGroup
		waker.Go(func() {
			for !stop.Load() {
				p.Wake()
			}
		})
		runtime.Gosched()
		p.Close()
		var fds []int
		for range 4 { // more than p had
			a, b := sockets(t)
			fds = append(fds, a, b)
		}
		for range 10 {
			runtime.Gosched()
		}
		stop.Store(true)
		waker.Wait()
		for _, fd := range fds {
			if n, e := sys.Read(fd, make([]byte, 16)); e != syscall.EAGAIN {
				t.Fatalf("a socket has received %d bytes, %v", n, e)
			}
		}
		for _, fd := range fds {
			sys.Close(fd)
		}
	}
}

// More are ready than one Wait takes.
func TestManyReady(t *testing.T) {
	t.Parallel()
	p := open(t)
	const n = 50
	for i := range n {
		a, _ := pair(t)
		if err := p.Add(a, Key(i)); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[Key]bool{}
	events := make([]Event, 7)
	for len(seen) < n {
		k, err := p.Wait(events, Now)
		if err != nil || k == 0 {
			t.Fatalf("%d of %d seen, %v", len(seen), n, err)
		}
		for _, e := range events[:k] {
			seen[e.Key] = true
		}
	}
	quiet(t, p)
}

func TestAccept(t *testing.T) {
	t.Parallel()
	p := open(t)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(fd)
	syscall.SetNonblock(fd, true)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 10); err != nil {
		t.Fatal(err)
	}
	if err := p.Add(fd, 5); err != nil {
		t.Fatal(err)
	}
	if _, _, e := p.Accept(fd); !sys.Again(e) {
		t.Fatalf("accept on nothing: %v", e)
	}
	to, _ := syscall.Getsockname(fd)
	c, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Connect(c, to); err != nil {
		t.Fatal(err)
	}
	until(t, p, 5, Readable)
	s, peer, e := p.Accept(fd)
	if e != 0 || peer == "" {
		t.Fatalf("accept: %q, %v", peer, e)
	}
	if err := p.Add(s, 6); err != nil {
		t.Fatal(err)
	}
	until(t, p, 6, Writable)
	// A reset is a hangup.
	sys.SetReset(c)
	sys.Close(c)
	until(t, p, 6, Readable|Hangup)
	if _, e := p.Read(s, make([]byte, 1)); e != syscall.ECONNRESET {
		t.Errorf("read after a reset: %v", e)
	}
	p.CloseFD(s)
}
