package park

import (
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestTwice(t *testing.T) {
	t.Parallel()
	nc, peer, raw := pair(t)
	got := make(chan string, 2)
	if err := Park(raw, false, func() { got <- outcome(nc) }); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Park(socket(t, nc), false, func() { t.Error("called") }); err != ErrParked {
			t.Errorf("got %v", err)
		}
	}
	peer.Write([]byte("x"))
	if got := servertest.Await(t, got, "a call"); got != "x" {
		t.Errorf("Read returned %q", got)
	}
}

// TestEnds: the goroutine and the descriptor exist only while something is parked, and
// come back. Keys of the former epoll instance mean nothing to the next.
func TestEnds(t *testing.T) {
	t.Parallel()
	p := new(parker)
	for range 2 {
		nc, peer, raw := pair(t)
		called := make(chan struct{}, 2)
		if err := p.park(raw, false, func() { called <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		p.mu.Lock()
		stale := key(p.slots[0].gen-1) << 32
		p.mu.Unlock()
		p.fire(stale)
		p.mu.Lock()
		still := p.slots[0].entry != nil
		p.mu.Unlock()
		if !still {
			t.Fatal("a stale key has ended it")
		}
		peer.Write([]byte("x"))
		servertest.Await(t, called, "a call")
		nc.Close()
		servertest.Eventually(t, "the epoll instance is closed", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.epoll == nil && p.held == 0 && len(p.slots) == 0
		})
	}
}

// While sockets have events, loops are to leave them the processor. Not parallel: the
// parker is the process's.
func TestBusy(t *testing.T) {
	servertest.Eventually(t, "the loops know of it", func() bool {
		nc, peer, raw := pair(t)
		defer nc.Close()
		called := make(chan struct{})
		if err := Park(raw, false, func() { close(called) }); err != nil {
			t.Fatal(err)
		}
		peer.Write([]byte("x"))
		servertest.Await(t, called, "a call")
		return Busy().Load()
	})
	servertest.Eventually(t, "they know of the end", func() bool { return !Busy().Load() })
}

// ticking returns a parker of which only the test calls tick.
func ticking(t *testing.T) *parker {
	ep, err := newEpoll()
	if err != nil {
		t.Fatal(err)
	}
	p := &parker{epoll: ep}
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.wait(ep)
	}()
	t.Cleanup(func() {
		ep.file.Close()
		p.timer.Stop()
		<-ended
	})
	return p
}

// TestBusyEnds: an event, also one that is handled late, does not keep loops from the
// processor after the end of the epoll instance, which no tick follows.
func TestBusyEnds(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		p := ticking(t)
		_, peer, raw := pair(t)
		called := make(chan struct{})
		if err := p.park(raw, false, func() { close(called) }); err != nil {
			t.Fatal(err)
		}
		if late {
			p.mu.Lock()
			p.epoll = ticking(t).epoll
			p.mu.Unlock()
		}
		peer.Write([]byte("x"))
		servertest.Await(t, called, "a call")
		if p.busy.Load() == late {
			t.Errorf("late %v: busy is %v after the event", late, late)
		}
		p.mu.Lock()
		p.used = false
		p.mu.Unlock()
		if p.tick(); p.epoll != nil || p.busy.Load() {
			t.Errorf("late %v: busy is %v after the end", late, p.busy.Load())
		}
	}
}

