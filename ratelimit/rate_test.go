package ratelimit

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in    string
		want  Rate
		shown string // "": as in
	}{
		{"100/s", Rate{100, time.Second, 100}, ""},
		{"1000/h burst 50", Rate{1000, time.Hour, 50}, ""},
		{"  5/m   burst  9 ", Rate{5, time.Minute, 9}, "5/m burst 9"},
		{"1/d", Rate{1, 24 * time.Hour, 1}, ""},
		{"90/d", Rate{90, 24 * time.Hour, 90}, ""},
		{"7/ms", Rate{7, time.Millisecond, 7}, ""},
		{"3/second", Rate{3, time.Second, 3}, "3/s"},
		{"3/minute burst 3", Rate{3, time.Minute, 3}, "3/m"},
		{"5/10s", Rate{5, 10 * time.Second, 5}, ""},
		{"5/1m30s", Rate{5, 90 * time.Second, 5}, ""},
		{"10000000/s", Rate{1e7, time.Second, 1e7}, ""},
		{"1/2160h", Rate{1, 90 * 24 * time.Hour, 1}, "1/2160h0m0s"},
		{"7/2160h", Rate{7, 90 * 24 * time.Hour, 7}, "7/2160h0m0s"}, // the interval is no whole number
	} {
		r, err := ParseRate(tt.in)
		if err != nil || r != tt.want {
			t.Errorf("%q: got %v, %v", tt.in, r, err)
			continue
		}
		if tt.shown == "" {
			tt.shown = tt.in
		}
		if r.String() != tt.shown {
			t.Errorf("%q is shown as %q", tt.in, r)
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is read as %v, %v", r, again, err)
		}
	}
}

func TestParseRateErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", "want a rate such as"},
		{"100", "want a rate such as"},
		{"100/s burst", "want a rate such as"},
		{"100/s 50", "want a rate such as"},
		{"100/s burst 5 s", "want a rate such as"},
		{"100 /s", "want a rate such as"},
		{"100/fortnight", `there is no unit "fortnight"; want s, m, h or d`},
		{"100/", `there is no unit ""`},
		{"100/-1s", "there is no unit"},
		{"100/0s", "there is no unit"},
		{"0/s", `"0" is not a whole number from 1 on`},
		{"-1/s", `"-1" is not a whole number`},
		{"+1/s", `"+1" is not a whole number`},
		{"1.5/s", `"1.5" is not a whole number`},
		{"/s", `"" is not a whole number`},
		{"99999999999999999999/s", "is not a whole number"},
		{"1/s burst 0", `burst "0" is not a whole number`},
		{"10000001/s", "more than 10,000,000 a second"},
		{"1/2161h", "90 days"},
		{"1/d burst 91", "90 days"},
		{"1/s burst 9223372036854775807", "90 days"},
	} {
		r, err := ParseRate(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || r != (Rate{}) {
			t.Errorf("%q: got %v, %v, want %q", tt.in, r, err, tt.want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"100/s", "1000/h burst 50", "1/2160h", "7/1ns", "a/b burst c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		if again, err := ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q is %v, which is read as %v, %v", s, r, again, err)
		}
		l, err := NewLimit("x", r, NewMemory(nil))
		if err != nil {
			t.Fatal(err)
		}
		if l.interval < int64(minInterval) || l.window < l.interval || l.window > int64(maxWindow)/100*101 {
			t.Errorf("%q: interval %d, window %d", s, l.interval, l.window)
		}
	})
}

func TestShare(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rate string
		n    int
		want string
	}{
		{"100/s", 1, "100/s"},
		{"100/s", 0, "100/s"},
		{"100/s", 4, "100/4s burst 25"},
		{"100/s burst 2", 4, "100/4s burst 1"},
		{"1/d", 100, "1/2160h0m0s"},
		{"3/d burst 50", 1000, "1/2160h0m0s"},
		{"1/2160h", 4, "1/2160h0m0s"}, // cannot be less
	} {
		if got := mustRate(t, tt.rate).Share(tt.n).String(); got != tt.want {
			t.Errorf("%s of %d: got %s, want %s", tt.rate, tt.n, got, tt.want)
		}
	}
}

