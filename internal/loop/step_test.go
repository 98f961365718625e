//go:build linux || darwin

package loop

import (
	"testing"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// nowhere is a poller whose descriptors have no events.
type nowhere struct {
	poll.Poller
	waits int
	until int64 // of the last Wait
}

func (p *nowhere) Add(int, poll.Key) error { return nil }
func (p *nowhere) Share(bool)              {}
func (p *nowhere) Waits() uint64           { return uint64(p.waits) }
func (p *nowhere) Wake()                   {}
func (p *nowhere) Close() error            { return nil }
func (p *nowhere) Wait(_ []poll.Event, until int64) (int, error) {
	p.waits++
	p.until = until
	return 0, nil
}

// crowd is a loop with so many Socks, made by the function.
func crowd(t *testing.T, n int, make func(i int) *sock) (*Loop, []*sock) {
	t.Helper()
	l := On(&nowhere{})
	t.Cleanup(l.Discard)
	socks := []*sock{}
	for i := range n {
		s := make(i)
		l.attach(t, s, i)
		socks = append(socks, s)
	}
	return l, socks
}

// turnsUntil drives the loop until over reports true. In no turn may count grow by more than
// most, and no wait between them may last.
func (l *Loop) turnsUntil(t *testing.T, most int, count *int, over func() bool) (turns int) {
	t.Helper()
	for !over() {
		before := *count
		if !l.turn() {
			t.Fatal("the loop has gone to another driver")
		}
		if turns++; *count-before > most {
			t.Fatalf("turn %d: %d calls, want at most %d", turns, *count-before, most)
		}
		if err := l.wait(); err != nil {
			t.Fatal(err)
		}
		if p := l.poller.(*nowhere); !over() && p.until != poll.Now {
			t.Fatalf("turn %d: the loop waits until %d although there is something to do", turns, p.until)
		}
	}
	return turns
}

const many = 20 * stepMost

// Timers that expire together fire in parts.
func TestExpiriesInParts(t *testing.T) {
	t.Parallel()
	fired := 0
	l, socks := crowd(t, many, func(int) *sock { return &sock{expire: func() { fired++ }} })
	for _, s := range socks {
		l.Arm(s.handle, l.Now()-1)
	}
	l.turnsUntil(t, stepMost, &fired, func() bool { return fired == many })
}

// Socks that have requested a call get it in parts, in their order, and what they request in
// it comes after all others.
func TestQueueInParts(t *testing.T) {
	t.Parallel()
	var order []int
	calls := 0
	var l *Loop
	var socks []*sock
	l, socks = crowd(t, many, func(i int) *sock {
		return &sock{ready: func(poll.Ready) {
			calls++
			if order = append(order, i); len(order) <= many {
				l.Requeue(socks[i].handle)
			}
		}}
	})
	for _, s := range socks {
		l.Requeue(s.handle)
	}
	l.nextDue()
	l.turnsUntil(t, stepMost, &calls, func() bool { return calls == 2*many })
	for i, k := range order {
		if k != i%many {
			t.Fatalf("call %d is of Sock %d", i, k)
		}
	}
	if got := cap(l.due) + cap(l.later); got > 5*many {
		t.Errorf("there is room for %d entries of %d Socks", got, many)
	}
}

// Mail is delivered in parts, in its order, and so is what comes meanwhile. A mailbox that
// was full once keeps little.
func TestMailInParts(t *testing.T) {
	t.Parallel()
	l, _ := crowd(t, 0, nil)
	next, sent := 0, 0
	var post func()
	post = func() {
		i := sent
		sent++
		l.Do(func() {
			if i != next {
				t.Errorf("message %d comes after %d", i, next-1)
			}
			if next++; sent < 2*many {
				post()
			}
		})
	}
	for range many {
		post()
	}
	if got := l.Mailed(); got != many {
		t.Errorf("%d messages wait, want %d", got, many)
	}
	l.turnsUntil(t, stepMost, &next, func() bool { return next == 2*many })
	if got := l.Mailed(); got != 0 {
		t.Errorf("%d messages wait at the end", got)
	}
	if b := &l.mail; b.first != nil || b.head != nil || b.tail != nil {
		t.Errorf("empty packs are kept")
	}
}

// A broadcast reaches each Sock once, in parts; those that are detached meanwhile not, and
// the queue that it makes does not grow longer than a turn can serve.
func TestBroadcastInParts(t *testing.T) {
	t.Parallel()
	var l *Loop
	var socks []*sock
	got := make([]int, many)
	calls, turn, before := 0, -1, 0
	l, socks = crowd(t, many, func(i int) *sock {
		return &sock{mail: func(any) {
			if n := l.poller.(*nowhere).waits; n != turn {
				turn, before = n, l.State().Requeued
			}
			got[i]++
			calls++
			l.Requeue(socks[i].handle)
			// A turn that was given no processor serves fewer than it could.
			if n := l.State().Requeued; n > max(stepMost, before+castLeast) {
				t.Fatalf("the queue had %d entries, %d of them before the turn", n, before)
			}
		}}
	})
	l.Broadcast("drain")
	for i := many - 10; i < many; i++ {
		l.Detach(socks[i].handle)
	}
	l.turnsUntil(t, stepMost, &calls, func() bool { return len(l.casts) == 0 })
	for i, n := range got {
		if want := 1; n != want && (i < many-10 || n != 0) {
			t.Fatalf("Sock %d has got it %d times", i, n)
		}
	}
}

// A broadcast goes on while others keep the queue long, another message overtakes it, and the
// same begins again.
func TestBroadcasts(t *testing.T) {
	t.Parallel()
	var l *Loop
	var socks []*sock
	got := map[any]int{}
	calls := 0
	l, socks = crowd(t, many, func(i int) *sock {
		return &sock{
			mail: func(m any) {
				got[m]++
				calls++
				if m == "kill" && got["drain"] >= many {
					t.Error("drain was faster than kill")
				}
			},
			ready: func(poll.Ready) { l.Requeue(socks[i].handle) },
		}
	})
	for _, s := range socks {
		l.Requeue(s.handle)
	}
	for range 3 {
		l.Broadcast("drain")
	}
	l.Broadcast("kill")
	l.turnsUntil(t, stepMost, &calls, func() bool { return len(l.casts) == 0 })
	if got["kill"] != many || got["drain"] < many || got["drain"] > many+3*stepMost {
		t.Errorf("%v, want %d of each", got, many)
	}
}

// What is left of timers, of mail and of a broadcast keeps a loop from ending.
func TestPartsOutliveRetire(t *testing.T) {
	t.Parallel()
	l := running(t)
	n := 0
	for range many {
		l.Do(func() { n++ })
	}
	l.Do(l.Retire)
	<-l.dead
	if n != many {
		t.Errorf("%d of %d messages were delivered", n, many)
	}
}

// Slots are in pages: growing moves none, and an empty one is used again.
func TestSlotsStay(t *testing.T) {
	t.Parallel()
	l, socks := crowd(t, 3*pageSlots, func(int) *sock { return &sock{} })
	first := l.at(socks[0].handle)
	more := make([]*sock, 10*pageSlots)
	for i := range more {
		more[i] = &sock{}
		l.attach(t, more[i], i)
	}
	if l.at(socks[0].handle) != first {
		t.Error("a slot has moved")
	}
	had := l.Slots()
	for _, s := range more {
		l.Detach(s.handle)
	}
	for i := range more {
		l.attach(t, more[i], i)
	}
	if l.Slots() != had {
		t.Errorf("%d slots, want the %d from before", l.Slots(), had)
	}
}

// flood is a poller with a listening socket to which clients never stop coming.
type flood struct {
	nowhere
	accepted, closed int
}

func (p *flood) Accept(int) (int, string, sys.Errno) {
	p.accepted++
	return p.accepted, "", 0
}
func (p *flood) Pending(int) bool      { return true }
func (p *flood) CloseFD(int)           { p.closed++ }
func (p *flood) Reserve() (int, error) { return 0, nil }

// A listener accepts a part of a flood in each turn, and closes although there is no end of it.
func TestFloodOfNewcomers(t *testing.T) {
	t.Parallel()
	p := &flood{}
	l := On(p)
	defer l.Discard()
	opened := 0
	a := &Accept{Gate: NewGate(0, 0), Open: func(*Loop, int, string, bool) error { opened++; return nil }}
	ln, err := l.Listen(0, a)
	if err != nil {
		t.Fatal(err)
	}
	turn := func() {
		t.Helper()
		before := opened
		if !l.turn() {
			t.Fatal("the loop has gone to another driver")
		}
		if got := opened - before; got < 1 || got > acceptBatch {
			t.Fatalf("%d accepted in a turn, want 1 to %d", got, acceptBatch)
		}
		l.wait()
	}
	l.nextDue()
	for range 10 {
		turn()
	}
	done := false
	l.Do(func() { ln.Close(func() { done = true }) })
	for n := 0; !done; n++ {
		if turn(); n > closeBatches {
			t.Fatal("the listener does not close")
		}
	}
	if l.attached != 0 || opened != p.accepted {
		t.Errorf("%d Socks, %d opened of %d accepted", l.attached, opened, p.accepted)
	}
}
