package place

import (
	"sync"
	"sync/atomic"
	"time"
)

// A brake makes all proofs harder while loops keep losing their drivers, whatever
// the requests' targets: a client can collect proofs, and each allows one
// overstay, which holds a loop for 1 to 2 ms.
//
// Overstays are a debt that time pays off; a run that holds a loop for less than
// Overstay counts as that fraction of one. Each overstay beyond freeOverstays adds
// perOverstay levels, up to maxLevel, and each level counts as a strike of every
// record. A strike doubles the quick runs that a proof takes, so after each further
// overstay only records with four times as many stay on the loop. An attacker with n
// proofs of c quick runs each thus gets about freeOverstays + log4(c/proveAfter)
// overstays from them, and not n; one that continues gets one per payOff.
const (
	// freeOverstays is how many have no consequence for other records: routes
	// that become slow, garbage collections, preempted processors.
	freeOverstays = 3
	// payOff is the time that pays off one.
	payOff = 250 * time.Millisecond
	// perOverstay is how many levels a further overstay adds, maxLevel the maximum,
	// and mostOverstays the debt that reaches it: debt beyond that is dropped, so the
	// brake ends soon after the last overstay.
	perOverstay   = 2
	maxLevel      = 10
	mostOverstays = freeOverstays + maxLevel/perOverstay
	// together is the time within which overstays count as one: a pause of the
	// whole machine stops many loops at once, and delays each request only
	// once.
	together = Overstay / 2
)

type brake struct {
	clock func() int64 // in nanoseconds; immutable
	// epoch counts the events that can invalidate a result of Quick: while it does
	// not change, what was quick still is.
	epoch atomic.Uint32
	// clear is when the debt is paid off; 0 once that was found.
	clear atomic.Int64

	mu   sync.Mutex
	last int64 // when a debt was last added
}

var start = time.Now()

func newBrake() *brake {
	return &brake{clock: func() int64 { return int64(time.Since(start)) + 1 }, last: -int64(together)}
}

// charge adds a run that has kept a loop for d to the debt, and reports whether
// proofs are harder now.
func (b *brake) charge(d time.Duration) bool {
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

// level returns by how many strikes proofs are harder now.
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
