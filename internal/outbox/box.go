package outbox

import (
	"net"
	"sync"
	"sync/atomic"
)

// Box is the queue of what has still to be sent, and the lock of the carrier's sending side.
// Its methods are safe for concurrent use, except those of which a comment says that they
// are the owner's: of the goroutine that alone sends files and data with Holders.
//
// While the Sink accepts everything nothing is queued: there is one call of it with the
// caller's bytes. The lock is held during calls of a Sink that does not wait, and never
// while Holders or Followers are called.
type Box struct {
	sink Sink // immutable
	mu   sync.Mutex
	*queued
	blocking bool // the Sink waits: only Carry calls it; immutable
	closed   bool // see Close
	facts    atomic.Uint32
}

// Bits of Box.facts.
const (
	// What is queued has had to wait for the peer, or for its turn. It changes with mu held.
	blocked uint32 = 1 << iota
	// There are segments, an error, or room that HasRoom must report. It is set by unlock,
	// so that the owner need not lock mu when there is nothing to do.
	busy
	// PullBeside has found mu locked by a goroutine that may have found the Sink full before
	// the event. The loop alone sets it.
	missed
	// Accepted was called since Await. The loop alone changes it.
	accepted
	// Share was called. It changes with mu held.
	shared
)

func (b *Box) is(fact uint32) bool { return b.facts.Load()&fact != 0 }

// set sets or clears a fact, which costs a load if it is so already. One goroutine at a time does
// that to a fact.
func (b *Box) set(fact uint32, yes bool) {
	switch {
	case yes == b.is(fact):
	case yes:
		b.facts.Or(fact)
	default:
		b.facts.And(^fact)
	}
}

// Init prepares b.
func (b *Box) Init(sink Sink) { b.sink, b.queued = sink, &nothing }

// InitCarried prepares b for a Sink that waits. Wake says that Carry is to be called until
// it reports false, by one goroutine.
func (b *Box) InitCarried(sink Sink) {
	b.Init(sink)
	b.blocking = true
}

// unlock unlocks mu, and then does what must not be done under it.
func (b *Box) unlock() {
	b.set(busy, len(b.segments) > 0 || b.owed != 0 || b.err != nil)
	if len(b.freed)+len(b.done) > 0 {
		b.settle()
	}
	b.recycle()
	b.mu.Unlock()
	if b.is(missed) && b.facts.And(^missed)&missed != 0 {
		b.sink.Wake()
	}
}

// Share says that goroutines other than the owner use b from now on.
func (b *Box) Share() {
	b.mu.Lock()
	defer b.unlock()
	b.set(shared, true)
}

// Shared reports whether Share was called: then nothing may bypass b. A nil Box is not shared.
func (b *Box) Shared() bool { return b != nil && b.is(shared) }

// add queues s; wait means that it will not be sent immediately. mu is held.
func (b *Box) add(s *Segment, wait bool) {
	b.writable()
	i := len(b.segments) - 1
	joins := i >= 0 && b.joinsLast(i)
	if b.size += s.Size(); joins {
		last := &b.segments[i]
		if n := s.Bytes(); s.n == 0 && n <= SmallWrite {
			last.append(s.a, s.b)
			b.held += n
			b.free(s.Free())
			return
		}
		// One call sends both.
		if len(s.b) > 0 && len(s.a) <= SmallWrite {
			last.append(s.a)
			b.held += len(s.a)
			s.a, s.b = s.b, nil
		}
		b.held -= len(last.own.B)
		s.own, b.segments = last.own, b.segments[:i]
	}
	if wait && (s.holder == nil || s.n == 0 && s.Bytes() <= SmallWrite) {
		b.free(s.absorb())
	}
	b.held += s.Bytes()
	b.segments = append(b.segments, *s)
}

// joinsLast reports whether the last segment, i, may take what is queued next. A Sink that
// waits is given a segment whole: there a Follower waits for what was sent after it only
// where both together do not fill a buffer. mu is held.
func (b *Box) joinsLast(i int) bool {
	if b.out && i == 0 || !b.segments[i].plain() {
		return false
	}
	if !b.blocking || b.segments[i].Bytes() < readSize || len(b.marks) == 0 {
		return true
	}
	return b.marks[len(b.marks)-1].at <= b.sent+b.size-b.segments[i].Size()
}

// stall records that the Sink has accepted no more, which err says. mu is held.
func (b *Box) stall(err error) {
	b.set(blocked, true)
	q := b.writable()
	q.stalled, q.kept = err != ErrYield, err == ErrKept
}

// unblock is called when b has become empty. mu is held.
func (b *Box) unblock() {
	if b.queued != &nothing {
		b.segments, b.deadline, b.giveUp, b.kept = b.first[:0], 0, 0, false
	}
	b.set(blocked, false)
}

// pull pushes what the Sink accepts, and keeps the rest. mu is held.
func (b *Box) pull(whole bool) error {
	if b.err != nil {
		return b.err
	}
	if b.queued != &nothing {
		b.stalled = false
	}
	for len(b.segments) > 0 {
		s := &b.segments[0]
		held, size := s.Bytes(), s.Size()
		err := s.Push(b.sink, len(b.segments) > 1, whole)
		b.account(s, held, size, err)
		if err == nil {
			b.free(s.Free())
			b.segments = b.segments[1:]
			continue
		}
		if !Later(err) {
			b.err = err
			b.clear()
			return err
		}
		b.stall(err)
		for i := range b.segments {
			if s := &b.segments[i]; s.holder == nil {
				s.absorb()
			}
		}
		s.waited = true
		return nil
	}
	b.unblock()
	return nil
}

