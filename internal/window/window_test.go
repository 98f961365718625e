package window

import (
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/chert-http/chert/internal/testing/race"
)

// A Counter has what a list of all events has.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type event struct {
			second int64
			n      uint32
		}
		var c Counter
		var all []event
		newest := map[int64]int64{} // by slot
		now := rapid.Int64Range(0, 1<<40).Draw(t, "start")
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Int64Range(0, second/2), rapid.Int64Range(0, 30*second)).Draw(t, "later")
			at := max(0, now-rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 40*second)).Draw(t, "behind"))
			e := event{at / second, rapid.Uint32Range(1, 100).Draw(t, "n")}
			slot := (e.second + 1) % slots
			last, used := newest[slot]
			counted := c.Add(at, e.n)
			if want := !used || last <= e.second; counted != want {
				t.Fatalf("counted %v, want %v", counted, want)
			}
			if counted {
				if newest[slot] = e.second; rapid.Bool().Draw(t, "revert") {
					c.Take(at, e.n)
				} else {
					all = append(all, e)
				}
			}
			var want uint64
			for _, e := range all {
				if now/second-e.second < Seconds {
					want += uint64(e.n)
				}
			}
			if got := c.Sum(now); got != want {
				t.Fatalf("%d events, want %d", got, want)
			}
		}
		c.Reset()
		if n := c.Sum(now); n != 0 {
			t.Fatalf("%d events after Reset", n)
		}
	})
}

func TestTake(t *testing.T) {
	t.Parallel()
	var c Counter
	c.Take(0, 1) // never added
	c.Add(5*second, 2)
	c.Take(5*second, 3)         // more than there is
	c.Take((5+slots)*second, 1) // another second of the same slot
	if n := c.Sum(5 * second); n != 2 {
		t.Errorf("%d events, want 2", n)
	}
}

// However many events there are, they do not reach the part of a slot that says which second it is.
func TestFull(t *testing.T) {
	t.Parallel()
	var c Counter
	n := 0
	for c.Add(0, 1<<20) {
		n++
	}
	if got := c.Sum(0); n != 1<<11 || got != 1<<31 {
		t.Errorf("%d events after %d times", got, n)
	}
	if !c.Add(second, 1) || c.Sum(second) != 1<<31+1 {
		t.Error("a full second stops the next one")
	}
}

// The number of the second wraps after 136 years, and a time before the clock's start is its start.
func TestWrap(t *testing.T) {
	t.Parallel()
	var c Counter
	const wrap = (1<<32 - 3) * second
	for i := range int64(6) {
		if !c.Add(wrap+i*second, 1) {
			t.Fatalf("second %d was not counted", i)
		}
	}
	if n := c.Sum(wrap + 5*second); n != 6 {
		t.Errorf("%d events, want 6", n)
	}
	c.Reset()
	c.Add(-5*second, 1)
	if n := c.Sum(0); n != 1 {
		t.Errorf("%d events before the start, want 1", n)
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	const each, loops = 5000, 4
	var c Counter
	var all sync.WaitGroup
	for range loops {
		all.Go(func() {
			for i := range int64(each) {
				if c.Add(i*second/1000, 1); i%10 == 0 {
					c.Add(i*second/1000, 1)
					c.Take(i*second/1000, 1)
				}
			}
		})
	}
	all.Wait()
	if n := c.Sum(each * second / 1000); n != each*loops {
		t.Errorf("%d events, want %d", n, each*loops)
	}
}

func TestNoAllocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	var c Counter
	now := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		now += second / 10
		c.Add(now, 1)
		c.Take(now, 1)
		c.Sum(now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	var c Counter
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		c.Add(now, 1)
	}
}

func BenchmarkSum(b *testing.B) {
	var c Counter
	for i := range int64(Seconds) {
		c.Add(i*second, 5)
	}
	b.ReportAllocs()
	for b.Loop() {
		c.Sum(Seconds * second)
	}
}
