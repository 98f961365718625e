package ratelimit

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// clock is set by tests.
type clock struct{ ns atomic.Int64 }

func (c *clock) now() time.Duration      { return time.Duration(c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// model is a textbook token bucket in exact numbers: tokens are
// counted in units of an interval's nanoseconds.
type model struct {
	interval, window int64
	level            int64 // units in the bucket
	last             int64
}

func newModel(l *Limit, now int64) *model {
	return &model{interval: l.interval, window: l.window, level: l.window, last: now}
}

func (m *model) take(now, cost int64) bool {
	m.level = min(m.window, m.level+now-m.last)
	m.last = now
	if cost > m.window/m.interval || m.level < cost*m.interval {
		return false
	}
	m.level -= cost * m.interval
	return true
}

func (m *model) tokens() int64 { return m.level / m.interval }

// Every decision is the model's, whatever the rates, keys, costs and times; also
// of several limits at once, and with refunds.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		c.ns.Store(rapid.Int64Range(0, 1<<40).Draw(t, "start"))
		store := NewMemory(&MemoryOptions{Clock: c.now})
		limits := make([]*Limit, rapid.IntRange(1, 3).Draw(t, "limits"))
		for i := range limits {
			r := Rate{
				Count: rapid.Int64Range(1, 1000).Draw(t, "count"),
				Per:   time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "per")),
				Burst: rapid.Int64Range(1, 20).Draw(t, "burst"),
			}
			var err error
			if limits[i], err = NewLimit(strconv.Itoa(i), r, store); err != nil {
				t.Fatal(err)
			}
		}
		models := make(map[string]*model)
		of := func(cl *Claim) *model {
			id := cl.Limit.name + " " + string(cl.Key)
			if models[id] == nil {
				models[id] = newModel(cl.Limit, int64(c.now()))
			}
			return models[id]
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			c.advance(time.Duration(rapid.Int64Range(0, 3*limits[0].interval).Draw(t, "wait")))
			claims := make([]Claim, 0, len(limits))
			want := true
			for _, l := range limits[:rapid.IntRange(1, len(limits)).Draw(t, "asked")] {
				key := []byte{byte(rapid.IntRange('a', 'c').Draw(t, "key"))}
				claims = append(claims, Claim{Limit: l, Key: key, Cost: rapid.Int64Range(0, 22).Draw(t, "cost")})
				cl := &claims[len(claims)-1]
				trial := *of(cl)
				want = trial.take(int64(c.now()), cl.Cost) && want
			}
			store.Take(context.Background(), claims)
			if allowed(claims) != want {
				t.Fatalf("got %+v, want %v", claims, want)
			}
			undo := want && rapid.IntRange(0, 4).Draw(t, "refund") == 0
			if undo {
				store.Refund(context.Background(), claims)
			}
			for i := range claims {
				cl := &claims[i]
				m := of(cl)
				if m.take(int64(c.now()), 0); want && !undo {
					m.take(int64(c.now()), cl.Cost)
				}
				if d := cl.Decision; (want || !d.Allowed) && d.Remaining != m.tokens() && !undo {
					t.Fatalf("claim %d: %+v, want %d left", i, d, m.tokens())
				}
				if d, _ := cl.Limit.Allow(context.Background(), string(cl.Key), 0); d.Remaining != m.tokens() || d.Reset != time.Duration(m.window-m.level) {
					t.Fatalf("claim %d: peek gives %+v, want %d left", i, d, m.tokens())
				}
			}
		}
	})
}

func TestDecision(t *testing.T) {
	t.Parallel()
	var c clock
	l := mustLimit(t, "10/s burst 3", NewMemory(&MemoryOptions{Clock: c.now}))
	const tick = 100 * time.Millisecond
	for i, tt := range []struct {
		wait time.Duration
		cost int64
		want Decision
	}{
		{0, 0, Decision{true, false, 3, 3, 0, 0}},
		{0, 1, Decision{true, false, 3, 2, 0, tick}},
		{0, 3, Decision{false, false, 3, 2, tick, tick}},
		{0, 2, Decision{true, false, 3, 0, 0, 3 * tick}},
		{0, 1, Decision{false, false, 3, 0, tick, 3 * tick}},
		{tick / 2, 1, Decision{false, false, 3, 0, tick / 2, 5 * tick / 2}},
		{tick/2 - 1, 1, Decision{false, false, 3, 0, 1, 2*tick + 1}},
		{1, 1, Decision{true, false, 3, 0, 0, 3 * tick}},
		{0, 4, Decision{false, false, 3, 0, Never, 3 * tick}},
		{time.Hour, 4, Decision{false, false, 3, 3, Never, 0}},
		{0, 3, Decision{true, false, 3, 0, 0, 3 * tick}},
	} {
		c.advance(tt.wait)
		if d, err := l.Allow(t.Context(), "k", tt.cost); d != tt.want || err != nil {
			t.Errorf("%d: got %+v, %v, want %+v", i, d, err, tt.want)
		}
	}
	if _, err := l.Allow(t.Context(), "k", -1); err == nil {
		t.Error("a negative cost is taken")
	}
}

