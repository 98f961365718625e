//go:build linux || darwin

package loop

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// sock is a Sock made of functions.
type sock struct {
	handle Handle
	ready  func(poll.Ready)
	// lease, when not nil, is called after ready, with the same, and returns
	// what Ready does.
	lease  func(poll.Ready) bool
	mail   func(any)
	expire func()
}

func (s *sock) Ready(r poll.Ready) bool {
	if s.ready != nil {
		s.ready(r)
	}
	return s.lease == nil || s.lease(r)
}

func (s *sock) Mail(message any) {
	if s.mail != nil {
		s.mail(message)
	}
}

func (s *sock) Expire() {
	if s.expire != nil {
		s.expire()
	}
}

// turns drives a loop by hand, so that a test sees each turn.
func turns(t *testing.T) *Loop {
	t.Helper()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Discard)
	return l
}

func (l *Loop) mustTurn(t *testing.T) {
	t.Helper()
	if err := l.wait(); err != nil {
		t.Fatal(err)
	}
	if !l.turn() {
		t.Fatal("the loop has gone to another driver")
	}
}

// ends is two connected descriptors.
func ends(t *testing.T) (a, b int) {
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

func (l *Loop) attach(t *testing.T, s *sock, fd int) {
	t.Helper()
	var err error
	if s.handle, err = l.Attach(s, fd); err != nil {
		t.Fatal(err)
	}
}

// Two Socks are ready in one batch. The first to hear of it detaches the
// other and a third takes its slot and its descriptor's number: the event of
// the one that is gone must not reach it.
func TestStaleEvent(t *testing.T) {
	t.Parallel()
	l := turns(t)
	fds := map[*sock]int{}
	var peers []int
	third := &sock{ready: func(r poll.Ready) {
		if r&poll.Readable != 0 {
			t.Errorf("a stale event reached the third: %b", r)
		}
	}}
	var a, b sock
	heard := 0
	replace := func(other *sock) func(poll.Ready) {
		return func(r poll.Ready) {
			if r&poll.Readable == 0 {
				return
			}
			heard++
			old := other.handle
			l.Detach(old)
			l.Poller().CloseFD(fds[other])
			delete(fds, other) // another test may get its number
			fd, peer := ends(t)
			peers = append(peers, fd, peer)
			l.attach(t, third, fd)
			if third.handle.slot != old.slot {
				t.Errorf("the slot was not used again: %v, %v", third.handle, old)
			}
			if l.at(old) != nil {
				t.Error("the old handle still leads somewhere")
			}
		}
	}
	for _, p := range []struct{ s, other *sock }{{&a, &b}, {&b, &a}} {
		fd, peer := ends(t)
		fds[p.s] = fd
		peers = append(peers, peer)
		p.s.ready = replace(p.other)
		l.attach(t, p.s, fd)
		sys.Write(peer, []byte("x"))
	}
	l.mustTurn(t)
	if heard != 1 {
		t.Errorf("%d heard of their event, want 1", heard)
	}
	// Mail and timers of the one that is gone are gone too.
	third.mail = func(any) { t.Error("mail for another arrived") }
	third.expire = func() { t.Error("another Sock's timer fired") }
	gone := &a
	if l.at(a.handle) != nil {
		gone = &b
	}
	l.Post(gone.handle, 1)
	l.Detach(gone.handle) // nothing
	if l.at(third.handle) == nil || l.attached != 2 {
		t.Errorf("a stale Detach did something: %d are attached", l.attached)
	}
	l.mustTurn(t)
	for _, fd := range fds {
		peers = append(peers, fd)
	}
	for _, fd := range peers {
		sys.Close(fd)
	}
}

// Mail from many goroutines arrives whole and in each one's order.
func TestMailbox(t *testing.T) {
	t.Parallel()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	const senders, each = 8, 2000
	fd, peer := ends(t)
	defer sys.Close(peer)
	s := &sock{}
	next := make([]int, senders)
	got := 0
	all := make(chan bool)
	s.mail = func(message any) {
		from, i := message.(int)/each, message.(int)%each
		if next[from] != i {
			t.Errorf("sender %d: got %d, want %d", from, i, next[from])
		}
		next[from] = i + 1
		if got++; got == senders*each {
			l.Detach(s.handle)
			l.Poller().CloseFD(fd)
			close(all)
		}
	}
	l.attach(t, s, fd)
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	var did atomic.Int64
	var sending sync.WaitGroup
	for from := range senders {
		sending.Go(func() {
			for i := range each {
				l.Post(s.handle, from*each+i)
				if i%7 == 0 {
					l.Do(func() { did.Add(1) })
				}
				if i%100 == 0 {
					runtime.Gosched() // so that the loop sleeps at times
				}
			}
		})
	}
	servertest.Await(t, all, "all mail")
	sending.Wait()
	l.Do(l.Retire)
	if err := servertest.Await(t, done, "the loop's end"); err != nil {
		t.Error(err)
	}
	if want := int64(senders * ((each + 6) / 7)); did.Load() != want {
		t.Errorf("%d functions ran, want %d", did.Load(), want)
	}
	if l.Post(s.handle, 0) || l.Do(func() { t.Error("ran after the end") }) {
		t.Error("an ended loop takes mail")
	}
}

// A Sock that requeues itself gets one call in each turn, and the others theirs.
func TestRequeueIsFair(t *testing.T) {
	t.Parallel()
	l := turns(t)
	var busy, other sock
	calls, heard, mailed, fired := 0, 0, 0, 0
	busy.ready = func(poll.Ready) { calls++; l.Requeue(busy.handle) }
	other.ready = func(r poll.Ready) {
		if r&poll.Readable != 0 {
			heard++
		}
	}
	other.mail = func(any) { mailed++ }
	other.expire = func() { fired++ }
	a, pa := ends(t)
	b, pb := ends(t)
	l.attach(t, &busy, a)
	l.attach(t, &other, b)
	l.mustTurn(t) // the first events: both are writable
	l.Requeue(busy.handle)
	calls = 0
	for i := range 100 {
		sys.Write(pb, []byte("x"))
		l.Post(other.handle, 0)
		l.Arm(other.handle, l.Now())
		before := calls
		l.mustTurn(t)
		if n := calls - before; n != 1 {
			t.Fatalf("turn %d: %d calls", i, n)
		}
	}
	if heard != 100 || mailed != 100 || fired != 100 {
		t.Errorf("in 100 turns: %d events, %d mails, %d timers", heard, mailed, fired)
	}
	// Detached while it waits for its turn.
	l.Detach(busy.handle)
	before := calls
	l.mustTurn(t)
	if calls != before {
		t.Error("called after Detach")
	}
	for _, fd := range []int{a, pa, b, pb} {
		sys.Close(fd)
	}
}

func TestTimers(t *testing.T) {
	t.Parallel()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	type firing struct{ at, when int64 }
	fired := make(chan firing, 100)
	var fds []int
	for i := range 20 {
		fd, peer := ends(t)
		fds = append(fds, fd, peer)
		s := &sock{}
		again := i%3 == 0
		var when int64
		arm := func(after time.Duration) {
			when = sys.Nanotime() + int64(after)
			l.Arm(s.handle, when)
		}
		s.expire = func() {
			fired <- firing{sys.Nanotime(), when}
			if again {
				again = false
				arm(time.Millisecond)
				return
			}
			l.Detach(s.handle)
		}
		l.Do(func() {
			l.attach(t, s, fd)
			arm(time.Duration(i) * 3 * time.Millisecond)
		})
	}
	// One that is stopped and one whose Sock is detached do not fire.
	for i := range 2 {
		fd, peer := ends(t)
		fds = append(fds, fd, peer)
		s := &sock{expire: func() { t.Error("a timer fired that was stopped") }}
		l.Do(func() {
			l.attach(t, s, fd)
			l.Arm(s.handle, sys.Nanotime()+int64(5*time.Millisecond))
			if i == 0 {
				l.wheel.Stop(s.handle.slot)
			}
			l.Detach(s.handle)
		})
	}
	for range 27 {
		if f := servertest.Await(t, fired, "a timer"); f.at < f.when {
			t.Errorf("fired %v early", time.Duration(f.when-f.at))
		}
	}
	l.Do(l.Retire)
	if err := servertest.Await(t, done, "the loop's end"); err != nil {
		t.Error(err)
	}
	for _, fd := range fds {
		sys.Close(fd)
	}
}

// A retiring loop ends with its last Sock, and not while mail may bring one.
func TestRetire(t *testing.T) {
	t.Parallel()
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	fd, peer := ends(t)
	late, latePeer := ends(t)
	s, later := &sock{}, &sock{}
	l.attach(t, s, fd)
	l.Retire()
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	s.mail = func(any) {
		l.Detach(s.handle)
		l.Do(func() { l.attach(t, later, late) })
	}
	l.Post(s.handle, 0)
	later.mail = func(any) { l.Detach(later.handle) }
	for {
		var h Handle
		asked := make(chan bool)
		l.Do(func() { h = later.handle; close(asked) })
		servertest.Await(t, asked, "the loop")
		if h != (Handle{}) {
			l.Post(h, 0)
			break
		}
	}
	if err := servertest.Await(t, done, "the loop's end"); err != nil {
		t.Error(err)
	}
	for _, fd := range []int{fd, peer, late, latePeer} {
		sys.Close(fd)
	}
}

// Where a descriptor cannot be watched nothing is kept.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	l := turns(t)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := &sock{}
	for range 3 {
		if _, err := l.Attach(s, int(f.Fd())); err == nil {
			t.Skip("this system watches files")
		}
	}
	if l.attached != 0 || l.slots.free != 1 || l.slots.at(1).state != 0 || l.slots.count != 2 {
		t.Errorf("attached %d, first free %d, %d slots", l.attached, l.slots.free, l.slots.count)
	}
}
