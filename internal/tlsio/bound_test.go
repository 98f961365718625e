package tlsio

import (
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/peer"
)

// boundLink is as much of a Link as Bound uses.
type boundLink struct {
	conn.Link
	h       *Handshake
	peer    string
	granted chan bool

	mu  sync.Mutex
	by  time.Time
	cut chan bool // closed by a deadline in the past
}

func (l *boundLink) Peer() peer.Peer { return peer.Parse(l.peer) }

func (l *boundLink) Post(f func() conn.Next) { l.granted <- true }

func (l *boundLink) Lent() conn.Lent { return boundLent{l: l} }

// boundLent is as much of it as is lent.
type boundLent struct {
	conn.Lent
	l *boundLink
}

func (b boundLent) SetReadDeadline(t time.Time) {
	l := b.l
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by = t; t.Equal(conn.LongAgo) {
		close(l.cut)
	}
}

func (boundLent) SetWriteDeadline(time.Time) {}

// joins has a handshake enter b, which it does at once if ok.
func joins(b *Bound) (h *Handshake, l *boundLink, ok bool) { return joinsFrom(b, "192.0.2.1:1") }

func joinsFrom(b *Bound, peer string) (h *Handshake, l *boundLink, ok bool) {
	l = &boundLink{peer: peer, granted: make(chan bool, 1), cut: make(chan bool)}
	h = &Handshake{cfg: &Config{Bound: b}, link: l}
	l.h = h
	return h, l, b.enter(h)
}

func (b *Bound) empty(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.running) > 0 || len(b.begun) > 0 || b.leaving != 0 || b.fresh.n+len(b.fresh.by)+b.fresh.arrived.Len()+b.fresh.served.Len() > 0 || b.back.Len()+b.parked.Len() > 0 {
		t.Errorf("not empty: %d running, %d begun, %d leaving, %v %d %d", len(b.running), len(b.begun), b.leaving, b.fresh.by, b.back.Len(), b.parked.Len())
	}
}

func isGranted(l *boundLink) bool { return len(l.granted) > 0 }

// The newest begins first, and those that have gone are not waited for.
func TestBoundOrder(t *testing.T) {
	t.Parallel()
	b := &Bound{Slots: 1, Goroutines: 10, watching: true} // no timer takes the slot
	first, _, ok := joins(b)
	if !ok {
		t.Fatal("the first waits")
	}
	h1, l1, ok1 := joins(b)
	h2, l2, ok2 := joins(b)
	h3, l3, ok3 := joins(b)
	if ok1 || ok2 || ok3 {
		t.Fatal("there was one slot")
	}
	b.leave(h3)
	b.leave(first)
	if isGranted(l1) || !isGranted(l2) || isGranted(l3) {
		t.Error("not the newest that is there")
	}
	b.leave(h2)
	if !isGranted(l1) {
		t.Error("the last was forgotten")
	}
	b.leave(h1)
	b.leave(h1)
	b.empty(t)
}

// Whoever waits for its client has no slot, and gets one before those that are new.
func TestBoundParks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &Bound{Slots: 1, Goroutines: 10}
		h, _, _ := joins(b)
		b.start(h)
		bytes, done := make(chan error), make(chan error)
		go func() { done <- b.park(h, func() error { return <-bytes }) }()
		synctest.Wait()
		second, _, ok := joins(b)
		if !ok {
			t.Fatal("the slot is not free")
		}
		b.start(second)
		third, l3, _ := joins(b)
		bytes <- nil
		synctest.Wait()
		if len(done) > 0 {
			t.Error("two have the slot")
		}
		b.leave(second)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if isGranted(l3) {
			t.Error("a new one was first")
		}
		// What the wait has ended with is told.
		fails := errors.New("fails")
		if err := b.park(h, func() error { return fails }); err != fails {
			t.Error(err)
		}
		b.leave(h)
		b.leave(third)
		b.empty(t)
	})
}

// A handshake that holds its slot without computing does not delay the others.
func TestBoundHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &Bound{Slots: 2, Goroutines: 10}
		var busy []*Handshake
		for range 2 {
			h, _, _ := joins(b)
			b.start(h)
			busy = append(busy, h)
		}
		time.Sleep(time.Hour) // of fake time; slots are taken away only if a handshake waits
		begun := time.Now()
		h, l, ok := joins(b)
		if ok {
			t.Fatal("there were two slots")
		}
		<-l.granted
		if d := time.Since(begun); d != holdSlot {
			t.Errorf("after %v", d)
		}
		b.start(h)
		// It comes back for its slot as any other.
		waits := make(chan error)
		go func() { waits <- b.park(busy[0], func() error { return nil }) }()
		if err := <-waits; err != nil {
			t.Error(err)
		}
		for _, h := range append(busy, h) {
			b.leave(h)
		}
		b.empty(t)
	})
}

