package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
)

// Memory is the store of one process. The usual decision is a look into a hash
// table and one compare-and-swap; only a key that is new takes a lock, of a part
// of the table. Where several processors charge one key they have it in turns, or
// take loans.
//
// A key is its 64-bit hash, under a seed of this process. That two keys of a
// million have the same, and share a bucket, has a chance of 1 in 40 million.
//
// A bucket that is full is forgotten: that is no loss. So only keys that were
// used within their limit's window take memory, 16 bytes each and up to 32 with
// the room between them.
type Memory struct {
	clock func() time.Duration
	// directs: clock is direct.Clock.
	directs bool
	most    int          // keys of all limits
	keys    atomic.Int64 // now, those not forgotten yet included
	loans   loans

	share  atomic.Int64 // keys that a shard of any limit may have
	mu     sync.Mutex
	spaces map[string]*tenant
	enough int // spaces, before the next sweep
}

// MemoryOptions are the options of NewMemory; nil or zero is the default.
type MemoryOptions struct {
	// MaxKeys is about how many buckets are kept that are not full. Default
	// 1,048,576, which take 32 MiB at most. A key that comes when all are taken
	// takes over the bucket, as full or empty as it is, of another of the same
	// limit that has nearly the most tokens left. (That is the Space-Saving
	// algorithm: who floods the table with keys gets no more tokens than there
	// are buckets for, and who is over a limit stays so.)
	//
	// Of several limits each may have its equal part of MaxKeys, also when
	// others have taken all before: then it is up to twice as many together. A
	// limit takes 16 KiB besides its keys.
	MaxKeys int
	// Clock tells the time since some fixed moment. It must not go back.
	// Default: direct.Clock; then requests on the direct way are admitted by the
	// time that the server knows.
	Clock func() time.Duration
}

// DefaultMaxKeys is the default of MemoryOptions.MaxKeys.
const DefaultMaxKeys = 1 << 20

// NewMemory makes a Memory.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = &MemoryOptions{}
	}
	m := &Memory{clock: o.Clock, most: o.MaxKeys, spaces: make(map[string]*tenant)}
	if m.clock == nil {
		m.clock, m.directs = direct.Clock, true
	}
	if m.most <= 0 {
		m.most = DefaultMaxKeys
	}
	return m
}

// now is in nanoseconds and more than 0.
func (m *Memory) now() int64 { return max(0, int64(m.clock())) + 1 }

// Waits implements Store. It is false.
func (m *Memory) Waits() bool { return false }

// Len is how many keys take memory now, those not forgotten yet included.
func (m *Memory) Len() int { return int(m.keys.Load()) }

// Take implements Store. The error is nil.
func (m *Memory) Take(_ context.Context, claims []Claim) error {
	if len(claims) != 1 {
		for i := range claims {
			c := &claims[i]
			c.Decision = m.look(c.Limit, hashBytes(c.Limit, c.Key), c.Cost)
		}
		if !allowed(claims) {
			return nil
		}
	}
	for i := range claims {
		c := &claims[i]
		c.Decision, c.At = m.take(c.Limit, hashBytes(c.Limit, c.Key), c.Cost)
		if !c.Decision.Allowed {
			m.refund(claims[:i])
			break
		}
	}
	return nil
}

// Refund implements Store.
func (m *Memory) Refund(_ context.Context, claims []Claim) error {
	m.refund(claims)
	return nil
}

func (m *Memory) refund(claims []Claim) {
	for i := range claims {
		c := &claims[i]
		if c.Cost > 0 {
			m.giveBack(c.Limit, hashBytes(c.Limit, c.Key), c.Cost, c.At)
		}
		c.Decision = m.look(c.Limit, hashBytes(c.Limit, c.Key), c.Cost)
	}
}

// look decides and charges nothing.
func (m *Memory) look(l *Limit, hash uint64, cost int64) Decision {
	sp, hash := m.spaceOf(l), clean(hash)
	s := sp.shard(hash)
	e := s.table.Load().find(hash)
	if e == nil {
		return l.decide(0, cost)
	}
	if full, ok := e.read(hash); ok {
		d := l.decide(max(0, full-m.now()), cost)
		// What is lent counts as taken. That matters to who is refused, and to who only looks.
		if d.Allowed && cost > 0 || !m.loans.any(sp, hash) {
			return d
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	full := int64(0)
	if e := sp.settle(l, hash); e != nil {
		full = e.full.Load()
	}
	return l.decide(max(0, full-m.now()), cost)
}

// take charges a bucket if it can, and returns the time at which it did.
func (m *Memory) take(l *Limit, hash uint64, cost int64) (d Decision, at int64) {
	if cost == 0 || cost > l.rate.Burst {
		return m.look(l, hash, cost), 0
	}
	sp := m.spaceOf(l)
	hash = clean(hash)
	s := sp.shard(hash)
	if e := s.table.Load().find(hash); e != nil {
		if d, at, ok := e.charge(sp, l, hash, cost); ok {
			return d, at
		}
	}
	d, at = s.insert(sp, l, hash, cost)
	sp.added()
	return d, at
}

// giveBack takes a charge back, less the time since. In that time the bucket may
// have become full, and then that much of the charge is back already; whether it
// has cannot be seen any more.
func (m *Memory) giveBack(l *Limit, hash uint64, cost, at int64) {
	sp := m.spaceOf(l)
	hash = clean(hash)
	s := sp.shard(hash)
	if e := s.table.Load().find(hash); e != nil && e.refund(sp, l, hash, cost, at) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := sp.settle(l, hash); e != nil {
		e.refund(sp, l, hash, cost, at)
	}
}
