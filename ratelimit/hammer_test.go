package ratelimit

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/race"
)

// This file tests many goroutines on one Memory, and has helpers of other tests.

// fewer returns a smaller number with the race detector, which is slow.
func fewer(n int) int {
	if testing.Short() || race.Enabled {
		return n / 20
	}
	return n
}

// alone skips a long test of one goroutine where races are looked for.
func alone(t *testing.T) {
	t.Helper()
	if testing.Short() || race.Enabled {
		t.Skip("long, and nothing in it runs at the same time")
	}
}

// hammer lets 16 goroutines ask for n tokens in all, and counts those they get.
func hammer(n int, ask func(i int) bool) int64 {
	var all sync.WaitGroup
	var next, got atomic.Int64
	for range 16 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				if ask(int(i - 1)) {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	return got.Load()
}

// The clock stands still, then moves during the requests: as many tokens are taken
// as the bucket held and as were added, to one token.
func TestHammerOneKey(t *testing.T) {
	t.Parallel()
	var c clock
	l := mustLimit(t, "1000/s burst 700", NewMemory(&MemoryOptions{Clock: c.now}))
	ask := func(int) bool { d, _ := l.Allow(context.Background(), "k", 1); return d.Allowed }
	if got := hammer(20000, ask); got != 700 {
		t.Errorf("%d were admitted of a full bucket of 700", got)
	}
	const step = 100 * time.Microsecond
	got := hammer(100000, func(i int) bool {
		if i%10 == 0 {
			c.advance(step)
		}
		return ask(i)
	})
	// All are drained at the end: what came has been taken but for the last token.
	got += hammer(1, ask) + hammer(1, ask)
	if want := int64(10000 * step / time.Millisecond); got != want {
		t.Errorf("%d were admitted of %d that came", got, want)
	}
}

// The same with the system's clock.
func TestHammerRealClock(t *testing.T) {
	t.Parallel()
	store := NewMemory(nil)
	l := mustLimit(t, "100000/s burst 100", store)
	before := store.now()
	got := hammer(fewer(100000), func(int) bool { d, _ := l.Allow(context.Background(), "k", 1); return d.Allowed })
	if most := 100 + (store.now()-before)/l.interval; got > most || got < 100 {
		t.Errorf("%d were admitted, at most %d could be", got, most)
	}
}

// A million keys, each used by several goroutines at a time, while the tables are
// rebuilt repeatedly.
func TestHammerManyKeys(t *testing.T) {
	t.Parallel()
	keys := fewer(1_000_000)
	var c clock
	l := mustLimit(t, "1/h burst 2", NewMemory(&MemoryOptions{Clock: c.now}))
	admitted := make([]atomic.Int32, keys)
	hammer(4*keys, func(i int) bool {
		k := i / 4 // four askers for two tokens
		var key [8]byte
		binary.LittleEndian.PutUint64(key[:], uint64(k))
		d, _ := l.Allow(context.Background(), string(key[:]), 1)
		if d.Allowed {
			admitted[k].Add(1)
		}
		return d.Allowed
	})
	for k := range admitted {
		if n := admitted[k].Load(); n != 2 {
			t.Fatalf("key %d: %d were admitted, want 2", k, n)
		}
	}
}

// Keys are added, are forgotten when their buckets are full, and are added again;
// entries change their keys while they are charged.
func TestHammerTurnover(t *testing.T) {
	t.Parallel()
	const keys, rounds = 2000, 10
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/s burst 1", store)
	got := int64(0)
	for range rounds {
		got += hammer(8*keys, func(i int) bool {
			d, _ := l.Allow(context.Background(), strconv.Itoa(i/8), 1)
			return d.Allowed
		})
		c.advance(time.Second)
	}
	if got != keys*rounds {
		t.Errorf("%d were admitted, want %d", got, keys*rounds)
	}
	// The clock moves while they ask, so that entries change hands all the
	// time. No key gets more than came.
	var admitted [keys]atomic.Int64
	begin := int64(c.now())
	hammer(fewer(100000), func(i int) bool {
		c.advance(20 * time.Microsecond)
		k := rand.IntN(keys)
		d, _ := l.Allow(context.Background(), strconv.Itoa(k), 1)
		if d.Allowed {
			admitted[k].Add(1)
		}
		return d.Allowed
	})
	most := 1 + (int64(c.now())-begin)/l.interval
	for k := range admitted {
		if n := admitted[k].Load(); n > most {
			t.Errorf("key %d: %d were admitted, at most %d could be", k, n, most)
		}
	}
}

// Of several limits all are charged or none, whatever the race.
func TestHammerSeveral(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	wide, err := NewLimit("wide", Rate{1, time.Hour, 1000}, store)
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := NewLimit("narrow", Rate{1, time.Hour, 300}, store)
	if err != nil {
		t.Fatal(err)
	}
	got := hammer(20000, func(i int) bool {
		claims := [2]Claim{{Limit: wide, Key: []byte("all"), Cost: 1}, {Limit: narrow, Key: []byte{byte('a' + i%3)}, Cost: 1}}
		if i&1 == 0 {
			claims[0], claims[1] = claims[1], claims[0]
		}
		store.Take(context.Background(), claims[:])
		return allowed(claims[:])
	})
	d, _ := wide.Allow(context.Background(), "all", 0)
	if got != 900 || d.Remaining != 100 {
		t.Errorf("%d were admitted, want 900; %d are left, want 100", got, d.Remaining)
	}
}

// Tokens that were refunded can be taken again, under concurrent use.
func TestHammerRefund(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/h burst 500", store)
	var kept atomic.Int64
	hammer(20000, func(i int) bool {
		claims := [1]Claim{{Limit: l, Key: []byte("k"), Cost: 1}}
		store.Take(context.Background(), claims[:])
		if !claims[0].Decision.Allowed {
			return false
		}
		if i%3 == 0 {
			store.Refund(context.Background(), claims[:])
		} else {
			kept.Add(1)
		}
		return true
	})
	d, _ := l.Allow(context.Background(), "k", 0)
	if kept.Load()+d.Remaining != 500 {
		t.Errorf("%d are kept and %d left of 500", kept.Load(), d.Remaining)
	}
}
