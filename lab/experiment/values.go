package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/report"
)

// Values are the figures of a run by name, such as "chert/64/rate". Missing ones were not measured.
type Values map[string]float64

// Suffixes of the names that series sets.
const (
	rate = "/rate" // requests per second
	mean = "/mean" // latency, ms
	p50  = "/p50"  // latency, ms
	p99  = "/p99"  // latency, ms
	cpu  = "/cpu"  // microseconds of processor time per request
	user = "/user" // the part of that outside the kernel
)

// series sets the medians over the rounds of a server.
func (v Values) series(name string, s report.Series) {
	v[name+rate] = s.Median(func(r report.Round) float64 { return r.PerSecond })
	v[name+mean] = s.Median(func(r report.Round) float64 { return r.Mean / 1000 })
	v[name+p50] = s.Median(func(r report.Round) float64 { return r.P50 / 1000 })
	v[name+p99] = s.Median(func(r report.Round) float64 { return r.P99 / 1000 })
	v[name+cpu] = s.Median(func(r report.Round) float64 { return r.CPU })
	v[name+user] = s.Median(func(r report.Round) float64 { return r.User })
}

// has reports whether all of the names were measured.
func (v Values) has(names ...string) bool {
	for _, name := range names {
		if _, ok := v[name]; !ok {
			return false
		}
	}
	return true
}

// ratio is a by b; NaN if either is missing, or b is 0.
func (v Values) ratio(a, b string) float64 {
	if !v.has(a, b) || v[b] == 0 {
		return math.NaN()
	}
	return v[a] / v[b]
}

// fill replaces each {name} in a text by its value, and {a:b} by the ratio of two. What is missing becomes a dash.
func (v Values) fill(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return b.String() + "{" + rest
		}
		x, ok := v[name]
		if over, under, isRatio := strings.Cut(name, ":"); isRatio {
			x = v.ratio(over, under)
			ok = !math.IsNaN(x)
		}
		if ok {
			b.WriteString(number(x))
		} else {
			b.WriteString("–")
		}
		text = after
	}
}

// number has three digits, or all before the point in groups of three.
func number(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "–"
	case x < 0:
		return "-" + number(-x)
	case x == 0:
		return "0"
	case x < 1:
		return strconv.FormatFloat(x, 'g', 3, 64)
	case x < 100:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.*f", 2-int(math.Log10(x)), x), "0"), ".")
	}
	digits := strconv.FormatFloat(x, 'f', 0, 64)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
