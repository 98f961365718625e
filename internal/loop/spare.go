package loop

import (
	"time"

	"github.com/chert-http/chert/internal/poll"
)

// This file makes connections give way to others when room runs out.

// A Spare is a Sock that can be closed when its room is needed. Methods are for
// the loop's goroutine while no lease is held.
type Spare interface {
	Sock
	// Spare reports whether closing it would lose no request, and since when, as a
	// time of sys.Nanotime: earlier ones are closed first.
	Spare() (since int64, ok bool)
	// GiveWay closes it, unless data has arrived meanwhile, and reports whether
	// its room is free.
	GiveWay() bool
}

// A loop keeps no list of its connections ordered by idle time: moving one to the
// end of a list at every request would cost every request more than this costs the
// few accepts at the limit. Instead a hand moves over its slots, as in the clock
// algorithm of page replacement, and of those that it passes the one that has been
// idle longest is closed. With up to sample connections on a loop that is exact. A
// client cannot choose its slot, nor appear less idle than it is.
const (
	// sample is how many slots are examined, if there is a spare among them.
	sample = 64
	// maxLooks bounds them if there is none: 0.1 ms.
	maxLooks = 1024
	// spareTries bounds those that turn out not to be spare, because bytes have just arrived.
	spareTries = 4
	// BarrenFor is how long a loop without a spare is not searched again.
	BarrenFor = int64(10 * time.Millisecond)
)

// GiveWay closes a connection that can be spared and reports whether that has
// made room. It must not be called under a lease.
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

// spare returns the one to close; nil if none is found.
func (l *Loop) spare() (best Spare) {
	first := poll.Never
	for looked := 0; looked < min(l.slots.count, maxLooks); looked++ {
		if best != nil && looked >= sample {
			break
		}
		if l.hand++; l.hand >= l.slots.count {
			l.hand = 0
		}
		s, ok := l.slots.at(uint32(l.hand)).sock.(Spare)
		if !ok {
			continue
		}
		if since, ok := s.Spare(); ok && (best == nil || since < first) {
			best, first = s, since
		}
	}
	return best
}