// account records that a push of s, which had held and size bytes before, has returned. mu
// is held.
func (b *Box) account(s *Segment, held int, size int64, err error) {
	b.held += s.Bytes() - held
	n := size - s.Size()
	b.size -= n
	if b.sent += n; err != ErrKept {
		b.pass()
	}
}

// clear drops all that is queued. mu is held.
func (b *Box) clear() {
	if b.out { // Carry does it
		b.dropped = true
		return
	}
	if b.queued != &nothing {
		b.endMarks()
		for i := range b.segments {
			b.free(b.segments[i].Free())
		}
		b.size, b.held, b.stalled = 0, 0, false
	}
	b.unblock()
}

// put sends or queues p and then q, of which b keeps copies. mu is held.
func (b *Box) put(p, q []byte) (err error) {
	// What has already waited is sent at an event, or in its turn.
	waits := b.blocking || b.is(blocked)
	tried, sent := false, 0
	switch {
	case b.err != nil:
		return b.err
	case b.closed:
		return net.ErrClosed
	case b.blocking && len(p)+len(q) == 0:
		return nil
	case len(b.segments) == 0 && !waits:
		// Usually the Sink accepts everything.
		n, err := b.sink.Push(p, q, false)
		switch {
		case err == nil && n == len(p)+len(q):
			return nil
		case err != nil && !Later(err):
			b.writable().err = err
			b.lost += int64(len(p) + len(q) - n)
			return err
		}
		if sent, tried = n, err != nil; tried {
			b.stall(err)
		}
	}
	s := Segment{a: p, b: q}
	s.Take(sent)
	if b.add(&s, waits || tried); b.blocking {
		b.wake()
	} else if !waits {
		if !tried {
			err = b.pull(true)
		}
		if b.stalled {
			b.sink.Wake()
		}
	}
	return err
}

// wake has Carry called, if it is not. mu is held.
func (b *Box) wake() {
	if b.carrying == nil {
		b.carrying = make(chan bool)
		b.sink.Wake()
	}
}

// Offer sends p and then q, or queues copies. It never waits, nor accepts what is Refused:
// then it returns ErrFull. much reports that more than half of limit waits; then HasRoom
// will report when little does. A caller that can wait may have no limit, and wait then until
// Above reports false.
func (b *Box) Offer(p, q []byte, limit int) (much bool, err error) {
	b.mu.Lock()
	defer b.unlock()
	n := len(p) + len(q)
	if Refused(b.held, n, limit) && !b.closed && b.err == nil {
		b.owe(max(limit/2, limit-n))
		return true, ErrFull
	}
	if err = b.put(p, q); err == nil && Much(b.held, limit) {
		much = true
		b.owe(limit / 2)
	}
	return much, err
}

// Above reports whether b is above its high-water mark.
func (b *Box) Above() bool {
	b.mu.Lock()
	defer b.unlock()
	return b.held > HighWater
}

// Low reports whether b is below its low-water mark. If not, and the Sink waits, HasRoom
// will report it.
func (b *Box) Low() bool {
	b.mu.Lock()
	defer b.unlock()
	low := b.held <= LowWater || b.err != nil
	if !low && b.blocking {
		b.owe(LowWater)
	}
	return low
}

// owe makes HasRoom report when no more than low bytes are held: not before what was
// refused would be accepted, or a caller that tries it again then would do so for ever. mu
// is held.
func (b *Box) owe(low int) {
	low = max(min(low, LowWater), 0)
	if n := int32(low + 1); b.owed == 0 || n < b.owed {
		b.writable().owed = n
	}
}

// HasRoom reports, once, whether there is room again after Offer has said that there is
// little, or Low.
func (b *Box) HasRoom() bool {
	b.mu.Lock()
	defer b.unlock()
	owed := b.held < int(b.owed)
	if owed {
		b.owed = 0
	}
	return owed
}

// Fail drops all that is queued, since nothing can be sent any more.
func (b *Box) Fail(err error) {
	b.mu.Lock()
	defer b.unlock()
	if b.err == nil {
		b.writable().err = err
	}
	b.clear()
}

// Close rejects what is sent from now on, except by the owner, or accepts it again, and
// reports whether something is unsent.
func (b *Box) Close(yes bool) (waits bool) {
	b.mu.Lock()
	defer b.unlock()
	b.closed = yes
	return len(b.segments) > 0
}

// Drop ends b: what is queued will not be sent.
func (b *Box) Drop() {
	b.mu.Lock()
	defer b.unlock()
	b.closed = true
	b.clear()
}

// Waits reports whether something is unsent. In a nil Box nothing waits.
func (b *Box) Waits() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.unlock()
	return len(b.segments) > 0
}

// Err returns the error after which nothing can be sent.
func (b *Box) Err() error {
	b.mu.Lock()
	defer b.unlock()
	return b.err
}

// Blocked reports whether bytes wait for the peer to accept them, or for their turn. In a nil
// Box nothing waits.
func (b *Box) Blocked() bool { return b != nil && b.is(blocked) }

// Busy reports whether the owner must act: something is queued, HasRoom has something to
// report, or the carrier has failed.
func (b *Box) Busy() bool { return b.is(busy) }
