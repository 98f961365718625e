package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// This file is Memory's hash table: shards, each with open addressing and linear
// probing. Readers and chargers take no lock; who adds a key, takes one away or
// makes the table anew holds the shard's.
//
// An entry is the key's hash and the time at which its bucket will be full
// ("full"). It never becomes free again, only another key's: when its bucket is
// full, or when the shard has too many keys. The one danger is a charge that
// meets an entry which has just become another key's. It is averted so:
//
//   - Whoever changes the owner first swaps full for moved, then sets the hash,
//     then a new full, which is greater than any value the entry had before.
//   - A charger reads full, then the hash, then swaps the full it has read. If
//     the hash is right and the swap succeeds, the entry was that key's all the
//     time: had it changed hands in between, full would be another, for good.
//   - Refunds make full less, but never less than the time that it is, nor than
//     where the owner began, which is more than any earlier owner had. (But for
//     a key that is charged, loses its entry to another in a table that has too
//     many keys, comes back and has the first charge refunded.)
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
	_     [112]byte // shards do not share lines of memory
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

// charge is the common way. ok is false if the entry is changing hands.
func (e *entry) charge(m *Memory, l *Limit, hash uint64, cost int64) (d Decision, at int64, ok bool) {
	for wait := shortestSpin; ; {
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
		spin(wait)
		wait = min(2*wait, longestSpin)
	}
}

// Who has lost a race waits, some microseconds, while the winner has the line
// of memory to itself for some decisions. Else it would wander between the
// processors at each, and two of them would be half as fast as one. The clock is
// read between the line's reading and the swap, so that races are lost and seen.
const (
	shortestSpin = 1 << 13
	longestSpin  = 1 << 15
)

//go:noinline
func spin(n int) {
	for range n {
	}
}

// refund reports false if the entry is changing hands.
func (e *entry) refund(l *Limit, hash uint64, cost, at, now int64) bool {
	left := cost*l.interval - max(0, now-at)
	for {
		full, ok := e.read(hash)
		if !ok {
			return false
		}
		if left <= 0 || full <= now || e.full.CompareAndSwap(full, max(now, full-left)) {
			return true
		}
	}
}

// read returns full of a key, 0 if it is not there. The lock is held.
func (s *shard) read(hash uint64) int64 {
	if e := s.table.Load().find(hash); e != nil {
		return e.full.Load()
	}
	return 0
}

// insert charges a key that was not there.
func (s *shard) insert(m *Memory, l *Limit, hash uint64, cost int64) (Decision, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		t := s.table.Load()
		// The time is read anew: a bucket of this key may have been full, and
		// forgotten, since the caller has looked at the clock.
		now := m.now()
		if e := t.find(hash); e != nil {
			if d, at, ok := e.charge(m, l, hash, cost); ok {
				return d, at
			}
		}
		if t.stale(m.most) {
			s.table.Store(t.rebuild(now))
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
		if t.keys >= m.most {
			least, debt := t.least(hash)
			// No bucket is emptier than empty; but the debt may be of another limit, whose window is longer.
			base = min(max(now, debt+1), now+l.window)
			if d := l.decide(base-now, cost); !d.Allowed {
				return d, 0
			}
			if !least.become(removed, debt, debt+1) {
				continue
			}
			t.keys--
			t.waste++
		}
		// In this order: the entry is nobody's until it has its hash.
		e.full.Store(base + cost*l.interval)
		e.hash.Store(hash)
		t.keys++
		t.churn++
		return l.decide(base-now, cost), now
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
// are that many: a shard is never full before it has a few hundred keys, or
// those that it has are found on the way around.
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
func (t *table) stale(most int) bool {
	n := len(t.entries)
	return (t.keys+t.waste+1)*4 > n*3 || t.churn > n || t.keys >= most && t.churn > most/4
}

// rebuild makes a table of what is not forgotten by now. All of t is moved.
func (t *table) rebuild(now int64) *table {
	type one struct {
		hash uint64
		full int64
	}
	var all []one
	for i := range t.entries {
		e := &t.entries[i]
		h := e.hash.Load()
		if h == free {
			continue
		}
		if full := e.full.Swap(moved); h != removed && full > now {
			all = append(all, one{h, full})
		}
	}
	to := newTable(len(all) + 1)
	to.keys = len(all)
	mask := uint64(len(to.entries) - 1)
	for _, a := range all {
		i := a.hash & mask
		for to.entries[i].hash.Load() != free {
			i = (i + 1) & mask
		}
		to.entries[i].full.Store(a.full)
		to.entries[i].hash.Store(a.hash)
	}
	return to
}
