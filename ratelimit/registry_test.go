package ratelimit

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

func named(t testing.TB, name string, rate Rate, m *Memory) *Limit {
	t.Helper()
	l, err := NewLimit(name, rate, m)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (m *Memory) limits() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tables)
}

// registerAnother makes the registry drop unused tables.
func registerAnother(t testing.TB, m *Memory) {
	t.Helper()
	m.mu.Lock()
	n := len(m.tables)
	m.mu.Unlock()
	named(t, "another"+strconv.Itoa(n), Rate{1, time.Duration(1+n) * time.Second, 1}, m)
}

// A reload keeps what clients owe, also while many limits come and go.
func TestReloadKeepsDebts(t *testing.T) {
	t.Parallel()
	var c clock
	m := NewMemory(&MemoryOptions{Clock: c.now})
	for i, want := range []bool{true, true, false} {
		l := mustLimit(t, "2/d", m)
		for j := range 20 {
			named(t, "other"+strconv.Itoa(j), Rate{1, 1e9, 1}, m)
		}
		if d, _ := l.Allow(t.Context(), "k", 1); d.Allowed != want {
			t.Errorf("%d: got %+v, want %v", i, d, want)
		}
		c.advance(time.Hour)
	}
	registerAnother(t, m)
	if n := m.Len(); n != 1 {
		t.Errorf("%d keys are counted, want 1", n)
	}
}

// Limits that are no longer configured leave nothing; those that stay share their
// buckets, whenever they were made.
func TestUnusedLimitsAreDropped(t *testing.T) {
	t.Parallel()
	var c clock
	m := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/h burst 5", m)
	l.Allow(t.Context(), "k", 3)
	for i := range 50 { // reloads
		mustLimit(t, strconv.Itoa(i+6)+"/h", m).Allow(t.Context(), "k", 1)
	}
	c.advance(time.Hour)
	l.Allow(t.Context(), "k", 1)
	registerAnother(t, m)
	if n := m.limits(); n != 52 {
		t.Fatalf("%d limits are registered, want 52: all have been used within their window", n)
	}
	few := m.share.Load()
	c.advance(2 * time.Minute)
	l.Allow(t.Context(), "k", 0)
	registerAnother(t, m)
	if n := m.limits(); n != 2 {
		t.Errorf("%d limits are registered, want 2", n)
	}
	if n := m.Len(); n != 1 {
		t.Errorf("%d keys are counted, want 1", n)
	}
	if share := m.share.Load(); share < 15*few {
		t.Errorf("a stripe may have %d keys, and %d while there were 52 limits", share, few)
	}
	elsewhere := NewMemory(&MemoryOptions{Clock: c.now})
	claims := []Claim{{Limit: l, Key: []byte("k"), Cost: 1}}
	if elsewhere.Take(t.Context(), claims); !claims[0].Decision.Allowed || elsewhere.Len() != 1 {
		t.Errorf("a limit of another store: %+v", claims[0].Decision)
	}
}

// A limit whose table was dropped is registered again by its next use, of any
// kind, and shares its buckets with one that was made meanwhile.
func TestDroppedLimitIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(m *Memory, l *Limit) int64{
		"peek":  func(_ *Memory, l *Limit) int64 { d, _ := l.Allow(context.Background(), "k", 0); return d.Remaining },
		"take":  func(_ *Memory, l *Limit) int64 { d, _ := l.Allow(context.Background(), "k", 1); return d.Remaining + 1 },
		"quick": func(m *Memory, l *Limit) int64 { d, _ := quickly(m, l, "k", m.clock()); return d.Remaining + 1 },
		"two": func(m *Memory, l *Limit) int64 {
			claims := []Claim{{Limit: l, Key: []byte("k"), Cost: 1}, {Limit: l, Key: []byte("k2"), Cost: 1}}
			m.Take(context.Background(), claims)
			return claims[0].Decision.Remaining + 1
		},
		"refund, then peek": func(m *Memory, l *Limit) int64 {
			claims := []Claim{{Limit: l, Key: []byte("k"), Cost: 1, At: 1}}
			m.Refund(context.Background(), claims)
			return claims[0].Decision.Remaining + 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c clock
			m := quickMemory(&c, 0)
			old := mustLimit(t, "1/m burst 10", m)
			old.Allow(t.Context(), "k", 5)
			dropped := old.table.Load()
			c.advance(time.Hour)
			registerAnother(t, m)
			if s := dropped.stripe(0); s.slots.Load() != retired {
				t.Fatal("the table was not dropped")
			}
			mustLimit(t, "1/m burst 10", m).Allow(t.Context(), "k", 7)
			if left := use(m, old); left != 3 {
				t.Errorf("%d left, want 3", left)
			}
			if d, _ := mustLimit(t, "1/m burst 10", m).Allow(t.Context(), "k2", 0); name == "two" && d.Remaining != 9 {
				t.Errorf("%d left of the second key, want 9", d.Remaining)
			}
		})
	}
}

