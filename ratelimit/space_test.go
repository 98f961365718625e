package ratelimit

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// A space that was empty when it was looked at is kept once somebody owes
// something in it: a limit that is made anew has the old one's buckets, and its
// keys are not counted for ever.
func TestSpaceIsKeptForWhoOwes(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	charge := func() Decision {
		l := mustLimit(t, "2/d", m)
		var others []*Limit
		for i := range 20 { // so many that those nobody uses are looked for
			o, err := NewLimit("other"+strconv.Itoa(i), Rate{1, 1e9, 1}, m)
			if err != nil {
				t.Fatal(err)
			}
			others = append(others, o)
		}
		d, _ := l.Allow(context.Background(), "k", 1)
		runtime.KeepAlive(others)
		return d
	}
	for i, want := range []bool{true, true, false} {
		if d := charge(); d.Allowed != want {
			t.Errorf("%d: got %+v, want %v", i, d, want)
		}
		runtime.GC()
		runtime.GC()
	}
	if n := m.Len(); n != 1 {
		t.Errorf("%d keys are counted, want 1", n)
	}
}

// Limits are made anew all the time, by the same names, while they are charged,
// have loans, and are swept: each has the buckets of the one before.
func TestHammerSpaces(t *testing.T) {
	t.Parallel()
	var c clock
	m := NewMemory(&MemoryOptions{Clock: c.now})
	const names, burst = 12, 700
	var got [names]atomic.Int64
	hammer(fewer(200_000), func(i int) bool {
		k := i % names
		l, err := NewLimit("l"+strconv.Itoa(k), Rate{1, time.Minute, burst}, m)
		if err != nil {
			t.Error(err)
			return false
		}
		switch {
		case i%500 == 1:
			m.mu.Lock()
			m.sweep()
			m.mu.Unlock()
		case i%2000 == 2:
			runtime.GC()
		case i%50 == 3:
			m.loans.lend(i/50%lanes, l.space, l, clean(hashString(l, "k")))
		}
		d, _ := l.Allow(context.Background(), "k", 1)
		if d.Allowed {
			got[k].Add(1)
		}
		return d.Allowed
	})
	for k := range got {
		l, err := NewLimit("l"+strconv.Itoa(k), Rate{1, time.Minute, burst}, m)
		if err != nil {
			t.Fatal(err)
		}
		d, _ := l.Allow(context.Background(), "k", 0)
		if n := got[k].Load(); n+d.Remaining != burst {
			t.Errorf("limit %d: %d were admitted and %d are left of %d", k, n, d.Remaining, burst)
		}
	}
	if n := m.Len(); n != names {
		t.Errorf("%d keys are counted, want %d", n, names)
	}
}