// TestReadsWhileParked: code that reads from a parked connection, which it must not,
// does not keep others from being noticed.
func TestReadsWhileParked(t *testing.T) {
	t.Parallel()
	p := new(parker)
	wrong, peer, raw := pair(t)
	calls := make(chan string, 2)
	if err := p.park(raw, false, func() { calls <- "wrong" }); err != nil {
		t.Fatal(err)
	}
	reads := make(chan struct{})
	go func() {
		defer close(reads)
		wrong.Read(make([]byte, 1))
	}()
	right, _, raw := pair(t)
	if err := p.park(raw, false, func() { calls <- outcome(right) }); err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "the one that is read from is being checked", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.slots[0].entry != nil && p.slots[0].checking
	})
	again := make(chan struct{})
	go func() {
		defer close(again)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.check(1000)
	}()
	servertest.Await(t, again, "a check beside it")
	right.SetReadDeadline(time.Unix(1, 0))
	if got := servertest.Await(t, calls, "the other's deadline"); got != "timeout" {
		t.Errorf("got %q", got)
	}
	peer.Close()
	<-reads
	if got := servertest.Await(t, calls, "the call for the one that was read from"); got != "wrong" {
		t.Errorf("got %q", got)
	}
}

// checked is a socket of which a check begins just before it is used first.
type checked struct {
	syscall.RawConn
	check func()
}

func (c *checked) Control(f func(fd uintptr)) error {
	if g := c.check; g != nil {
		c.check = nil
		g()
	}
	return c.RawConn.Control(f)
}

// TestCheckedAtOnce: a socket whose deadline has passed before it is parked can be parked
// again.
func TestCheckedAtOnce(t *testing.T) {
	t.Parallel()
	p := new(parker)
	nc, peer, raw := pair(t)
	nc.SetReadDeadline(time.Unix(1, 0))
	calls := make(chan string, 2)
	ready := func() { calls <- outcome(nc) }
	first := &checked{raw, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.check(1000)
	}}
	if err := p.park(first, false, ready); err != nil {
		t.Fatal(err)
	}
	if got := servertest.Await(t, calls, "the deadline"); got != "timeout" {
		t.Errorf("Read returned %q", got)
	}
	nc.SetReadDeadline(time.Time{})
	if err := p.park(raw, false, ready); err != nil {
		t.Fatal(err)
	}
	peer.Write([]byte("x"))
	if got := servertest.Await(t, calls, "a call"); got != "x" {
		t.Errorf("Read returned %q", got)
	}
}

// TestCheckBound: a check looks at no more than it was told, and at all in turn.
func TestCheckBound(t *testing.T) {
	t.Parallel()
	p := ticking(t)
	const n = 10
	called := make(chan struct{}, n)
	for range n {
		nc, _, raw := pair(t)
		if err := p.park(raw, false, func() { called <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	p.mu.Lock()
	for _, want := range []int{n / 2, 0} {
		if p.check(n / 2); p.held != want {
			t.Errorf("%d are parked, want %d", p.held, want)
		}
	}
	p.mu.Unlock()
	for range n {
		servertest.Await(t, called, "a call")
	}
}

// looked counts the looks at a socket.
type looked struct {
	syscall.RawConn
	n int
}

func (l *looked) Read(func(uintptr) bool) error {
	l.n++
	return nil
}

// TestFewOfMany: a check looks at the few that are left of many, and passes over none when
// another leaves.
func TestFewOfMany(t *testing.T) {
	t.Parallel()
	left := []int{0, 20, 30, 99}
	for _, leaves := range left {
		p := ticking(t)
		var all [100]looked
		var keys [len(all)]key
		end := func(i int) {
			p.claim(keys[i])
			p.release(keys[i])
		}
		for i := range all {
			_, keys[i], _ = p.enter(&entry{raw: &all[i]})
		}
		for i := range all {
			if !slices.Contains(left, i) {
				end(i)
			}
		}
		check := func(n int) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.check(n)
		}
		check(2)
		end(leaves)
		check(2)
		for _, i := range left {
			if all[i].n == 0 && i != leaves {
				t.Errorf("%d has left: %d was not looked at", leaves, i)
			}
		}
	}
}

func TestUnix(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	got := make(chan string, 1)
	if err := Park(socket(t, nc.(*net.UnixConn)), false, func() { got <- outcome(nc) }); err != nil {
		t.Fatal(err)
	}
	peer.Write([]byte("x"))
	if got := servertest.Await(t, got, "a call"); got != "x" {
		t.Errorf("Read returned %q", got)
	}
}
