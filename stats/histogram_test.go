package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The bounds are those of schema 2 of Prometheus: 2^(i/4) seconds, and a duration is in
// the first bucket that ends at it or later.
func TestBounds(t *testing.T) {
	t.Parallel()
	before := time.Duration(-1)
	for i := range Buckets - 1 {
		b, ok := Bound(i)
		if want := math.Exp2(float64(Schema(i))/PerOctave) * 1e9; !ok || math.Abs(float64(b)-want) > 1 {
			t.Errorf("bucket %d ends at %v, want %v ns", i, b, want)
		}
		if b <= before {
			t.Errorf("bucket %d ends at %v, the one before at %v", i, b, before)
		}
		for d, want := range map[time.Duration]int{b: i, b + 1: i + 1, before + 1: i} {
			if got := bucket(d); got != want {
				t.Errorf("%v is in bucket %d, want %d", d, got, want)
			}
		}
		before = b
	}
	if d, ok := Bound(Buckets - 1); ok || d != math.MaxInt64 {
		t.Error("the last bucket has a bound")
	}
	if second, _ := Bound(-least); second != time.Second || Schema(-least) != 0 {
		t.Error("a second is not the bound of index 0")
	}
	for d, want := range map[time.Duration]int{0: 0, 1: 0, math.MaxInt64: Buckets - 1, time.Hour: Buckets - 1} {
		if got := bucket(d); got != want {
			t.Errorf("%v is in bucket %d, want %d", d, got, want)
		}
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	var h Histogram
	if h.N() != 0 || h.Mean() != 0 || h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has something")
	}
	h.Observe(-time.Second, 1)
	h.Observe(time.Millisecond, 64)
	h.Observe(time.Hour, 2)
	if h.N() != 67 || h.Sum != 64*time.Millisecond+2*time.Hour || h.Mean() != h.Sum/67 || h.Counts[0] != 1 || h.Counts[Buckets-1] != 2 {
		t.Errorf("%d, %v, %v", h.N(), h.Sum, h.Counts)
	}
	if got := h.Quantile(1); got != 128*time.Second {
		t.Errorf("what is beyond the bounds is %v", got)
	}
}

// A quantile is exact to the width of a bucket.
func TestQuantile(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(math.Exp(r.Float64()*12+7)) + 200 // 1 us to 0.2 s
		all = append(all, d)
		h.Observe(d, 1)
	}
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(math.Ceil(q*float64(len(all)))), 1)-1]
		if got := h.Quantile(q); math.Abs(float64(got)/float64(want)-1) > 0.1 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestMergeSub(t *testing.T) {
	t.Parallel()
	var a, b, sum Histogram
	for i := range 1000 {
		d := time.Duration(i) * time.Microsecond
		to := &a
		if i%3 == 0 {
			to = &b
		}
		to.Observe(d, uint64(i))
		sum.Observe(d, uint64(i))
	}
	merged := a
	if merged.Merge(&b); merged != sum {
		t.Error("merged is not the sum")
	}
	if merged.Sub(&b) != a || merged.Sub(&merged) != (Histogram{}) {
		t.Error("what is subtracted is not what was merged")
	}
}

func TestHistogramJSON(t *testing.T) {
	t.Parallel()
	var h Histogram
	h.Observe(time.Microsecond, 3)
	h.Observe(time.Hour, 1)
	for _, h := range []Histogram{h, {}} {
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		got := Histogram{Sum: 1, Counts: [Buckets]uint64{1}} // to be overwritten
		if err := json.Unmarshal(text, &got); err != nil || got != h {
			t.Errorf("%s: %v, got %v", text, err, got)
		}
		if len(text) > 80 {
			t.Errorf("empty buckets are written: %s", text)
		}
	}
	for _, bad := range []string{`{"counts":{"-1":1}}`, `{"counts":{"122":1}}`, `{"counts":{"x":1}}`, `{"counts":[1]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), new(Histogram)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestObserveAllocates(t *testing.T) {
	var h, o Histogram
	if n := testing.AllocsPerRun(100, func() {
		h.Observe(time.Millisecond, 1)
		o.Merge(&h)
		h.Quantile(0.99)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	counts := []Count{{"a", 1}, {"b", 2}}
	if Get(counts, "b") != 2 || Get(counts, "c") != 0 || Get(nil, "a") != 0 {
		t.Error("wrong counts")
	}
}

func TestWayNames(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for w := range Ways {
		seen[w.String()] = true
	}
	if len(seen) != int(Ways) || seen["unknown"] || Ways.String() != "unknown" {
		t.Errorf("%v", seen)
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for i := range b.N {
		h.Observe(time.Duration(i)<<10, 1)
	}
}