// A refund returns only tokens that time has not returned.
func TestRefundIsNotGivenTwice(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/s burst 10", store)
	take := func(cost int64) []Claim {
		claims := []Claim{{Limit: l, Key: []byte("k"), Cost: cost}}
		store.Take(t.Context(), claims)
		return claims
	}
	early := take(4)
	c.advance(3 * time.Second) // three of them are back
	take(2)
	store.Refund(t.Context(), early)
	if d := take(0)[0].Decision; d.Remaining != 8 {
		t.Errorf("%d are left, want 8", d.Remaining)
	}
	c.advance(time.Minute)
	first, second := take(4), take(3)
	store.Refund(t.Context(), first)
	c.advance(3 * time.Second) // all are back
	take(10)
	store.Refund(t.Context(), second)
	if d := take(0)[0].Decision; d.Remaining != 0 {
		t.Errorf("%d are left, want 0", d.Remaining)
	}
	c.advance(time.Minute)
	first, second = take(4), take(3)
	store.Refund(t.Context(), first)
	store.Refund(t.Context(), second)
	if d := take(0)[0].Decision; d.Remaining != 10 {
		t.Errorf("%d are left, want 10", d.Remaining)
	}
	late := take(1)
	c.advance(time.Minute)
	take(10)
	store.Refund(t.Context(), late)
	if d := take(0)[0].Decision; d.Remaining != 0 {
		t.Errorf("%d are left, want 0", d.Remaining)
	}
}

// A flood of keys: memory stays bounded, clients over a limit stay over it, and
// the flood gets no more tokens than the buckets have.
func TestFull(t *testing.T) {
	t.Parallel()
	alone(t)
	var c clock
	const most = 10000
	store := NewMemory(&MemoryOptions{MaxKeys: most, Clock: c.now})
	l := mustLimit(t, "1/h burst 5", store)
	for i := range 1000 {
		l.Allow(t.Context(), "drained"+strconv.Itoa(i), 5)
	}
	got := int64(0)
	const flood = 100000
	for i := range flood {
		if d, _ := l.Allow(t.Context(), "flood"+strconv.Itoa(i), 1); d.Allowed {
			got++
		}
	}
	room := stripeCount * store.share.Load()
	if n := int64(store.Len()); n > room || n < most*9/10 {
		t.Errorf("%d keys are kept, want %d to %d", n, most*9/10, room)
	}
	if got > 5*room {
		t.Errorf("%d were admitted by %d buckets of 5", got, room)
	}
	again := 0
	for i := range 1000 {
		if d, _ := l.Allow(t.Context(), "drained"+strconv.Itoa(i), 1); d.Allowed {
			again++
		}
	}
	if again > 10 {
		t.Errorf("%d of 1000 that were over the limit got a token", again)
	}
	c.advance(5 * time.Hour)
	for i := range 1000 {
		if d, _ := l.Allow(t.Context(), "late"+strconv.Itoa(i), 5); !d.Allowed {
			t.Fatal("full buckets are not forgotten")
		}
	}
}

