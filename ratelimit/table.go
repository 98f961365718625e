package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// This file is the hash table of a limit: stripes, each with open addressing and
// linear probing. Finding and charging a key takes no lock. Adding a key, removing
// one and replacing the slots of a stripe take the stripe's.
//
// An entry is the key's hash and the time at which its bucket will be full
// ("full"). It never becomes free again. When its bucket is full it may become
// another key's; when the limit has too many keys it may be removed. The
// danger is a charge that meets an entry which has just become another key's. It
// is averted so:
//
//   - To change the owner, full is swapped for moved, then the hash is set, then
//     a new full, which is later than the present time; the one before was
//     earlier.
//   - To charge, full is read, then the hash, then the full that was read is
//     swapped. If the hash is right and full has only grown, the swap succeeds
//     only if the entry was that key's all the time.
//   - Refunds make full less. So a full can come again under another owner: if a
//     charge has stood still since before the refund, until the bucket has become
//     full and its entry another key's, and that key's full is the one that was
//     read, to the nanosecond. Then one charge goes to the wrong bucket. Nothing
//     is done against that.
//
// Slots are replaced by swapping every full of the old ones for moved, so that
// the last charge is taken over or has failed; then the new ones are published.
// A charge that meets moved takes the lock, and finds the new slots then.

const (
	stripeBits  = 8
	stripeCount = 1 << stripeBits
	minSlots    = 16
)

// A table has the buckets of one limit in a Memory. Limits do not share a table,
// so that a flood of keys of one takes nothing from the others.
type table struct {
	m       *Memory
	window  int64        // the limit's
	used    atomic.Int64 // the time of the last use, to useStep
	stripes [stripeCount]stripe
}

func newTable(m *Memory, window int64) *table {
	t := &table{m: m, window: window}
	for i := range t.stripes {
		t.stripes[i].slots.Store(noSlots)
	}
	return t
}

func (t *table) stripe(hash uint64) *stripe { return &t.stripes[hash>>(64-stripeBits)] }

// crowded reports whether a stripe with so many keys must not get more.
func (t *table) crowded(keys int) bool {
	return int64(keys) >= t.m.share.Load() && t.m.keys.Load() >= int64(t.m.maxKeys)
}

// Hashes that are no key's.
const (
	free    = 0 // ends a probe
	removed = 1
)

// moved is the full of an entry that is changing hands, or of replaced slots.
const moved = -1

// keyHash makes a hash one that is neither free nor removed.
func keyHash(hash uint64) uint64 {
	if hash <= removed {
		return hash + 2
	}
	return hash
}

type stripe struct {
	slots atomic.Pointer[slots]
	mu    sync.Mutex
	_     [48]byte // stripes do not share cache lines
}

type slots struct {
	entries []entry // a power of two

	// Guarded by the stripe's lock:
	keys    int // entries that are some key's
	removed int // entries that are removed
	added   int // keys added since these slots were made
}

type entry struct {
	hash atomic.Uint64
	full atomic.Int64 // in nanoseconds of the store's clock
}

// newSlots makes slots for keys and some more: at most 3/4 are used, and 5/8 at
// first.
func newSlots(keys int) *slots {
	n := max(minSlots, 1<<bits.Len(uint(keys*8/5)))
	return &slots{entries: make([]entry, n)}
}

// noSlots are those of a stripe without keys, and retired those of a dropped
// table. Neither is ever written to.
var (
	noSlots = &slots{entries: make([]entry, 1)}
	retired = &slots{entries: make([]entry, 1)}
)

