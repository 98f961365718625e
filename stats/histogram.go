package stats

import (
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"strconv"
	"time"
)

const (
	// PerOctave is how many buckets there are for each doubling of the duration:
	// those of schema 2 of Prometheus's native histograms, whose bounds are 2^(i/4)
	// seconds. A quantile is therefore exact to 9 %.
	PerOctave = 4
	// least is the index i of the first bucket's upper bound, 119 ns; the last but one
	// ends at 128 s.
	least = -23 * PerOctave
	most  = 7 * PerOctave
	// Buckets is the number of buckets. The last one has no upper bound.
	Buckets = most - least + 2
)

// bounds are the buckets' upper bounds in nanoseconds, inclusive, and from the first
// one that may hold a duration with so many bits.
var (
	bounds [Buckets]uint64
	from   [65]uint8
)

func init() {
	for i := range bounds {
		bounds[i] = uint64(math.Exp2(float64(least+i)/PerOctave) * 1e9)
	}
	bounds[Buckets-1] = math.MaxUint64
	for n := range from {
		low := uint64(0) // the smallest number of n bits
		if n > 0 {
			low = 1 << (n - 1)
		}
		for bounds[from[n]] < low {
			from[n]++
		}
	}
}

// A Histogram counts durations in buckets whose bounds grow exponentially. The zero
// value is empty. Histograms have the same buckets, so they can be merged. Not safe
// for concurrent use.
type Histogram struct {
	Counts [Buckets]uint64
	// Sum is the sum of all durations. It wraps after 292 years, which 10,000 handlers at
	// a time take 11 days for: uint64(Sum) does after 584, and what Sub returns is right.
	Sum time.Duration
}

// Observe counts a duration n times. Negative durations count as 0.
func (h *Histogram) Observe(d time.Duration, n uint64) {
	d = max(d, 0)
	h.Counts[bucket(d)] += n
	h.Sum += d * time.Duration(n)
}

func bucket(d time.Duration) int {
	i := int(from[bits.Len64(uint64(d))])
	for uint64(d) > bounds[i] {
		i++
	}
	return i
}

// Bound returns the upper bound of bucket i, which is in the bucket, and false for the
// last bucket, which has none.
func Bound(i int) (d time.Duration, ok bool) {
	if i >= Buckets-1 {
		return math.MaxInt64, false
	}
	return time.Duration(bounds[i]), true
}

// Schema returns the index of bucket i in a native histogram of schema 2.
func Schema(i int) int { return least + i }

// Merge adds what o has counted.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
}

// Sub returns what h has counted since it was o.
func (h *Histogram) Sub(o *Histogram) Histogram {
	d := *h
	for i, n := range o.Counts {
		d.Counts[i] -= n
	}
	d.Sum -= o.Sum
	return d
}

// N returns how many durations were counted.
func (h *Histogram) N() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Mean returns the mean, or 0 for none.
func (h *Histogram) Mean() time.Duration {
	n := h.N()
	if n == 0 {
		return 0
	}
	return time.Duration(uint64(h.Sum) / n)
}

// Quantile returns a duration that the fraction q of all does not exceed, from 0 to 1:
// the middle of its bucket. It returns 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	total := h.N()
	if total == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(total))), 1)
	for i, n := range h.Counts {
		if rank > n {
			rank -= n
			continue
		}
		high, ok := Bound(i)
		if !ok {
			high, _ = Bound(i - 1)
			return high
		}
		low := time.Duration(0)
		if i > 0 {
			low, _ = Bound(i - 1)
		}
		return (low + high) / 2
	}
	return 0
}

// sparse is a Histogram in JSON: the buckets that are not empty, by index.
type sparse struct {
	Sum    time.Duration     `json:"sum"`
	Counts map[string]uint64 `json:"counts,omitempty"`
}

// MarshalJSON writes the buckets that are not empty.
func (h Histogram) MarshalJSON() ([]byte, error) {
	s := sparse{Sum: h.Sum}
	for i, n := range h.Counts {
		if n != 0 {
			if s.Counts == nil {
				s.Counts = make(map[string]uint64)
			}
			s.Counts[strconv.Itoa(i)] = n
		}
	}
	return json.Marshal(s)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var s sparse
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*h = Histogram{Sum: s.Sum}
	for k, n := range s.Counts {
		i, err := strconv.Atoi(k)
		if err != nil || i < 0 || i >= Buckets {
			return errors.New("stats: a histogram has no bucket " + strconv.Quote(k))
		}
		h.Counts[i] = n
	}
	return nil
}