// A limit has its share of keys also when another limit's keys have used all, and
// the other keeps its own share.
func TestFullOfAnotherLimit(t *testing.T) {
	t.Parallel()
	var c clock
	const most = 4000
	store := NewMemory(&MemoryOptions{MaxKeys: most, Clock: c.now})
	slow, err := NewLimit("slow", mustRate(t, "10/d"), store)
	if err != nil {
		t.Fatal(err)
	}
	quick := mustLimit(t, "10/s", store)
	for i := range 10 * most {
		slow.Allow(t.Context(), strconv.Itoa(i), 10)
	}
	if n := store.Len(); n < most*9/10 {
		t.Fatalf("%d keys: the table is not full", n)
	}
	room := most + 2*stripeCount*int(store.share.Load()) // with so few keys the deviations are most of it
	for range 100 {
		for i := range most / 4 {
			if d, _ := quick.Allow(t.Context(), strconv.Itoa(i), 10); !d.Allowed {
				t.Fatalf("key %d of a limit with few keys: %+v", i, d)
			}
		}
		if c.advance(time.Second); store.Len() > room {
			t.Fatalf("%d keys, want %d at most", store.Len(), room)
		}
	}
	again := 0
	for i := range most / 4 { // those that came first have their buckets
		if d, _ := slow.Allow(t.Context(), strconv.Itoa(i), 1); d.Allowed {
			again++
		}
	}
	if again > 0 {
		t.Errorf("%d of %d that were over the slow limit got a token", again, most/4)
	}
	// A flood of the quick one's keys is bounded too, and takes nothing from the slow one.
	got := int64(0)
	for i := range 100 * most {
		if d, _ := quick.Allow(t.Context(), "flood"+strconv.Itoa(i), 1); d.Allowed {
			got++
		}
	}
	if got > int64(10*room) || store.Len() > room {
		t.Errorf("%d were admitted, want %d at most; %d keys, want %d", got, 10*room, store.Len(), room)
	}
}

// Under a flood of keys that take over each other's buckets no key gets more tokens
// than all buckets together received.
func TestHammerFull(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{MaxKeys: 100, Clock: c.now})
	l := mustLimit(t, "1/h burst 3", store)
	got := hammer(fewer(50000), func(i int) bool {
		d, _ := l.Allow(context.Background(), strconv.Itoa(i%5000), 1)
		return d.Allowed
	})
	if most := 3 * stripeCount * store.share.Load(); got > most {
		t.Errorf("%d were admitted by %d buckets of 3", got, most/3)
	}
}

func TestShrinks(t *testing.T) {
	t.Parallel()
	alone(t)
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/s", store)
	entries := func() (n int) {
		for i := range l.table.Load().stripes {
			n += len(l.table.Load().stripes[i].slots.Load().entries)
		}
		return n
	}
	for i := range 200_000 {
		l.Allow(t.Context(), strconv.Itoa(i), 1)
	}
	large := entries()
	for i := range 1_000_000 { // few at a time
		if i%1000 == 0 {
			c.advance(2 * time.Second)
		}
		l.Allow(t.Context(), "later"+strconv.Itoa(i), 1)
	}
	if small := entries(); small > large/16 {
		t.Errorf("%d entries, of %d before", small, large)
	}
}

func TestMemoryOfAMillion(t *testing.T) {
	alone(t)
	// Not parallel: HeapAlloc is the process's.
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1000/h", store)
	peak := uint64(0)
	var key []byte
	for i := range 1_000_000 {
		key = fmt.Appendf(key[:0], "10.%d.%d.%d", i>>16, i>>8&255, i&255)
		l.Allow(t.Context(), string(key), 1)
		if i&0xffff == 0 {
			peak = max(peak, heap())
		}
	}
	used := heap() - before
	t.Logf("%d keys: %.1f MB, %.1f MB at most", store.Len(), float64(used)/1e6, float64(peak-before)/1e6)
	if used > 100e6 || store.Len() != 1_000_000 {
		t.Errorf("%d keys take %d bytes", store.Len(), used)
	}
	runtime.KeepAlive(store)
}

func TestNoAllocations(t *testing.T) {
	ctx := t.Context()
	store := NewMemory(nil)
	l, refusing := mustLimit(t, "10000000/s", store), mustLimit(t, "1/d", store)
	claims := []Claim{{Limit: l, Key: []byte("k"), Cost: 1}, {Limit: l, Key: []byte("k2"), Cost: 1}}
	key := "192.0.2.1"
	for name, f := range map[string]func(){
		"admitted": func() { l.Allow(ctx, key, 1) },
		"refused":  func() { refusing.Allow(ctx, key, 1) },
		"peek":     func() { l.Allow(ctx, key, 0) },
		"several":  func() { store.Take(ctx, claims); store.Refund(ctx, claims) },
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestMemoryWithoutLimit(t *testing.T) {
	t.Parallel()
	for most, limited := range map[int]bool{1: true, -1: false} {
		m := NewMemory(&MemoryOptions{MaxKeys: most})
		l := Must(NewLimit("a", Rate{1, time.Hour, 10}, m))
		for i := range 100_000 {
			l.Allow(t.Context(), strconv.Itoa(i), 1)
		}
		if n := m.Len(); n == 100_000 == limited {
			t.Errorf("MaxKeys %d: %d keys", most, n)
		}
	}
}
