package bridge

import (
	"testing"
	"time"
)

// A Budget has a burst, grows with time up to that, and asks for the time only when it is used up.
func TestBudget(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	now, asked := 10*second, 0
	clock := func() int64 { asked++; return now }
	var b Budget
	b.Init(10, 4, now)
	spend := func(n int32, want bool) {
		t.Helper()
		if got := b.Spend(n, clock); got != want {
			t.Errorf("spending %d: %v", n, got)
		}
	}
	spend(6, true)
	spend(4, true)
	if asked > 0 {
		t.Error("it has asked for the time")
	}
	now += second / 2
	spend(2, true)
	b.Refund(3)
	spend(3, true)
	b.Refund(100)
	spend(10, true)
	now += 365 * 24 * 3600 * second // no more than the burst
	spend(10, true)
	spend(1, false)
	b.Init(1, 0, now)
	spend(1, true)
	now += 1000 * second
	spend(1, false)
}