// A table that has debts when it is to be dropped stays whole.
func TestTableWithDebtsIsNotRetired(t *testing.T) {
	t.Parallel()
	var c clock
	m := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/h burst 5", m)
	table := l.table.Load()
	var first, last string // keys in the first stripe and the last
	for i := 0; first == "" || last == ""; i++ {
		switch key := strconv.Itoa(i); table.stripe(keyHash(hashString(l, key))) {
		case &table.stripes[0]:
			first = key
		case &table.stripes[stripeCount-1]:
			last = key
		}
	}
	l.Allow(t.Context(), first, 1)
	l.Allow(t.Context(), last, 2)
	c.advance(time.Hour) // the bucket of first is full
	m.mu.Lock()
	gone := table.retire(m.now(), false)
	m.mu.Unlock()
	if gone {
		t.Fatal("a table with debts is retired")
	}
	for i := range table.stripes {
		if table.stripes[i].slots.Load() == retired {
			t.Fatalf("stripe %d is retired", i)
		}
	}
	for key, want := range map[string]int64{first: 5, last: 4} {
		if d, _ := l.Allow(t.Context(), key, 0); d.Remaining != want {
			t.Errorf("%d left, want %d", d.Remaining, want)
		}
	}
	if n := m.Len(); n != 1 {
		t.Errorf("%d keys are counted, want 1", n)
	}
}

// Memory is bounded for a program that makes up names; limits that are in use stay.
func TestManyIdleLimits(t *testing.T) {
	t.Parallel()
	var c clock
	m := quickMemory(&c, 0)
	day := Rate{2, 24 * time.Hour, 2}
	used, quick := named(t, "used", day, m), named(t, "quick", Rate{1 << 20, 24 * time.Hour, 0}, m)
	used.Allow(t.Context(), "k", 1)
	table, quickly := quick.table.Load(), 0
	for i := range 2 * maxIdle {
		named(t, strconv.Itoa(i), day, m).Allow(t.Context(), "k", 2)
		c.advance(time.Second)
		if i%30 == 0 {
			used.Allow(t.Context(), "k", 2) // refused
			if _, _, ok := m.admit(quick, hashString(quick, "k"), c.now()); ok {
				quickly++
			} else {
				quick.Allow(t.Context(), "k", 1)
			}
		}
	}
	if n, most := m.limits(), maxIdle+int(idleTime/int64(time.Second))+3; n > most || n < maxIdle {
		t.Errorf("%d limits are registered, want %d to %d", n, maxIdle, most)
	}
	if l := named(t, "quick", quick.rate, m); l.table.Load() != table || quickly < maxIdle/30 {
		t.Errorf("a limit that is used on the quick way, %d times, was dropped", quickly)
	}
	if n := m.Len(); n != m.limits() {
		t.Errorf("%d keys are counted for %d limits of one", n, m.limits())
	}
	for name, want := range map[string]int64{"used": 1, "0": 2, strconv.Itoa(2*maxIdle - 1): 0} {
		if d, _ := named(t, name, day, m).Allow(t.Context(), "k", 0); d.Remaining != want {
			t.Errorf("%s: %d left, want %d", name, d.Remaining, want)
		}
	}
}

// Limits are made again all the time, by the same names, while they are charged,
// and their tables are sometimes dropped: each has the buckets of the one before.
func TestHammerRegistry(t *testing.T) {
	t.Parallel()
	var c clock
	m := NewMemory(&MemoryOptions{Clock: c.now})
	const names, burst = 12, 700
	rate := Rate{1, time.Minute, burst}
	var all [names]atomic.Pointer[Limit]
	var dropped atomic.Int64
	// On a busy machine that takes more rounds: a table can be dropped in the first moments of one, before it is charged.
	end := time.Now().Add(3 * time.Minute)
	for round := 0; round < 3 || dropped.Load() < names && time.Now().Before(end); round++ {
		var got [names]atomic.Int64
		hammer(fewer(200_000), func(i int) bool {
			k := i % names
			l := all[k].Load()
			if l == nil || i%7 == 0 {
				l = named(t, "l"+strconv.Itoa(k), rate, m)
				all[k].Store(l)
			}
			if i%100 == 1 { // as sweep does when the time has come
				m.mu.Lock()
				for id, t := range m.tables {
					if t.retire(m.now(), false) {
						delete(m.tables, id)
						dropped.Add(1)
					}
				}
				m.mu.Unlock()
			}
			if i%1000 == 2 {
				claims := []Claim{{Limit: l, Key: []byte("k"), Cost: 1}}
				if m.Take(context.Background(), claims); claims[0].Decision.Allowed {
					m.Refund(context.Background(), claims)
				}
			}
			d, _ := l.Allow(context.Background(), "k", 1)
			if d.Allowed {
				got[k].Add(1)
			}
			return d.Allowed
		})
		for k := range got {
			d, _ := named(t, "l"+strconv.Itoa(k), rate, m).Allow(t.Context(), "k", 0)
			if n := got[k].Load(); n+d.Remaining != burst {
				t.Errorf("round %d, limit %d: %d were admitted and %d are left of %d", round, k, n, d.Remaining, burst)
			}
		}
		if n := m.Len(); n != names {
			t.Errorf("round %d: %d keys are counted, want %d", round, n, names)
		}
		c.advance(burst * time.Minute)
	}
	if dropped.Load() < names {
		t.Errorf("%d tables were dropped", dropped.Load())
	}
}
