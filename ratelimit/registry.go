package ratelimit

import (
	"math"
	"time"
)

// This file is the registry of a Memory: the table of each limit, by name and
// rate. A Limit that is made again, after a reload, finds the buckets of the one
// before.
//
// A table is dropped when it has not been used for so long that its buckets are
// full: limits that are no longer configured would keep their part of MaxKeys
// otherwise. Limits need not be closed for that. One that uses a dropped table
// finds it retired and registers again, so that limits of the same name and rate
// never charge different tables.
//
// Memory.mu is locked before stripe.mu.

const (
	// idleTime is how long a table must be unused to be dropped, and maxIdle how
	// many such tables are kept for their debts. Beyond that the least recently
	// used one is dropped with its debts, so that a program that makes up names
	// does not grow without bound.
	idleTime = int64(time.Minute)
	maxIdle  = 1024
	// useStep is how exactly the time of the last use is known. A charge within
	// it has nothing to write.
	useStep = int64(time.Second)
)

// A limitID is what a table is registered by.
type limitID struct {
	name string
	rate Rate // with Burst filled in
}

// tableOf returns the table of a limit.
func (m *Memory) tableOf(l *Limit) *table {
	if t := l.table.Load(); t != nil && t.m == m {
		return t
	}
	return m.register(l)
}

// register returns the table of a limit's name and rate, and makes it if there is
// none.
func (m *Memory) register(l *Limit) *table {
	id := limitID{l.name, l.rate}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	t := m.tables[id]
	if t == nil {
		m.sweep(now)
		t = newTable(m, l.window)
		m.tables[id] = t
		// Keys do not spread evenly: six standard deviations more.
		mean := float64(m.maxKeys) / float64(len(m.tables)) / stripeCount
		m.share.Store(int64(math.Ceil(mean + 6*math.Sqrt(mean))))
	}
	t.touch(now)
	if l.store == Store(m) {
		l.table.Store(t)
	}
	return t
}

// sweep drops tables that are no longer used. m.mu is held.
func (m *Memory) sweep(now int64) {
	var oldest limitID
	var used int64 = math.MaxInt64
	idle := 0
	for id, t := range m.tables {
		at := t.used.Load()
		if now-at <= idleTime {
			continue
		}
		if now-at > idleTime+t.window && t.retire(now, false) {
			delete(m.tables, id)
			continue
		}
		idle++
		if at < used {
			oldest, used = id, at
		}
	}
	if idle > maxIdle {
		m.tables[oldest].retire(now, true)
		delete(m.tables, oldest)
	}
}

// touch records that the table is used.
func (t *table) touch(now int64) {
	if now-t.used.Load() > useStep {
		t.used.Store(now)
	}
}

// retire makes a table unusable, so that nothing is charged to it any more. If a
// bucket is not full it does so only with force; else it reports false and the
// table stays as it is. m.mu is held.
func (t *table) retire(now int64, force bool) bool {
	for i := range t.stripes {
		if !t.stripes[i].retire(t, now, force) {
			// A goroutine that has seen a retired stripe waits for m.mu, finds the
			// table still registered, and tries again.
			for j := range i {
				t.stripes[j].slots.Store(noSlots)
			}
			return false
		}
	}
	return true
}

func (s *stripe) retire(t *table, now int64, force bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	debts := s.slots.Load().take(now)
	if len(debts) > 0 && !force {
		s.put(t, debts, 0)
		return false
	}
	s.put(t, nil, 0)
	s.slots.Store(retired)
	return true
}
