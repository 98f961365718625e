package ratelimit

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct/wire"
)

// quickMemory is a Memory whose quick way uses c as its clock.
func quickMemory(c *clock, keys int) *Memory {
	m := NewMemory(&MemoryOptions{MaxKeys: keys, Clock: c.now})
	m.directs = true
	return m
}

// quickly does what serveOne does for a request that arrived some time ago.
func quickly(m *Memory, l *Limit, key string, came time.Duration) (d Decision, at int64) {
	if ahead, at, ok := m.admit(l, hashString(l, key), came); ok {
		return Decision{Allowed: true, Remaining: (l.window - ahead) / l.interval}, at
	}
	return m.take(l, hashString(l, key), 1)
}

// The quick way, with old times, concurrently with the general one, refunds and
// peeks: no token is lost or added.
func TestHammerQuickWithAll(t *testing.T) {
	t.Parallel()
	var c clock
	c.advance(time.Hour)
	m := quickMemory(&c, 0)
	const keys, burst = 3, 20000
	l := mustLimit(t, "1/m burst "+strconv.Itoa(burst), m)
	var got [keys]atomic.Int64
	var quick atomic.Int64
	hammer(2*keys*burst, func(i int) bool {
		k := i % keys
		key := strconv.Itoa(k)
		switch {
		case i%1000 == 1:
			l.Allow(context.Background(), key, 0)
		case i%1000 == 2:
			claims := [1]Claim{{Limit: l, Key: []byte(key), Cost: 1}}
			if m.Take(context.Background(), claims[:]); claims[0].Decision.Allowed {
				m.Refund(context.Background(), claims[:])
			}
		}
		if _, _, ok := m.admit(l, hashString(l, key), c.now()-time.Duration(rand.IntN(int(time.Second)))); ok {
			quick.Add(1)
			got[k].Add(1)
		}
		d, _ := quickly(m, l, key, c.now()-time.Duration(rand.IntN(int(time.Second))))
		if d.Allowed {
			got[k].Add(1)
		}
		return d.Allowed
	})
	for k := range got {
		d, _ := l.Allow(context.Background(), strconv.Itoa(k), 0)
		if n := got[k].Load(); n+d.Remaining != burst {
			t.Errorf("key %d: %d were admitted and %d are left of %d", k, n, d.Remaining, burst)
		}
	}
	if quick.Load() == 0 {
		t.Error("no request went the quick way")
	}
}

// Few buckets, which change keys all the time, and a clock that moves while earlier
// requests are admitted: no key gets more tokens than were added.
func TestHammerQuickTurnover(t *testing.T) {
	t.Parallel()
	const keys, old = 2000, 5 * time.Second
	var c clock
	c.advance(time.Hour)
	m := quickMemory(&c, 0)
	l := mustLimit(t, "1/s burst 2", m)
	begin := int64(c.now())
	var admitted [keys]atomic.Int64
	hammer(fewer(400_000), func(i int) bool {
		c.advance(50 * time.Microsecond)
		k := rand.IntN(keys)
		d, at := quickly(m, l, strconv.Itoa(k), c.now()-time.Duration(rand.Int64N(int64(old))))
		switch {
		case d.Allowed && i%5 == 0:
			m.giveBack(l, hashString(l, strconv.Itoa(k)), 1, at)
		case d.Allowed:
			admitted[k].Add(1)
		}
		return d.Allowed
	})
	// The first may have come before begin.
	most := 2 + (int64(c.now())-begin+int64(old))/l.interval
	for k := range admitted {
		if n := admitted[k].Load(); n > most {
			t.Errorf("key %d: %d were admitted, at most %d could be", k, n, most)
		}
	}
}

// A full table, with the quick way: no key gets more than all buckets have.
func TestHammerQuickFull(t *testing.T) {
	t.Parallel()
	var c clock
	c.advance(time.Hour)
	m := quickMemory(&c, 100)
	l := mustLimit(t, "1/h burst 3", m)
	got := hammer(fewer(100_000), func(i int) bool {
		d, _ := quickly(m, l, strconv.Itoa(i%5000), c.now()-time.Duration(rand.IntN(int(time.Second))))
		return d.Allowed
	})
	if most := 3 * stripeCount * m.share.Load(); got > most {
		t.Errorf("%d were admitted by %d buckets of 3", got, most/3)
	}
}