// find returns the entry of a hash, nil if there is none.
func (sl *slots) find(hash uint64) *entry {
	mask := uint64(len(sl.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &sl.entries[i]
		switch e.hash.Load() {
		case hash:
			return e
		case free:
			return nil
		}
	}
}

// read returns full. ok is false if the entry is changing hands.
func (e *entry) read(hash uint64) (full int64, ok bool) {
	full = e.full.Load()
	return full, full != moved && e.hash.Load() == hash
}

// charge decides and charges, and returns the time at which it did. ok is false if
// the entry is changing hands: then the lock is needed.
func (e *entry) charge(t *table, l *Limit, hash uint64, cost int64) (d Decision, at int64, ok bool) {
	for wait := minSpin; ; wait = min(2*wait, maxSpin) {
		full, ok := e.read(hash)
		if !ok {
			return Decision{}, 0, false
		}
		now := t.m.now()
		base := max(full, now)
		d := l.decide(base-now, cost)
		if !d.Allowed || e.full.CompareAndSwap(full, base+cost*l.interval) {
			t.touch(now)
			return d, now, true
		}
		spin(wait)
	}
}

// A charge that has lost a race waits some microseconds, while the winner has the
// cache line to itself for some decisions. The line would move between the
// processors for each decision otherwise, and two of them would be half as fast as
// one. The clock is read between reading the line and the swap, so that races are
// lost and noticed.
const (
	minSpin = 1 << 13
	maxSpin = 1 << 15
)

//go:noinline
func spin(n int) {
	for range n {
	}
}

// refund reports false if the lock is needed, as charge does.
func (e *entry) refund(m *Memory, l *Limit, hash uint64, cost, at int64) bool {
	for {
		full, ok := e.read(hash)
		if !ok {
			return false
		}
		now := m.now()
		left := cost*l.interval - max(0, now-at)
		if left <= 0 || full <= now || e.full.CompareAndSwap(full, max(now, full-left)) {
			return true
		}
	}
}

// insert charges a key that was not found, or could not be charged without the
// lock. ok is false if the table is retired.
func (s *stripe) insert(t *table, l *Limit, hash uint64, cost int64) (d Decision, at int64, ok bool) {
	m := t.m
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		sl := s.slots.Load()
		if sl == retired {
			return Decision{}, 0, false
		}
		if e := sl.find(hash); e != nil {
			if d, at, ok := e.charge(t, l, hash, cost); ok {
				return d, at, true
			}
		}
		// The time is read here: a bucket of this key may have been full, and
		// forgotten, since the caller has read the clock.
		now := m.now()
		t.touch(now)
		if sl.stale(t) {
			s.put(t, sl.take(now), 1)
			continue
		}
		e, old := sl.vacant(hash, now)
		if e.hash.Load() != free {
			if e.become(hash, old, now+cost*l.interval) {
				sl.added++
				return l.decide(0, cost), now, true
			}
			continue // its bucket was charged meanwhile
		}
		base := now
		if t.crowded(sl.keys) {
			least, full := sl.leastDebt(hash)
			base = max(now, full+1)
			if d := l.decide(base-now, cost); !d.Allowed {
				// No bucket is emptier than empty.
				return l.decide(min(base-now, l.window), cost), 0, true
			}
			if !least.become(removed, full, full+1) {
				continue
			}
			sl.keys--
			m.keys.Add(-1)
			sl.removed++
		}
		// In this order: the entry is not found until it has its hash.
		e.full.Store(base + cost*l.interval)
		e.hash.Store(hash)
		sl.keys++
		m.keys.Add(1)
		sl.added++
		return l.decide(base-now, cost), now, true
	}
}

// become gives an entry to another key. It fails if it was charged meanwhile.
func (e *entry) become(hash uint64, old, full int64) bool {
	if !e.full.CompareAndSwap(old, moved) {
		return false
	}
	e.hash.Store(hash)
	e.full.Store(full)
	return true
}

// vacant finds where a key that is not there belongs: the first entry of its probe
// whose bucket is full, with the time at which it became so, or else the free one
// at the end. An entry whose bucket becomes full just now is not taken: its time
// must be less than any that comes after.
func (sl *slots) vacant(hash uint64, now int64) (e *entry, old int64) {
	mask := uint64(len(sl.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &sl.entries[i]
		h := e.hash.Load()
		if h == free {
			return e, 0
		}
		if full := e.full.Load(); h != removed && full < now {
			return e, full
		}
	}
}

// sample is how many keys are compared for the one that has most tokens left.
const sample = 16

// leastDebt finds, among some keys, the one whose bucket will be full first. There
// is at least one; where there are fewer than sample all are compared.
func (sl *slots) leastDebt(hash uint64) (e *entry, full int64) {
	mask := uint64(len(sl.entries) - 1)
	seen := 0
	for i := uint64(0); i <= mask && seen < sample; i++ {
		c := &sl.entries[(hash+i)&mask]
		if h := c.hash.Load(); h == free || h == removed {
			continue
		}
		seen++
		if f := c.full.Load(); e == nil || f < full {
			e, full = c, f
		}
	}
	return e, full
}

// stale reports whether slots should be replaced: they are too full, or have too
// many keys, of which some may be forgotten; or they may be larger than needed by
// now. The cost is spread over the keys that were added since they were made.
func (sl *slots) stale(t *table) bool {
	n := len(sl.entries)
	return (sl.keys+sl.removed+1)*4 > n*3 || sl.added > n || sl.added > sl.keys/4 && t.crowded(sl.keys)
}

// A debt is a bucket that is not full, on its way from old slots to new ones.
type debt struct {
	hash uint64
	full int64
}

// take marks all entries as moved and returns the debts among them. The lock is
// held; put must follow.
func (sl *slots) take(now int64) (debts []debt) {
	for i := range sl.entries {
		e := &sl.entries[i]
		h := e.hash.Load()
		if h == free {
			continue
		}
		if full := e.full.Swap(moved); h != removed && full > now {
			debts = append(debts, debt{h, full})
		}
	}
	return debts
}

// put replaces the slots by new ones with these debts and room for more keys. The
// lock is held.
func (s *stripe) put(t *table, debts []debt, more int) {
	to := noSlots
	if len(debts)+more > 0 {
		to = newSlots(len(debts) + more)
		to.fill(debts)
	}
	t.m.keys.Add(int64(to.keys - s.slots.Load().keys))
	s.slots.Store(to)
}

func (sl *slots) fill(debts []debt) {
	sl.keys = len(debts)
	mask := uint64(len(sl.entries) - 1)
	for _, d := range debts {
		i := d.hash & mask
		for sl.entries[i].hash.Load() != free {
			i = (i + 1) & mask
		}
		sl.entries[i].full.Store(d.full)
		sl.entries[i].hash.Store(d.hash)
	}
}
