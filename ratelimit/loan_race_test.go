package ratelimit

import (
	"context"
	"testing"
	"time"
)

// A loan that is given while a decision is made must not count as left twice: in
// what the decider has read of the bucket before, and in the loan.
func TestLoanGivenDuringDecision(t *testing.T) {
	t.Parallel()
	var c clock
	var during func()
	store := NewMemory(&MemoryOptions{Clock: func() time.Duration {
		if f := during; f != nil {
			during = nil
			f()
		}
		return c.now()
	}})
	l := mustLimit(t, "1/m burst 10000", store)
	hash := clean(hashString(l, "k"))
	const taken = 10
	for range taken {
		l.Allow(context.Background(), "k", 1)
	}
	// The clock is read when the bucket has been, and before loans are looked at.
	during = func() {
		for lane := range lanes {
			if !store.loans.lend(lane, l.space, l, hash) {
				t.Errorf("no loan in lane %d", lane)
			}
		}
	}
	d, _ := l.Allow(context.Background(), "k", 1)
	if want := int64(10000 - taken - 1); !d.Allowed || d.Remaining > want {
		t.Errorf("got %+v, but %d are left", d, want)
	}
	if d, _ = l.Allow(context.Background(), "k", 0); d.Remaining != 10000-taken-1 {
		t.Errorf("a look gives %d left, want %d", d.Remaining, 10000-taken-1)
	}
}

// A key that was charged by many and does not come again must not keep others from
// the quick way for ever, nor a limit that is gone in memory.
func TestLoansLeftBehind(t *testing.T) {
	t.Parallel()
	var c clock
	store := NewMemory(&MemoryOptions{Clock: c.now})
	l := mustLimit(t, "1/m burst 10000", store)
	l.Allow(context.Background(), "gone", 1000)
	hash := clean(hashString(l, "gone"))
	for lane := range lanes {
		if !store.loans.lend(lane, l.space, l, hash) {
			t.Fatalf("no loan in lane %d", lane)
		}
	}
	c.advance(mostTime)
	l.Allow(context.Background(), "another", 1)
	l.Allow(context.Background(), "another", 1)
	if n := store.loans.out.Load(); n != lanes {
		t.Errorf("%d loans before they end, want %d", n, lanes)
	}
	c.advance(1)
	l.Allow(context.Background(), "another", 1)
	if n := store.loans.out.Load(); n != 0 {
		t.Errorf("%d loans are left behind", n)
	}
	if d, _ := l.Allow(context.Background(), "gone", 0); d.Remaining != 9000 {
		t.Errorf("%d are left, want 9000", d.Remaining)
	}
}