// If there is no goroutine, the one ends that has waited for its client longest.
func TestBoundPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const goroutines = 5
		b := &Bound{Slots: 2, Goroutines: goroutines}
		type parked struct {
			h   *Handshake
			l   *boundLink
			err chan error
		}
		var all []parked
		begin := func(h *Handshake, l *boundLink) {
			b.start(h)
			p := parked{h, l, make(chan error, 1)}
			go func() {
				p.err <- b.park(h, func() error { <-l.cut; return errors.New("timeout") })
				b.leave(h)
			}()
			synctest.Wait()
			all = append(all, p)
		}
		for i := range 3 * goroutines {
			h, l, ok := joins(b)
			if ok != (i < goroutines) {
				t.Fatalf("%d: %v", i, ok)
			}
			if !ok {
				<-l.granted
				if err := <-all[i-goroutines].err; err != errCrowded {
					t.Errorf("%d: %v", i, err)
				}
			}
			begin(h, l)
			if n := len(b.begun); n > goroutines {
				t.Fatalf("%d have begun", n)
			}
		}
		// Those that do not wait stay.
		for _, p := range all[2*goroutines:] {
			p.l.Lent().SetReadDeadline(conn.LongAgo)
			<-p.err
		}
		synctest.Wait()
		var stay []*Handshake
		for range goroutines {
			h, l, ok := joins(b)
			if !ok {
				time.Sleep(holdSlot)
				<-l.granted
			}
			b.start(h)
			stay = append(stay, h)
		}
		time.Sleep(holdSlot)
		h, l, _ := joins(b)
		time.Sleep(time.Hour)
		if isGranted(l) {
			t.Error("there was no goroutine for it")
		}
		b.leave(stay[0])
		<-l.granted
		for _, h := range append(stay, h) {
			b.leave(h)
		}
		time.Sleep(holdSlot)
		b.empty(t)
	})
}

// One that has to go may ask again: crypto/tls does after the part of a record's
// header that has come.
func TestBoundCrowdedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &Bound{Slots: 1, Goroutines: 1}
		last, l, _ := joins(b)
		for range 3 {
			b.start(last)
			h, wait := last, func() error { <-l.cut; return os.ErrDeadlineExceeded }
			go func() {
				for range 2 {
					if err := b.park(h, wait); err != errCrowded {
						t.Error(err)
					}
				}
				b.leave(h)
			}()
			synctest.Wait()
			next, nl, ok := joins(b)
			if ok {
				t.Fatal("there was a goroutine for it")
			}
			synctest.Wait()
			if !isGranted(nl) {
				t.Fatal("no handshake has made room")
			}
			last, l = next, nl
		}
		b.leave(last)
		b.empty(t)
	})
}

func TestBoundDrain(t *testing.T) {
	t.Parallel()
	b := &Bound{Slots: 4, Goroutines: 4}
	soon, late := time.Now().Add(time.Minute), time.Now().Add(time.Hour)
	var links []*boundLink
	for _, by := range []time.Time{{}, late, soon.Add(-time.Second)} {
		h, l, _ := joins(b)
		h.by = by
		b.start(h)
		links = append(links, l)
	}
	b.Drain(soon)
	h, l, _ := joins(b)
	b.start(h)
	for i, l := range append(links, l) {
		want := soon
		if i == 2 {
			want = soon.Add(-time.Second)
		}
		if !l.by.Equal(want) {
			t.Errorf("%d: %v, want %v", i, l.by, want)
		}
		b.leave(l.h)
	}
	b.empty(t)
}

// However handshakes go about it, there are never more than may be, and nothing is
// left.
func TestBoundStress(t *testing.T) {
	t.Parallel()
	b := &Bound{Slots: 3, Goroutines: 20}
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			h, l, ok := joins(b)
			defer b.leave(h)
			if !ok {
				if rnd.IntN(5) == 0 {
					return // the client has gone
				}
				<-l.granted
				if rnd.IntN(5) == 0 {
					return
				}
			}
			b.start(h)
			for range rnd.IntN(4) {
				if b.park(h, func() error {
					select {
					case <-l.cut:
					case <-time.After(time.Duration(rnd.IntN(1000)) * time.Microsecond):
					}
					return nil
				}) != nil {
					return
				}
				b.mu.Lock()
				if len(b.running) > b.Slots || len(b.begun) > b.Goroutines {
					t.Errorf("%d run, %d have begun", len(b.running), len(b.begun))
				}
				b.mu.Unlock()
			}
		})
	}
	all.Wait()
	b.empty(t)
}
