package ratelimit

import (
	"math"
	"sync/atomic"
	"weak"
)

// A space has the buckets of one limit in a Memory. Limits do not share a table,
// so that a flood of one's keys takes nothing from the others.
type space struct {
	m      *Memory
	tenant *tenant
	// loose: the tenant does not keep it, as nobody owed anything.
	loose  atomic.Bool
	shards [shardCount]shard
}

func (sp *space) shard(hash uint64) *shard { return &sp.shards[hash>>(64-shardBits)] }

// crowded reports whether a shard with so many keys must not get more.
func (sp *space) crowded(keys int) bool {
	return int64(keys) >= sp.m.share.Load() && sp.m.keys.Load() >= int64(sp.m.most)
}

// A tenant is a space as a Memory knows it. It is kept while somebody owes
// something in it, and after that while a Limit uses it. Else limits that were
// changed by a reload would take their part of MaxKeys for good. Who is gone is
// looked for when there are twice as many.
type tenant struct {
	owing *space
	used  weak.Pointer[space]
}

// spaceOf is where the buckets of a limit are.
func (m *Memory) spaceOf(l *Limit) *space {
	if l.space != nil && l.space.m == m {
		return l.space
	}
	return m.rent(l)
}

// rent finds the space of a limit's name and rate, or makes one.
func (m *Memory) rent(l *Limit) *space {
	id := l.name + " " + l.rate.String()
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.spaces[id]; t != nil {
		if sp := t.used.Value(); sp != nil {
			sp.hold()
			return sp
		}
	}
	sp := &space{m: m}
	for i := range sp.shards {
		sp.shards[i].table.Store(noKeys)
	}
	if len(m.spaces) >= m.enough {
		m.sweep()
		m.enough = 2*len(m.spaces) + 8
	}
	sp.tenant = &tenant{owing: sp, used: weak.Make(sp)}
	m.spaces[id] = sp.tenant // now: nobody owes anything in it yet
	// Keys do not spread evenly: six standard deviations more.
	mean := float64(m.most) / float64(len(m.spaces)) / shardCount
	m.share.Store(int64(math.Ceil(mean + 6*math.Sqrt(mean))))
	return sp
}

// sweep forgets the spaces that nobody uses any more. m.mu is held.
func (m *Memory) sweep() {
	now := m.now()
	for id, t := range m.spaces {
		sp := t.used.Value()
		if sp == nil {
			delete(m.spaces, id)
			continue
		}
		// First, so that who adds a key behind tidy sees it.
		sp.loose.Store(true)
		t.owing = nil
		if sp.tidy(now) {
			sp.hold()
		}
	}
}

// hold makes the tenant keep sp. m.mu is held.
func (sp *space) hold() {
	sp.tenant.owing = sp
	sp.loose.Store(false)
}

// added is called behind what adds a key, without a lock.
func (sp *space) added() {
	if sp.loose.Load() {
		sp.m.mu.Lock()
		defer sp.m.mu.Unlock()
		sp.hold()
	}
}

// tidy forgets what is full, and reports whether something is left.
func (sp *space) tidy(now int64) bool {
	left := 0
	for i := range sp.shards {
		s := &sp.shards[i]
		s.mu.Lock()
		s.rebuild(sp, now, 0)
		left += s.table.Load().keys
		s.mu.Unlock()
	}
	return left > 0
}
