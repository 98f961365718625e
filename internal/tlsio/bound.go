package tlsio

import (
	"container/list"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sched"
)

// Bound bounds the handshakes of a server: how many compute at a time, so that
// they leave the processors to others, and how many have a goroutine, computing or
// waiting for the client's next message. The zero value has the defaults. Safe for
// concurrent use.
//
// Handshakes that have not begun wait without a goroutine, in a line that is fair to
// addresses.
//
// A handshake that has begun and waits for its client has no slot. If there is no
// goroutine for another, the one that has waited for its client longest is ended, so
// that clients that stop in the middle of a handshake do not lock others out.
type Bound struct {
	// Slots are how many compute; default two for each processor. Goroutines are how
	// many have begun; default 512 for each processor.
	Slots, Goroutines int

	mu       sync.Mutex
	running  []*Handshake            // have a slot
	begun    map[*Handshake]struct{} // have a goroutine
	fresh    line                    // have neither
	back     list.List               // of *Handshake, have a goroutine, want a slot; oldest first
	parked   list.List               // of *Handshake, have a goroutine, wait for their clients; oldest first
	leaving  int                     // of begun, are being ended
	watching bool                    // a timer runs for those that keep a slot
	by       time.Time               // all must be done; zero for never
}

// holdSlot is how long a handshake may keep its slot while it does not wait for its
// client. It is longer than any computation takes; but functions of the tls.Config
// may request a certificate from another server.
const holdSlot = 20 * time.Millisecond

func (b *Bound) init() {
	if b.begun != nil {
		return
	}
	b.begun = make(map[*Handshake]struct{})
	n := runtime.GOMAXPROCS(0)
	if b.Slots <= 0 {
		b.Slots = 2 * n
	}
	if b.Goroutines <= 0 {
		b.Goroutines = 512 * n
	}
}

// enter takes a slot and a goroutine for h, or has h wait for them: then its Link is
// posted h.granted.
func (b *Bound) enter(h *Handshake) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.init()
	if len(b.running) < b.Slots && b.back.Len()+b.fresh.n == 0 && len(b.begun) < b.Goroutines {
		b.begin(h)
		return true
	}
	b.fresh.push(h)
	h.state = waits
	b.next(h)
	return h.state == begins
}

// begin gives h a goroutine and a slot. mu is held.
func (b *Bound) begin(h *Handshake) {
	b.begun[h] = struct{}{}
	h.state = begins
	b.run(h)
}

// next assigns free slots and goroutines. The handshake here reads its state for that;
// others receive a posted call. mu is held.
func (b *Bound) next(here *Handshake) {
	for len(b.running) < b.Slots {
		if e := b.back.Front(); e != nil {
			h := b.back.Remove(e).(*Handshake)
			b.run(h)
			h.turn <- struct{}{}
			continue
		}
		if b.fresh.n == 0 {
			return
		}
		if len(b.begun) >= b.Goroutines {
			b.makeRoom()
			return
		}
		h := b.fresh.take()
		b.begin(h)
		if h != here {
			h.link.Post(h.granted)
		}
	}
	if !b.watching && (b.back.Len()+b.fresh.n > 0) {
		b.watching = true
		time.AfterFunc(holdSlot, b.watch)
	}
}

// makeRoom ends those that have waited for their clients longest.
func (b *Bound) makeRoom() {
	for b.parked.Len() > 0 && b.leaving < min(b.Slots, b.fresh.n) {
		h := b.parked.Remove(b.parked.Front()).(*Handshake)
		b.leaving++
		h.crowded = true
		h.link.Lent().SetReadDeadline(conn.LongAgo)
	}
}

// run gives h a slot.
func (b *Bound) run(h *Handshake) {
	b.running = append(b.running, h)
	h.since = time.Now()
}

// watch takes their slots from those that have had them for long.
func (b *Bound) watch() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watching = false
	now := time.Now()
	b.running = slices.DeleteFunc(b.running, func(h *Handshake) bool { return now.Sub(h.since) >= holdSlot })
	b.next(nil)
}

// free takes h's slot, if it has one.
func (b *Bound) free(h *Handshake) {
	if i := slices.Index(b.running, h); i >= 0 {
		b.running = slices.Delete(b.running, i, i+1)
	}
}

// start comes on the goroutine of h: its deadline holds from now on.
func (b *Bound) start(h *Handshake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h.state = runs
	h.by = conn.Sooner(h.by, b.by)
	h.link.Lent().SetReadDeadline(h.by)
	h.link.Lent().SetWriteDeadline(h.by)
}

// park gives h's slot to others while f waits for the client. Its error says that h
// has to end.
func (b *Bound) park(h *Handshake, f func() error) error {
	b.mu.Lock()
	if h.crowded {
		b.mu.Unlock()
		return errCrowded // crypto/tls has asked again
	}
	b.free(h)
	at := b.parked.PushBack(h)
	b.next(nil)
	b.mu.Unlock()
	err := f()
	b.mu.Lock()
	if h.crowded {
		b.mu.Unlock()
		return errCrowded
	}
	b.parked.Remove(at)
	if len(b.running) < b.Slots {
		b.run(h)
		b.mu.Unlock()
		return err
	}
	if h.turn == nil {
		h.turn = make(chan struct{}, 1)
	}
	b.back.PushBack(h)
	b.next(nil)
	b.mu.Unlock()
	<-h.turn
	sched.Point(h.link.Peer().RemoteAddr, 0)
	return err
}

// leave ends what enter began, whatever has come of it. It may be called again.
func (b *Bound) leave(h *Handshake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch h.state {
	case waits:
		b.fresh.remove(h)
	case begins, runs:
		delete(b.begun, h)
		b.free(h)
		if h.crowded {
			b.leaving--
		}
	}
	h.state = over
	b.next(nil)
}

// Drain has the handshakes that have begun end by then. The zero time is never.
func (b *Bound) Drain(by time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by = by
	for h := range b.begun {
		if h.state == runs && !h.crowded {
			h.by = conn.Sooner(h.by, by)
			h.link.Lent().SetReadDeadline(h.by)
			h.link.Lent().SetWriteDeadline(h.by)
		}
	}
}

// Count returns how many have a goroutine, and how many wait for their turn.
func (b *Bound) Count() (running, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.begun), b.fresh.n
}

func (b *Bound) late(h *Handshake) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !h.by.IsZero() && !time.Now().Before(h.by)
}
