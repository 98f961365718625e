package ratelimit

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// With loans in any lanes every decision is the model's still. What is told to
// be left is never too much, and exact to who only looks.
func TestModelWithLoans(t *testing.T) {
	t.Parallel()
	var gave, spentSome atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		var c clock
		store := NewMemory(&MemoryOptions{Clock: c.now})
		rate := Rate{
			Count: rapid.Int64Range(1, 1000).Draw(t, "count"),
			Per:   time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "per")),
			Burst: rapid.Int64Range(600, 3000).Draw(t, "burst"),
		}
		l, err := NewLimit("l", rate, store)
		if err != nil {
			t.Fatal(err)
		}
		other, err := NewLimit("other", rate, store)
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(l, int64(c.now()))
		const key = "k"
		hash := clean(hashString(l, key))
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2:
				// Its own lane is where the next decision spends.
				lane := ownLane()
				if rapid.Bool().Draw(t, "elsewhere") {
					lane = rapid.IntRange(0, lanes-1).Draw(t, "lane")
				}
				if store.loans.lend(lane, l.space, l, hash) {
					gave.Add(1)
				}
			case 3:
				c.advance(time.Duration(rapid.Int64Range(0, 2*l.window).Draw(t, "long")))
			case 4:
				c.advance(time.Duration(rapid.Int64Range(0, 3*l.interval).Draw(t, "wait")))
			case 5:
				d, _ := l.Allow(context.Background(), key, 0)
				m.take(int64(c.now()), 0)
				if d.Remaining != m.tokens() || d.Reset != time.Duration(m.window-m.level) {
					t.Fatalf("look gives %+v, want %d left", d, m.tokens())
				}
			case 6:
				claims := []Claim{{Limit: l, Key: []byte(key), Cost: rapid.Int64Range(1, 20).Draw(t, "refunded")}}
				if store.Take(context.Background(), claims); claims[0].Decision.Allowed {
					store.Refund(context.Background(), claims)
				}
				m.take(int64(c.now()), 0)
			case 7: // of two, of which one refuses
				claims := []Claim{{Limit: l, Key: []byte(key), Cost: 1}, {Limit: other, Key: []byte("x"), Cost: rate.Burst + 1}}
				store.Take(context.Background(), claims)
				m.take(int64(c.now()), 0)
			default:
				most := rapid.SampledFrom([]int64{1, leastLoan, rate.Burst}).Draw(t, "most")
				cost := rapid.Int64Range(1, most).Draw(t, "cost")
				before := store.loans.sum(l.space, hash)
				d, _ := l.Allow(context.Background(), key, cost)
				if want := m.take(int64(c.now()), cost); d.Allowed != want || d.Remaining > m.tokens() || !want && d.Remaining != m.tokens() {
					t.Fatalf("got %+v, want %v with %d left", d, want, m.tokens())
				}
				if d.Allowed && store.loans.sum(l.space, hash) < before {
					spentSome.Add(1)
				}
			}
		}
		d, _ := l.Allow(context.Background(), key, 0)
		if m.take(int64(c.now()), 0); d.Remaining != m.tokens() || store.loans.out.Load() != 0 {
			t.Fatalf("got %+v, want %d left; %d loans", d, m.tokens(), store.loans.out.Load())
		}
	})
	if gave.Load() == 0 || spentSome.Load() == 0 {
		t.Errorf("%d loans were given and %d spent from: nothing was tested", gave.Load(), spentSome.Load())
	}
}

// Loans are given, spent, settled by lookers and refunds, and pushed out of their
// lanes by other keys, all at once: not a token is lost or made.
func TestHammerLoans(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	const keys, burst = 3, 20000
	l := mustLimit(t, "1/m burst "+strconv.Itoa(burst), store)
	var got [keys]atomic.Int64
	var given atomic.Int64
	hammer(2*keys*burst, func(i int) bool {
		key := strconv.Itoa(i % keys)
		switch {
		case i%1000 == 1:
			l.Allow(context.Background(), key, 0)
		case i%1000 == 2:
			claims := [1]Claim{{Limit: l, Key: []byte(key), Cost: 1}}
			if store.Take(context.Background(), claims[:]); claims[0].Decision.Allowed {
				store.Refund(context.Background(), claims[:])
			}
		case i%100 == 3: // races are rare on one processor
			if store.loans.lend(i/100%lanes, l.space, l, clean(hashString(l, key))) {
				given.Add(1)
			}
		}
		d, _ := l.Allow(context.Background(), key, 1)
		if d.Allowed {
			got[i%keys].Add(1)
		}
		return d.Allowed
	})
	for k := range got {
		d, _ := l.Allow(context.Background(), strconv.Itoa(k), 0)
		if n := got[k].Load(); n+d.Remaining != burst {
			t.Errorf("key %d: %d were admitted and %d are left of %d", k, n, d.Remaining, burst)
		}
	}
	if given.Load() < 100 {
		t.Errorf("%d loans were given", given.Load())
	}
}

// The clock runs through the ends of loans while they are spent: nobody gets more
// than came, and at the end all that came has been had.
func TestHammerLoansEnd(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1000000/s burst 5000", store)
	hash := clean(hashString(l, "k"))
	begin := int64(c.now())
	got := hammer(fewer(400_000), func(i int) bool {
		if i%16 == 0 {
			c.advance(12 * time.Microsecond) // slower than they ask: the bucket is emptied slowly
		}
		if i%64 == 5 {
			store.loans.lend(i/64%lanes, l.space, l, hash)
		}
		d, _ := l.Allow(context.Background(), "k", 1)
		return d.Allowed
	})
	d, _ := l.Allow(context.Background(), "k", 0)
	came := 5000 + (int64(c.now())-begin)/l.interval
	// A full bucket takes no more: at the start, and while an asker holds up a charge.
	if got+d.Remaining > came || d.Remaining < 0 {
		t.Errorf("%d were admitted and %d are left, %d came", got, d.Remaining, came)
	}
}
