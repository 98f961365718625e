package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/chert-http/chert/stats"
)

// schema is that of stats.Schema: four buckets for each doubling.
const schema = 2

// zeroThreshold is the bound of the first bucket of stats, which also counts shorter
// durations: in a native histogram it is the zero bucket.
var zeroThreshold = math.Exp2(float64(stats.Schema(0)) / stats.PerOctave)

// classicBuckets returns the buckets of stats whose bounds are nearest to want,
// ascending and without duplicates.
func classicBuckets(want []time.Duration) (all []int) {
	if len(want) == 0 {
		for d := 10 * time.Microsecond; d <= 10*time.Second; d *= 10 {
			want = append(want, d, d*5/2, d*5)
		}
		want = want[:len(want)-2] // 10 s is the last
	}
	for _, d := range want {
		all = append(all, nearest(d))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// nearest returns the bucket whose bound is nearest to d, as a ratio.
func nearest(d time.Duration) int {
	distance := func(i int) float64 {
		b, _ := stats.Bound(i)
		return math.Abs(math.Log(float64(max(d, 1)) / float64(b)))
	}
	best := 0
	for i := 1; i < stats.Buckets-1; i++ {
		if distance(i) < distance(best) {
			best = i
		}
	}
	return best
}

// A histogram is a native one with the buckets of a classic one beside it:
// Prometheus stores those that it is configured for.
type histogram struct {
	prometheus.Metric // native
	classic           []*dto.Bucket
}

// Write implements prometheus.Metric.
func (h *histogram) Write(out *dto.Metric) error {
	if err := h.Metric.Write(out); err != nil {
		return err
	}
	out.Histogram.Bucket = slices.Clone(h.classic) // exemplars append to it
	return nil
}

// newHistogram makes the metric of h. classic are the buckets that it has as a
// classic histogram.
func newHistogram(d *prometheus.Desc, h *stats.Histogram, classic []int, since time.Time,
	labels []string) (prometheus.Metric, error) {
	// A duration beyond the last bound, 128 s, is in the next bucket, which ends at
	// 152 s: a native histogram has none without an end.
	native := make(map[int]int64)
	for i, n := range h.Counts {
		if i > 0 && n > 0 {
			native[stats.Schema(i)] = int64(n)
		}
	}
	sum := float64(uint64(h.Sum)) / 1e9 // never negative: where it wraps, rate sees a counter that was reset
	m, err := prometheus.NewConstNativeHistogram(d, h.N(), sum, native, nil, h.Counts[0], schema,
		zeroThreshold, since, labels...)
	if err != nil {
		return nil, err
	}
	all := &histogram{Metric: m}
	n, next := uint64(0), 0
	for _, b := range classic {
		for ; next <= b; next++ {
			n += h.Counts[next]
		}
		all.classic = append(all.classic, bucketUpTo(b, n))
	}
	return all, nil
}

func bucketUpTo(b int, n uint64) *dto.Bucket {
	bound, _ := stats.Bound(b)
	le := bound.Seconds()
	return &dto.Bucket{UpperBound: &le, CumulativeCount: &n}
}
