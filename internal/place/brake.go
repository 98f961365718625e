package place

import (
	"sync"
	"sync/atomic"
	"time"
)

// A brake makes all proofs harder while loops keep losing their drivers, whatever
// the requests were called: proofs can be hoarded, and each is good for one
// overstay, which holds a loop for 1 to 2 ms.
//
// Overstays are a debt that time pays; a run that holds a loop for a part of that
// time counts for that part. Each that exceeds freeOverstays is two levels, and each
// level counts as a strike of every record, so each step leaves those on the loop
// that have had four times as many quick runs. An attacker who has hoarded n proofs
// of c quick runs each so gets about freeOverstays + log4(c/proveAfter) overstays of
// them, and not n; one who goes on gets one for each payOff.
const (
	// freeOverstays are those that have no consequence for others: routes that
	// change, collections of garbage, processors that are taken away.
	freeOverstays = 3
	// payOff is the time that pays for one.
	payOff = 250 * time.Millisecond
	// perOverstay is how many levels one overstay more is, maxLevel the most there
	// are, and mostOverstays the debt that makes them: what is beyond is forgiven, so
	// the brake ends soon after the last overstay.
	perOverstay   = 2
	maxLevel      = 10
	mostOverstays = freeOverstays + maxLevel/perOverstay
	// together is how long overstays count as one: what stops the machine stops
	// many loops at once, and no request waits longer for that.
	together = Overstay / 2
)

type brake struct {
	clock func() int64 // in nanoseconds; immutable
	// epoch counts what makes an answer of Quick wrong: while it stands still, what
	// was quick is.
	epoch atomic.Uint32
	// clear is when the debt is paid; 0 when it was found to be.
	clear atomic.Int64

	mu   sync.Mutex
	last int64 // when a debt was last added
}

var start = time.Now()

func newBrake() *brake {
	return &brake{clock: func() int64 { return int64(time.Since(start)) + 1 }, last: -int64(together)}
}

// held adds a run to the debt that has held a loop for so long, and reports whether
// proofs are harder now.
func (b *brake) held(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if now-b.last >= int64(together) {
		b.last = now
		more := int64(min(d, Overstay)) * int64(payOff/Overstay)
		most := now + mostOverstays*int64(payOff)
		b.clear.Store(min(max(b.clear.Load(), now)+more, most))
	}
	if b.level() == 0 {
		return false
	}
	b.epoch.Add(1)
	return true
}

// level is by how many strikes proofs are harder now.
func (b *brake) level() uint32 {
	until := b.clear.Load()
	if until == 0 {
		return 0
	}
	left := until - b.clock()
	if left <= 0 {
		b.clear.CompareAndSwap(until, 0) // so that the clock need not be read again
		return 0
	}
	debt := (left + int64(payOff) - 1) / int64(payOff)
	return uint32(max(debt-freeOverstays, 0)) * perOverstay
}
