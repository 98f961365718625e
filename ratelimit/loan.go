package ratelimit

import (
	"sync/atomic"
	"unsafe"
)

// Two processors that charge one bucket all the time would hand the line of
// memory that it is in to and fro. So one that loses a race for it takes a loan:
// some hundred tokens, charged to the bucket at once and spent one by one from a
// line of its own.
//
// No decision depends on it. In terms of table.go, a bucket with loans is full at
//
//	true full = full - interval * tokens that are lent and not spent
//
// and everything but to spend, or to charge a bucket that has enough left as it
// stands, settles all loans of the key first, under the shard's lock: what is
// not spent goes back. So nobody is refused while there is a token somewhere. A
// Decision that admits counts as taken what others have lent: it may tell of
// less than is left, by a 64th for each processor, and never of more.
//
// A bucket does not get fuller than full. So loans end when the true full may
// have passed: "until", which is the true full when the loan was given. Later
// loans, charges and spending only make it greater, and refunds settle first.
// They end after mostTime in any case, and then any key's charge settles them:
// while there is a loan nobody goes the quick way, and its key may never come
// again.
//
// A loan is published before full is charged for it, and withdrawn after full has
// been given back: who reads full first and then looks for loans finds those
// that are in it.

const (
	lanes     = 16   // of loans; a lane is some goroutines'
	mostLoan  = 1024 // tokens
	leastLoan = 8
	loanPart  = 64      // of what is left, one in so many is lent
	leastTime = 100_000 // nanoseconds that a loan is good for
	mostTime  = 1_000_000_000
)

type loans struct {
	out   atomic.Int64 // loans in lanes
	_     [120]byte
	lanes [lanes]atomic.Pointer[loan]
}

// A loan belongs to one key, and lies in a lane until it is settled.
type loan struct {
	space  *space
	limit  *Limit
	hash   uint64
	until  atomic.Int64
	_      [96]byte
	tokens atomic.Int64 // settled: none, for good
	_      [120]byte
}

const settled = -1

// ownLane is that of the calling goroutine, by the address of its stack: others
// have others, mostly.
func ownLane() int {
	var here byte
	return int(uint32(uintptr(unsafe.Pointer(&here))>>11)*0x9e3779b1>>16) % lanes
}

// end settles all loans of the key. No lock is held.
func (o *loan) end() {
	s := o.space.shard(o.hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	o.space.settle(o.limit, o.hash)
}

// endOld settles loans that have ended.
func (lo *loans) endOld(now int64) {
	for i := range lo.lanes {
		if o := lo.lanes[i].Load(); o != nil && now > o.until.Load() {
			o.end()
		}
	}
}

func (o *loan) is(sp *space, hash uint64) bool { return o != nil && o.hash == hash && o.space == sp }

// any reports whether a key has loans.
func (lo *loans) any(sp *space, hash uint64) bool {
	return lo.out.Load() != 0 && lo.matter(sp, hash, 0, false)
}

// matter reports whether a key's loans must be settled before a decision that was
// made without them.
func (lo *loans) matter(sp *space, hash uint64, now int64, allowed bool) bool {
	for i := range lo.lanes {
		if o := lo.lanes[i].Load(); o.is(sp, hash) && (!allowed || now > o.until.Load()) {
			return true
		}
	}
	return false
}

// What came of spending.
type spending uint8

const (
	none spending = iota
	empty
	contended
	spent
)

// spend takes a cost from the loan of a lane. e is the key's.
func (lo *loans) spend(lane int, sp *space, l *Limit, e *entry, hash uint64, cost, now int64) (Decision, spending) {
	o := lo.lanes[lane].Load()
	if !o.is(sp, hash) || now > o.until.Load() {
		return Decision{}, none
	}
	n := o.tokens.Load()
	// After n, so that n is in it: else a loan that is given in between would
	// count as left in both.
	full, ok := e.read(hash)
	switch {
	case n == settled:
		return Decision{}, none
	case n < cost:
		return Decision{}, empty
	case !ok || !o.tokens.CompareAndSwap(n, n-cost):
		return Decision{}, contended
	}
	return l.decide(max(0, full-n*l.interval-now), cost), spent
}

// lend gives the loan of a lane some tokens more. It reports false if there are
// not enough.
func (lo *loans) lend(lane int, sp *space, l *Limit, hash uint64) bool {
	// One that another key has left behind.
	if o := lo.lanes[lane].Load(); o != nil && !o.is(sp, hash) {
		o.end()
	}
	s := sp.shard(hash)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.table.Load().find(hash)
	if e == nil {
		return false
	}
	for {
		full, now := e.full.Load(), sp.m.now()
		n := min(mostLoan, (l.window-(full-now))/l.interval/loanPart)
		until := full - lo.sum(sp, hash)*l.interval
		if n < leastLoan || until < now+leastTime {
			return false
		}
		until = min(until, now+mostTime)
		o := lo.lanes[lane].Load()
		if o == nil {
			o = &loan{space: sp, limit: l, hash: hash}
			o.until.Store(until)
			if !lo.lanes[lane].CompareAndSwap(nil, o) {
				return false
			}
			lo.out.Add(1)
		} else if !o.is(sp, hash) {
			return false
		}
		o.until.Store(until)
		if e.full.CompareAndSwap(full, full+n*l.interval) {
			o.tokens.Add(n)
			return true
		}
	}
}

// sum is how many tokens are lent to a key and not spent.
func (lo *loans) sum(sp *space, hash uint64) (n int64) {
	for i := range lo.lanes {
		if o := lo.lanes[i].Load(); o.is(sp, hash) {
			n += max(0, o.tokens.Load())
		}
	}
	return n
}

// settle ends all loans of a key and returns its entry, nil if there is none. The
// lock of the shard is held.
func (sp *space) settle(l *Limit, hash uint64) *entry {
	lo := &sp.m.loans
	e := sp.shard(hash).table.Load().find(hash)
	if !lo.any(sp, hash) {
		return e
	}
	back := int64(0)
	for i := range lo.lanes {
		if o := lo.lanes[i].Load(); o.is(sp, hash) {
			back += max(0, o.tokens.Swap(settled)) * l.interval
		}
	}
	for e != nil && back > 0 {
		full, now := e.full.Load(), sp.m.now()
		if full <= now || e.full.CompareAndSwap(full, max(now, full-back)) {
			break
		}
	}
	for i := range lo.lanes {
		if lo.lanes[i].Load().is(sp, hash) {
			lo.lanes[i].Store(nil)
			lo.out.Add(-1)
		}
	}
	return e
}
