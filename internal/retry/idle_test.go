package retry

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAnnounced(t *testing.T) {
	t.Parallel()
	l := NewIdleLimit(0)
	want := func(d time.Duration) {
		t.Helper()
		if got := l.Limit(0); got != d {
			t.Errorf("%v, want %v", got, d)
		}
	}
	want(60 * time.Second)
	l.Announced(5 * time.Second)
	want(4 * time.Second)
	l.Announced(10 * time.Second) // another configuration
	want(8 * time.Second)
	l.Announced(time.Hour)
	want(48 * time.Second)
	l.Announced(0)
	want(40 * time.Millisecond)
	l.Announced(-1)
	want(40 * time.Millisecond)
	if l := NewIdleLimit(time.Millisecond); l.Limit(0) != 50*time.Millisecond {
		t.Errorf("%v", l.Limit(0))
	}
	if l := NewIdleLimit(1 << 62); l.Limit(0) != 24*time.Hour {
		t.Errorf("%v", l.Limit(0))
	}
	// A server announces more than it keeps: what was seen holds.
	l = NewIdleLimit(0)
	l.Announced(30 * time.Second)
	for i := range int64(3) {
		l.Closed(i*s, 10*s)
	}
	want(8 * time.Second)
	l.Announced(5 * time.Second)
	want(4 * time.Second)
}

func TestReuse(t *testing.T) {
	t.Parallel()
	l := NewIdleLimit(0)
	l.Announced(5 * time.Second)
	for _, tt := range []struct {
		idle  int64
		again bool
		want  bool
	}{
		{0, true, true}, {0, false, true},
		{s - 1, false, true}, {s, false, false}, // "a connection idle for less than a second"
		{s, true, true}, {4*s - 1, true, true}, {4 * s, true, false}, // "reuse stops at 0.8 of it"
	} {
		if got := l.Reuse(0, tt.idle, tt.again); got != tt.want {
			t.Errorf("idle %d, again %v: %v", tt.idle, tt.again, got)
		}
	}
	l.Announced(500 * time.Millisecond)
	if l.Reuse(0, s/2, false) {
		t.Error("a fresh connection is above the limit")
	}
}

// A server that closes at an age is understood soon; one that ends is not mistaken for it.
func TestClosed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		closed [][2]float64 // when, age; seconds
		want   float64
	}{
		{"one after another", [][2]float64{{5, 5}, {6, 5.01}, {7, 5.002}}, 4},
		{"100 ms", [][2]float64{{1, 0.1}, {1.2, 0.101}, {1.4, 0.1}}, 0.08},
		{"two are not enough", [][2]float64{{5, 5}, {6, 5}}, 60},
		{"together", [][2]float64{{5, 5}, {5, 5}, {5.05, 5}, {5.09, 5}}, 60},
		{"a server that ends", [][2]float64{{5, 1}, {5, 2}, {5, 0.1}, {5, 0.11}, {5.001, 4}, {5.001, 4}, {5.2, 20}}, 60},
		{"different ages", [][2]float64{{5, 5}, {6, 1}, {7, 5}, {8, 1}, {9, 5}}, 60},
		{"above what is used anyway", [][2]float64{{70, 65}, {170, 65}, {270, 65}}, 60},
		{"at once after each response", [][2]float64{{1, 0}, {2, 0.001}, {3, 0}, {4, 0.049}}, 60},
		{"shorter later", [][2]float64{{5, 5}, {6, 5}, {7, 5}, {8, 2}, {9, 2}, {10, 2}}, 1.6},
	} {
		l := NewIdleLimit(0)
		last := int64(0)
		for _, c := range tt.closed {
			last = int64(c[0] * float64(s))
			l.Closed(last, int64(c[1]*float64(s)))
		}
		if got, want := l.Limit(last), time.Duration(tt.want*float64(s)); got < want-time.Millisecond*8/10 || got > want {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
}

// It doubles in ten minutes up to its maximum, and one connection brings it back.
func TestRise(t *testing.T) {
	t.Parallel()
	const minute = 60 * s
	l := NewIdleLimit(0)
	for i := range int64(3) {
		l.Closed(i*s, 5*s)
	}
	from := 2 * s
	before := time.Duration(0)
	for now := from; now < from+60*minute; now += s {
		d := l.Limit(now)
		if d < before || d > 60*time.Second {
			t.Fatalf("%v after %v at %d s", d, before, now/s)
		}
		before = d
	}
	for after, want := range map[int64]time.Duration{
		-minute: 4 * time.Second, 0: 4 * time.Second, minute: 4400 * time.Millisecond, 10 * minute: 8 * time.Second, 20 * minute: 16 * time.Second,
		30 * minute: 32 * time.Second, 40 * minute: 48 * time.Second, 1e6 * minute: 48 * time.Second,
	} {
		if d := l.Limit(from + after); d < want-time.Millisecond || d > want {
			t.Errorf("after %d min: %v, want %v", after/minute, d, want)
		}
	}
	l.Closed(from+20*minute, 5*s+s/10)
	if d := l.Limit(from + 20*minute); d != 4*time.Second {
		t.Errorf("%v", d)
	}
	// Servers that end again and again do not wear it down.
	for i := range int64(100) {
		l.Closed(from+20*minute+i*s, 5*s-s/20*(i%10))
	}
	if d := l.Limit(from + 21*minute + 40*s); d < 4*time.Second || d > 4800*time.Millisecond {
		t.Errorf("%v", d)
	}
}

// Against a server that closes at an age: whatever it is, and whatever happens beside, the limit is soon below it, and
// it is never outside of its bounds.
func TestIdleModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.Int64Range(s, 1000*s).Draw(t, "most")
		l := NewIdleLimit(time.Duration(most))
		now := rapid.Int64Range(0, 1<<45).Draw(t, "start")
		for range rapid.IntRange(0, 50).Draw(t, "noise") {
			now += rapid.Int64Range(0, 100*s).Draw(t, "later")
			if rapid.Bool().Draw(t, "closed") {
				l.Closed(now, rapid.Int64Range(0, most*2).Draw(t, "age"))
			} else {
				l.Announced(time.Duration(rapid.Int64Range(-1, most*2).Draw(t, "timeout")))
			}
			if d := int64(l.Limit(now)); d < safe(leastIdle) || d > most {
				t.Fatalf("limit %v of %v", d, most)
			}
		}
		keeps := rapid.Int64Range(2*leastIdle, most).Draw(t, "keeps")
		for range 3 {
			now += s
			l.Closed(now, keeps+rapid.Int64Range(0, keeps/50).Draw(t, "late"))
		}
		if d := int64(l.Limit(now)); d > keeps*9/10 && d != most {
			t.Fatalf("limit %v, the server keeps connections for %v", d, keeps)
		}
	})
}

func TestIdleConcurrent(t *testing.T) {
	t.Parallel()
	l := NewIdleLimit(0)
	var all sync.WaitGroup
	for i := range int64(4) {
		all.Go(func() {
			for k := range int64(1000) {
				now := k * s
				l.Closed(now, (1+i)*s)
				if l.Reuse(now, 61*s, true) {
					t.Error("a connection that is too old")
				}
				l.Announced(time.Duration(i+10) * time.Second)
			}
		})
	}
	all.Wait()
}

func BenchmarkReuse(b *testing.B) {
	l := NewIdleLimit(0)
	for i := range int64(3) {
		l.Closed(i*s, 5*s)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Reuse(100*s, s, true)
	}
}
