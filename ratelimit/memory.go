package ratelimit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct/wire"
)

// Memory is the Store of one process. It is safe for concurrent use. A decision is
// usually a hash table lookup and one compare-and-swap; only a new key takes a
// lock, of 1/256 of the table.
//
// Keys are kept as 64-bit hashes, under a seed of this process. The chance that
// two of a million keys have the same hash, and so share a bucket, is 1 in 40
// million.
//
// Full buckets are forgotten, which loses nothing. So only keys that were used
// within their limit's window take memory: 16 bytes each, and up to 32 with the
// free slots between them.
//
// Several limits of a request are charged one after the other: if a concurrent
// request takes the last token of one, the others get theirs back, and for some
// hundred nanoseconds other requests may be refused for them.
type Memory struct {
	clock   func() time.Duration
	directs bool // clock is wire.Clock
	maxKeys int
	keys    atomic.Int64 // of all limits, those not forgotten yet included

	share  atomic.Int64 // keys that a stripe of any limit may have
	mu     sync.Mutex
	tables map[limitID]*table // guarded by mu
}

// MemoryOptions are the options of NewMemory. Nil and zero values are the
// defaults.
type MemoryOptions struct {
	// MaxKeys is about how many buckets are kept that are not full. Default
	// 1,048,576, which take at most 32 MiB; negative: no limit. When all are in use, a new key takes
	// over the bucket of another key of the same limit, with the tokens left in
	// it: of some keys, the one with most tokens left. (This is the Space-Saving
	// algorithm. A flood of made-up keys gets no more tokens than that many
	// buckets have, and clients that are over a limit stay over it.)
	//
	// With several limits each may use an equal part of MaxKeys even if the
	// others have used all of it, so that together they keep up to twice as many.
	// A limit takes another 16 KiB.
	MaxKeys int
	// Clock returns the time since some fixed moment and must not go back.
	// Default: wire.Clock; then requests on the fast path are admitted by the
	// time at which the server read them, and their Remaining is as of that time.
	Clock func() time.Duration
}

// defaultMaxKeys is the default of MemoryOptions.MaxKeys.
const defaultMaxKeys = 1 << 20

// NewMemory returns an empty Memory.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = &MemoryOptions{}
	}
	m := &Memory{clock: o.Clock, maxKeys: o.MaxKeys, tables: make(map[limitID]*table)}
	if m.clock == nil {
		m.clock, m.directs = wire.Clock, true
	}
	switch {
	case m.maxKeys == 0:
		m.maxKeys = defaultMaxKeys
	case m.maxKeys < 0:
		m.maxKeys = math.MaxInt
	}
	return m
}

// now is in nanoseconds and more than 0.
func (m *Memory) now() int64 { return max(0, int64(m.clock())) + 1 }

// Blocking implements Store. It returns false.
func (m *Memory) Blocking() bool { return false }

// Len returns the number of keys that take memory, those not forgotten yet
// included.
func (m *Memory) Len() int { return int(m.keys.Load()) }

// Take implements Store. The error is always nil.
func (m *Memory) Take(_ context.Context, claims []Claim) error {
	if len(claims) != 1 {
		for i := range claims {
			c := &claims[i]
			c.Decision = m.peek(c.Limit, hashBytes(c.Limit, c.Key), c.Cost)
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

// Refund implements Store. The error is always nil.
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
		c.Decision = m.peek(c.Limit, hashBytes(c.Limit, c.Key), c.Cost)
	}
}

// peek decides and charges nothing.
func (m *Memory) peek(l *Limit, hash uint64, cost int64) Decision {
	hash = keyHash(hash)
	s := m.tableOf(l).stripe(hash)
	sl := s.slots.Load()
	for sl == retired {
		s = m.register(l).stripe(hash)
		sl = s.slots.Load()
	}
	e := sl.find(hash)
	if e == nil {
		return l.decide(0, cost)
	}
	full, ok := e.read(hash)
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		full = 0
		if e = s.slots.Load().find(hash); e != nil {
			full = e.full.Load()
		}
	}
	return l.decide(max(0, full-m.now()), cost)
}

// take charges a bucket if it can, and returns the time at which it did.
func (m *Memory) take(l *Limit, hash uint64, cost int64) (d Decision, at int64) {
	if cost == 0 || cost > l.rate.Burst {
		return m.peek(l, hash, cost), 0
	}
	hash = keyHash(hash)
	for t := m.tableOf(l); ; t = m.register(l) {
		s := t.stripe(hash)
		if e := s.slots.Load().find(hash); e != nil {
			if d, at, ok := e.charge(t, l, hash, cost); ok {
				return d, at
			}
		}
		if d, at, ok := s.insert(t, l, hash, cost); ok {
			return d, at
		}
	}
}

// giveBack returns a charge, less the tokens that the time since has brought:
// in that time the bucket may have become full, and whether it has cannot be
// known. In a retired table there is nothing to return.
func (m *Memory) giveBack(l *Limit, hash uint64, cost, at int64) {
	hash = keyHash(hash)
	s := m.tableOf(l).stripe(hash)
	if e := s.slots.Load().find(hash); e != nil && e.refund(m, l, hash, cost, at) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.slots.Load().find(hash); e != nil {
		e.refund(m, l, hash, cost, at)
	}
}