func TestNewLimit(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	good := Rate{1, time.Second, 0}
	if l, err := NewLimit("a-b_c.9", good, m); err != nil || l.Name() != "a-b_c.9" || l.Rate().Burst != 1 ||
		l.Interval() != time.Second || l.Window() != time.Second {
		t.Errorf("got %v, %v", l, err)
	}
	for _, tt := range []struct {
		name  string
		rate  Rate
		store Store
	}{
		{"", good, m},
		{"a b", good, m},
		{"a\"", good, m},
		{"{a}", good, m},
		{"\xff", good, m},
		{strings.Repeat("a", 65), good, m},
		{"a", Rate{}, m},
		{"a", Rate{1, -1, 1}, m},
		{"a", Rate{1, time.Second, -1}, m},
		{"a", good, nil},
	} {
		if l, err := NewLimit(tt.name, tt.rate, tt.store); err == nil {
			t.Errorf("%q %v: got %v", tt.name, tt.rate, l)
		}
	}
}

// Extreme rates: nothing overflows, and a bucket holds Burst tokens.
func TestExtremes(t *testing.T) {
	t.Parallel()
	for _, r := range []Rate{
		{1, 24 * time.Hour, 1},
		{1, 24 * time.Hour, 90},
		{1, maxWindow, 1},
		{1, maxWindow/1000 - 1, 1000},
		{10_000_000, time.Second, 1},
		{10_000_000, time.Second, int64(maxWindow / minInterval)},
		{9_999_999, time.Second, int64(maxWindow / minInterval)},
		{math.MaxInt64 / 100, math.MaxInt64, 1},
	} {
		var c clock
		c.ns.Store(math.MaxInt64 - 3*int64(maxWindow)) // after 291 years
		l, err := NewLimit("l", r, NewMemory(&MemoryOptions{Clock: c.now}))
		if err != nil {
			t.Errorf("%+v: %v", r, err)
			continue
		}
		whole, _ := l.Allow(t.Context(), "k", l.rate.Burst)
		one, _ := l.Allow(t.Context(), "k", 1)
		never, _ := l.Allow(t.Context(), "k", math.MaxInt64)
		if !whole.Allowed || whole.Remaining != 0 || one.Allowed || one.RetryAfter != l.Interval() || never.RetryAfter != Never {
			t.Errorf("%+v: got %+v, %+v, %+v", r, whole, one, never)
		}
		c.advance(l.Interval())
		if one, _ = l.Allow(t.Context(), "k", 1); !one.Allowed {
			t.Errorf("%+v: a token has come, got %+v", r, one)
		}
		c.ns.Store(0) // it must not, and if it does no key gets more
		if one, _ = l.Allow(t.Context(), "k", 1); one.Allowed || one.Remaining != 0 {
			t.Errorf("%+v: the clock was set back: got %+v", r, one)
		}
	}
	for _, r := range []Rate{
		{1_000_000_000, time.Second, 1}, {math.MaxInt64, math.MaxInt64, 1}, {1, math.MaxInt64, 1}, {1, time.Second, math.MaxInt64},
		{math.MinInt64, time.Second, 1}, {1, math.MinInt64, 1}, {1, time.Second, math.MinInt64}, {math.MaxInt64, 1, 0},
	} {
		if l, err := NewLimit("l", r, NewMemory(nil)); err == nil {
			t.Errorf("%+v is taken as %v", r, l.rate)
		}
	}
}

// What a Store says of a bucket does not overflow.
func TestDecideOverflow(t *testing.T) {
	t.Parallel()
	l := Must(NewLimit("l", Rate{Count: 10, Per: time.Second}, NewMemory(nil)))
	d := l.Decide(math.MaxInt64, 1)
	if d.Allowed || d.Remaining != 0 || d.RetryAfter != time.Second/10 || d.Reset != time.Second {
		t.Errorf("%+v", d)
	}
}
