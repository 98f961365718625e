package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// This file is the hash table of a space: shards, each with open addressing and
// linear probing. Readers and chargers take no lock; who adds a key, takes one
// away or makes the table anew holds the shard's.
//
// An entry is the key's hash and the time at which its bucket will be full
// ("full"). It never becomes free again, only another key's, when its bucket is
// full; or nobody's, when the limit has too many keys. The one danger is a charge
// that meets an entry which has just become another key's. It is averted so:
//
//   - Whoever changes the owner first swaps full for moved, then sets the hash,
//     then a new full, which is later than the time that it is; the one before
//     was earlier.
//   - A charger reads full, then the hash, then swaps the full it has read. If
//     the hash is right and full has grown only, the swap succeeds only if the
//     entry was that key's all the time.
//   - Refunds, and loans that are settled, make full less. So a full can come
//     again under another owner: if a charger has stood still since before the
//     refund, until the bucket has become full and its entry another key's, and
//     that key's full is the one it has read, to the nanosecond. Then one charge
//     goes to the wrong bucket. Nothing is done against that.
//
// A new table is made by swapping every full of the old one for moved, so that
// the last charge is taken over or has failed; then the new one is published.
// Who meets moved takes the lock, and has the new table then.

const (
	shardBits  = 8
	shardCount = 1 << shardBits
	smallest   = 16 // entries of a table
)

// Hashes that are none.
const (
	free    = 0 // and so are all behind it in the order of probing
	removed = 1
)

// moved is the full of an entry that is changing hands, or of an old table.
const moved = -1

// clean makes a hash one that is not free or removed.
func clean(hash uint64) uint64 {
	if hash <= removed {
		return hash + 2
	}
	return hash
}

type shard struct {
	table atomic.Pointer[table]
	mu    sync.Mutex
	_     [48]byte // shards do not share lines of memory
}

type table struct {
	entries []entry // a power of two

	// Under the shard's lock:
	keys  int // entries that are some key's
	waste int // entries that are removed
	churn int // keys added since the table was made
}

type entry struct {
	hash atomic.Uint64
	full atomic.Int64 // in nanoseconds of the store's clock
}

// newTable makes a table for keys and some more: it is 3/4 full at most, and 5/8
// at first.
func newTable(keys int) *table {
	n := max(smallest, 1<<bits.Len(uint(keys*8/5)))
	return &table{entries: make([]entry, n)}
}

// noKeys is the table of a shard that never had one. It is never written to.
var noKeys = &table{entries: make([]entry, 1)}

// find returns the entry of a hash, nil if there is none.
func (t *table) find(hash uint64) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &t.entries[i]
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

// charge is the common way. ok is false if the lock is needed: the entry is
// changing hands, or loans must be settled before it can be decided.
func (e *entry) charge(sp *space, l *Limit, hash uint64, cost int64) (d Decision, at int64, ok bool) {
	m := sp.m
	lane := -1
	for wait := shortestSpin; ; {
		full, ok := e.read(hash)
		if !ok {
			return Decision{}, 0, false
		}
		now := m.now()
		lent := m.loans.out.Load() != 0 // after full, which a loan changes last
		if lent {
			if lane < 0 {
				lane = ownLane()
			}
			d, what := m.loans.spend(lane, sp, l, e, hash, cost, now)
			switch {
			case what == spent:
				return d, now, true
			case what == contended:
				lane = (lane + 1) % lanes
				continue
			case what == empty && cost <= leastLoan && m.loans.lend(lane, sp, l, hash):
				continue
			}
		}
		base := max(full, now)
		d := l.decide(base-now, cost)
		if lent && m.loans.matter(sp, hash, now, d.Allowed) {
			return Decision{}, 0, false
		}
		if !d.Allowed || e.full.CompareAndSwap(full, base+cost*l.interval) {
			if lent {
				m.loans.endOld(now)
			}
			return d, now, true
		}
		if lane < 0 {
			lane = ownLane()
		}
		if cost > leastLoan || !m.loans.lend(lane, sp, l, hash) {
			spin(wait)
			wait = min(2*wait, longestSpin)
		}
	}
}

// Who has lost a race and cannot have a loan waits, some microseconds, while the
// winner has the line of memory to itself for some decisions. Else it would
// wander between the processors at each, and two of them would be half as fast
// as one. The clock is read between the line's reading and the swap, so that
// races are lost and seen.
const (
	shortestSpin = 1 << 13
	longestSpin  = 1 << 15
)

//go:noinline
func spin(n int) {
	for range n {
	}
}

