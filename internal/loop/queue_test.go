//go:build linux || darwin

package loop

import (
	"slices"
	"testing"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// queueing is a loop with n Socks, whose first events it has had, and the peers of their
// descriptors. The test closes what is in fds and peers at its end.
func queueing(t *testing.T, n int) (l *Loop, socks []*sock, fds, peers []int) {
	t.Helper()
	l = turns(t)
	for range n {
		fd, peer := ends(t)
		s := &sock{}
		l.attach(t, s, fd)
		socks, fds, peers = append(socks, s), append(fds, fd), append(peers, peer)
	}
	t.Cleanup(func() {
		for i := range fds {
			sys.Close(fds[i])
			sys.Close(peers[i])
		}
	})
	l.mustTurn(t) // all are writable
	return l, socks, fds, peers
}

// A Sock whose peer never stops sending has one entry and at most one call a turn, however
// often it requests one, in an order that stays, and what the queue occupies does not grow
// with time.
func TestQueuedOnce(t *testing.T) {
	t.Parallel()
	const n, most = 3, 1000
	l, socks, fds, peers := queueing(t, n)
	var order []int
	readable, received := 0, 0
	for i, s := range socks {
		s.ready = func(r poll.Ready) {
			order = append(order, i)
			if r&poll.Readable != 0 {
				readable++
				n, _ := sys.Read(fds[i], make([]byte, 64))
				received += n
			}
			for range 5 {
				l.Requeue(s.handle)
			}
		}
	}
	for turn := range most + n {
		if turn < most {
			for _, p := range peers {
				sys.Write(p, []byte("x")) // an event for each in each turn
			}
		}
		before := len(order)
		l.mustTurn(t)
		if got := l.State().Requeued; got != n {
			t.Fatalf("turn %d: %d entries of %d Socks", turn, got, n)
		}
		// Fewer if the machine has stood still: the time of a step is over then.
		if calls := len(order) - before; calls == 0 || calls > n {
			t.Fatalf("turn %d: %d calls of %d Socks", turn, calls, n)
		}
	}
	for i, k := range order {
		if k != order[i%n] {
			t.Fatalf("call %d is of Sock %d, want %d", i, k, order[i%n])
		}
	}
	if readable > n*most || received != n*most {
		t.Errorf("%d events brought %d bytes of %d", readable, received, n*most)
	}
	if got := cap(l.due) + cap(l.later); got > 6*n {
		t.Errorf("there is room for %d entries of %d Socks", got, n)
	}
}

// A Sock that mail requeues has its call in the same turn, and one that has just been
// called in the next: fresh events of others come before.
func TestQueuedWhen(t *testing.T) {
	t.Parallel()
	l, socks, _, peers := queueing(t, 2)
	var did []string
	again := true
	socks[0].ready = func(r poll.Ready) {
		if did = append(did, "first"); again {
			again = false
			l.Requeue(socks[0].handle)
		}
	}
	socks[1].ready = func(r poll.Ready) { did = append(did, "second") }
	socks[1].mail = func(any) { l.Requeue(socks[1].handle) }
	sys.Write(peers[0], []byte("x"))
	l.Post(socks[1].handle, 0)
	l.mustTurn(t)
	if want := []string{"first", "second"}; !slices.Equal(did, want) {
		t.Errorf("in the first turn %q, want %q", did, want)
	}
	sys.Write(peers[1], []byte("x"))
	did = nil
	l.mustTurn(t)
	if want := []string{"second", "first"}; !slices.Equal(did, want) {
		t.Errorf("in the second turn %q, want %q", did, want)
	}
}

// The entry of a Sock that has been detached is not that of the one which has its slot,
// with its events: that one can be queued, and is called once.
func TestQueueOfSlots(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		l, socks, fds, peers := queueing(t, 1)
		old := socks[0]
		old.ready = func(poll.Ready) { t.Error("called after Detach") }
		l.Requeue(old.handle)
		sys.Write(peers[0], []byte("x"))
		if err := l.wait(); err != nil || l.got != 1 {
			t.Fatalf("%d events, %v", l.got, err)
		}
		var events []poll.Ready
		fresh := &sock{ready: func(r poll.Ready) { events = append(events, r) }}
		replace := func() {
			l.Detach(old.handle)
			l.Poller().CloseFD(fds[0])
			sys.Close(peers[0])
			fds[0], peers[0] = ends(t)
			l.attach(t, fresh, fds[0])
			if fresh.handle.slot != old.handle.slot {
				t.Errorf("the slot was not used again: %v, %v", fresh.handle, old.handle)
			}
			l.Requeue(fresh.handle)
			l.Requeue(old.handle)
		}
		if before {
			replace()
		} else {
			l.Do(replace) // when the event waits with the entry
		}
		if !l.turn() {
			t.Fatal("the loop has gone to another driver")
		}
		if before && len(events) != 0 {
			t.Errorf("called for the old entry: %b", events)
		}
		if before {
			l.mustTurn(t)
		}
		if len(events) != 1 || events[0]&poll.Readable != 0 {
			t.Errorf("before %v: %b, want one call without the old one's events", before, events)
		}
	}
}

// A driver that loses the loop in the call of an entry leaves the other entries to the next
// one, and a Sock that is requeued meanwhile waits for the next turn.
func TestQueueOutlivesDriver(t *testing.T) {
	t.Parallel()
	l := running(t)
	var did journal
	lost := make(chan bool)
	var runners []*runner
	for range 3 {
		runners = append(runners, l.runner(t))
	}
	l.on(t, func() {
		for i, r := range runners {
			r.lease = func(poll.Ready) bool {
				if did.add("%d", i); i != 0 || did.has("lost") {
					return true
				}
				k := l.Enter(&lease{lost: func(bool) { did.add("lost"); l.Requeue(r.handle) }})
				l.Yield(k)
				mine := l.Leave(k)
				close(lost)
				return mine
			}
			l.Requeue(r.handle)
		}
	})
	for range 3 {
		l.on(t, func() {})
	}
	did.want(t, "0", "lost", "1", "2", "0")
	<-lost
}

// Mail that comes while one driver after another loses the loop does not prolong the turn:
// events of others are fetched before its Sock is called again.
func TestMailOfLostDrivers(t *testing.T) {
	t.Parallel()
	l := running(t)
	const most = 500
	calls := 0
	seen := make(chan int, 1)
	fd, peer := ends(t)
	other := &sock{ready: func(r poll.Ready) {
		if r&poll.Readable != 0 {
			sys.Read(fd, make([]byte, 8))
			seen <- calls
		}
	}}
	l.on(t, func() { l.attach(t, other, fd) })
	r := l.runner(t)
	l.on(t, func() {
		r.mail = func(any) { l.Requeue(r.handle) }
		r.lease = func(poll.Ready) bool {
			if calls++; calls == 1 {
				sys.Write(peer, []byte("x"))
			}
			if calls >= most {
				return true
			}
			k := l.Enter(&lease{})
			l.Post(r.handle, nil) // the answer of a goroutine
			l.Yield(k)
			return l.Leave(k)
		}
		l.Requeue(r.handle)
	})
	if n := servertest.Await(t, seen, "the other's event"); n > 2 {
		t.Errorf("the other's event was seen after %d calls", n)
	}
	l.on(t, func() {
		l.Detach(other.handle)
		l.Poller().CloseFD(fd)
		sys.Close(peer)
	})
}