// Loops with different old times, by the real clock.
func TestHammerQuickRealClock(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	l := mustLimit(t, "100000/s burst 1000", m)
	const old = 3 * time.Millisecond
	before := m.now()
	got := hammer(fewer(400_000), func(i int) bool {
		d, _ := quickly(m, l, "k", wire.Clock()-time.Duration(i%16)*old/16)
		return d.Allowed
	})
	if most := 1000 + (m.now()-before+int64(old))/l.interval; got > most || got < 1000 {
		t.Errorf("%d were admitted, at most %d could be", got, most)
	}
}

// While the clock stands still every admitted request has a Remaining of its own, from
// one less than the bucket holds down to 0: it is exact under contention, on the
// quick way and the general one.
func TestHammerRemaining(t *testing.T) {
	t.Parallel()
	const burst = 20000
	var c clock
	c.advance(time.Hour)
	m := quickMemory(&c, 0)
	l := mustLimit(t, "1/m burst "+strconv.Itoa(burst), m)
	var seen [burst]atomic.Int64
	hammer(2*burst, func(i int) bool {
		var d Decision
		switch i % 3 {
		case 0:
			l.Allow(context.Background(), "k", 0)
			d, _ = quickly(m, l, "k", c.now())
		case 1:
			d, _ = quickly(m, l, "k", c.now())
		default:
			d, _ = l.Allow(context.Background(), "k", 1)
		}
		if d.Allowed {
			seen[d.Remaining].Add(1)
		}
		return d.Allowed
	})
	for r := range seen {
		if n := seen[r].Load(); n != 1 {
			t.Fatalf("%d requests have %d of %d remaining, want 1", n, r, burst)
		}
	}
}

// A request that is admitted by an old time has no more Remaining than there is: at
// most n-r of them have r or more of n remaining.
func TestHammerRemainingOldTimes(t *testing.T) {
	t.Parallel()
	const burst = 20000
	var c clock
	c.advance(time.Hour)
	m := quickMemory(&c, 0)
	l := mustLimit(t, "1/m burst "+strconv.Itoa(burst), m)
	var seen [burst]atomic.Int64
	hammer(2*burst, func(int) bool {
		d, _ := quickly(m, l, "k", c.now()-time.Duration(rand.IntN(int(time.Second))))
		if d.Allowed {
			seen[d.Remaining].Add(1)
		}
		return d.Allowed
	})
	n := int64(0)
	for r := burst - 1; r >= 0; r-- {
		if n += seen[r].Load(); n > int64(burst-r) {
			t.Fatalf("%d requests have %d or more of %d remaining", n, r, burst)
		}
	}
	if n != burst {
		t.Errorf("%d were admitted of %d", n, burst)
	}
}

// Remaining stays exact after a charge has lost a race, for every goroutine.
func TestRemainingAfterALostRace(t *testing.T) {
	t.Parallel()
	const burst = 10000
	var c clock
	var during func()
	m := NewMemory(&MemoryOptions{Clock: func() time.Duration {
		if f := during; f != nil {
			during = nil
			f()
		}
		return c.now()
	}})
	l := mustLimit(t, "1/m burst "+strconv.Itoa(burst), m)
	left := int64(burst)
	charge := func() {
		d, _ := l.Allow(context.Background(), "k", 1)
		if left--; d.Remaining != left { // one during this charge came first
			t.Errorf("%d of %d remaining, want %d", d.Remaining, burst, left)
		}
	}
	charge()
	// The goroutines all exist at once, each with its stack.
	turn, done := make(chan struct{}), make(chan struct{})
	for range 32 {
		go func() {
			<-turn
			charge()
			done <- struct{}{}
		}()
	}
	for range 32 {
		during = charge // the clock is read between the bucket's reading and its charge
		turn <- struct{}{}
		<-done
	}
}