// refund reports false if the lock is needed, as charge does.
func (e *entry) refund(sp *space, l *Limit, hash uint64, cost, at int64) bool {
	for {
		full, ok := e.read(hash)
		if !ok || sp.m.loans.any(sp, hash) {
			return false
		}
		now := sp.m.now()
		left := cost*l.interval - max(0, now-at)
		if left <= 0 || full <= now || e.full.CompareAndSwap(full, max(now, full-left)) {
			return true
		}
	}
}

// insert charges a key that was not there, or could not be charged without the
// lock.
func (s *shard) insert(sp *space, l *Limit, hash uint64, cost int64) (Decision, int64) {
	m := sp.m
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		// The time is read anew: a bucket of this key may have been full, and
		// forgotten, since the caller has looked at the clock.
		now := m.now()
		if e := sp.settle(l, hash); e != nil {
			if d, at, ok := e.chargeLocked(m, l, hash, cost); ok {
				return d, at
			}
		}
		t := s.table.Load()
		if t.stale(sp) {
			s.rebuild(sp, now, 1)
			continue
		}
		e, old := t.place(hash, now)
		if e.hash.Load() != free {
			if e.become(hash, old, now+cost*l.interval) {
				t.churn++
				return l.decide(0, cost), now
			}
			continue // its bucket was charged meanwhile
		}
		base := now
		if sp.crowded(t.keys) {
			least, debt := t.least(hash)
			base = max(now, debt+1)
			if d := l.decide(base-now, cost); !d.Allowed {
				// No bucket is emptier than empty.
				return l.decide(min(base-now, l.window), cost), 0
			}
			if !least.become(removed, debt, debt+1) {
				continue
			}
			t.keys--
			m.keys.Add(-1)
			t.waste++
		}
		// In this order: the entry is nobody's until it has its hash.
		e.full.Store(base + cost*l.interval)
		e.hash.Store(hash)
		t.keys++
		m.keys.Add(1)
		t.churn++
		return l.decide(base-now, cost), now
	}
}

// chargeLocked is charge when there are no loans. The lock is held, so that there
// will be none.
func (e *entry) chargeLocked(m *Memory, l *Limit, hash uint64, cost int64) (d Decision, at int64, ok bool) {
	for {
		full, ok := e.read(hash)
		if !ok {
			return Decision{}, 0, false
		}
		now := m.now()
		base := max(full, now)
		d := l.decide(base-now, cost)
		if !d.Allowed || e.full.CompareAndSwap(full, base+cost*l.interval) {
			return d, now, true
		}
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

// place finds where a key that is not there belongs: an entry on its way whose
// bucket is full, with the time at which it became so, or else the free one at
// the end. One that becomes full just now is not taken: its time must be less
// than any that comes after.
func (t *table) place(hash uint64, now int64) (e *entry, old int64) {
	mask := uint64(len(t.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &t.entries[i]
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

// least finds, among some keys, the one whose bucket will be full first. There
// is one at least; where there are fewer than sample all are looked at.
func (t *table) least(hash uint64) (e *entry, full int64) {
	mask := uint64(len(t.entries) - 1)
	seen := 0
	for i := uint64(0); i <= mask && seen < sample; i++ {
		c := &t.entries[(hash+i)&mask]
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

// stale reports whether a table is to be made anew: it is too full, or has too
// many keys, of which some may be forgotten; or it may be larger than needed by
// now. The cost is spread over the keys that were added since it was made.
func (t *table) stale(sp *space) bool {
	n := len(t.entries)
	return (t.keys+t.waste+1)*4 > n*3 || t.churn > n || t.churn > t.keys/4 && sp.crowded(t.keys)
}

// rebuild makes the table of what is not forgotten by now, with room for more
// keys. All of the old one is moved. The lock is held.
func (s *shard) rebuild(sp *space, now int64, more int) {
	t := s.table.Load()
	to := noKeys
	if all := t.move(now); len(all)+more > 0 {
		to = newTable(len(all) + more)
		to.fill(all)
	}
	sp.m.keys.Add(int64(to.keys - t.keys))
	s.table.Store(to)
}

// owed is what moves from one table to the next.
type owed struct {
	hash uint64
	full int64
}

// move takes all that is not forgotten out of a table.
func (t *table) move(now int64) (all []owed) {
	for i := range t.entries {
		e := &t.entries[i]
		h := e.hash.Load()
		if h == free {
			continue
		}
		if full := e.full.Swap(moved); h != removed && full > now {
			all = append(all, owed{h, full})
		}
	}
	return all
}

func (t *table) fill(all []owed) {
	t.keys = len(all)
	mask := uint64(len(t.entries) - 1)
	for _, o := range all {
		i := o.hash & mask
		for t.entries[i].hash.Load() != free {
			i = (i + 1) & mask
		}
		t.entries[i].full.Store(o.full)
		t.entries[i].hash.Store(o.hash)
	}
}
