package loop

import (
	"time"

	"github.com/chert-http/chert/internal/poll"
)

// This file is how connections give way to others when places run out.

// A Spare is a Sock that can be closed when its place is needed. Methods are for
// the loop's goroutine while no lease is held.
type Spare interface {
	Sock
	// Spare reports whether closing it would cost nobody a request, and since when,
	// as a time of sys.Nanotime: those of earlier times go first.
	Spare() (since int64, ok bool)
	// GiveWay closes it, if what has come meanwhile allows it, and reports whether
	// its place is free.
	GiveWay() bool
}

// A loop keeps no list of its connections in the order of their idleness: to move
// each to the end of a list with every request would cost every request more than
// this costs the few accepts at the limit. Instead a hand goes round its slots, as
// in the clock algorithm of page replacement, and of those that it passes the one
// goes that has been idle longest. With up to sample connections on a loop that is
// exact. A client cannot be where the hand passes and look less idle than it is.
const (
	// sample is how many slots are looked at, if there is a spare among them.
	sample = 64
	// maxLooks bounds them if there is not: 0.1 ms.
	maxLooks = 1024
	// spareTries bounds those who prove not to be spare, as bytes have just come.
	spareTries = 4
	// BarrenFor is how long a loop without a spare is not searched again.
	BarrenFor = int64(10 * time.Millisecond)
)

// GiveWay closes a connection that could be spared and reports whether a place is
// free for it. It is not for a Sock that is called under a lease.
func (l *Loop) GiveWay() bool {
	if l.now < l.barren {
		return false
	}
	for range spareTries {
		s := l.spare()
		if s == nil {
			break
		}
		if s.GiveWay() {
			return true
		}
	}
	l.barren = l.now + BarrenFor
	return false
}

// spare finds the one to close; nil if there seems to be none.
func (l *Loop) spare() (best Spare) {
	first := poll.Never
	for looked := 0; looked < min(len(l.slots), maxLooks); looked++ {
		if best != nil && looked >= sample {
			break
		}
		if l.hand++; l.hand >= len(l.slots) {
			l.hand = 0
		}
		s, ok := l.slots[l.hand].sock.(Spare)
		if !ok {
			continue
		}
		if since, ok := s.Spare(); ok && (best == nil || since < first) {
			best, first = s, since
		}
	}
	return best
}
