package report

import (
	"fmt"
	"io"
	"slices"
)

// BesideRound is one server's turn with fast requests, first alone and then beside slow ones. Times are milliseconds.
type BesideRound struct {
	AloneP50   float64 `json:"alone_p50_ms"`
	AloneP99   float64 `json:"alone_p99_ms"`
	ApartP99   float64 `json:"apart_p99_ms,omitempty"` // while the slow ones are streams of another connection
	BesideP50  float64 `json:"beside_p50_ms"`
	BesideP99  float64 `json:"beside_p99_ms"`
	BesideMax  float64 `json:"beside_max_ms"`
	FastBefore float64 `json:"fast_alone_per_second"`
	Fast       float64 `json:"fast_beside_per_second"`
	Slow       float64 `json:"slow_per_second"`
	Errors     int64   `json:"errors"`
	Steal      float64 `json:"steal_percent"`
	Others     float64 `json:"others_percent"`
}

// BesideSeries is all rounds of one server.
type BesideSeries struct {
	Server string        `json:"server"`
	Rounds []BesideRound `json:"rounds"`
}

// Beside is one table: fast requests alone and beside slow ones, on several servers.
type Beside struct {
	Title  string         `json:"title"`
	Slow   string         `json:"slow"` // what the slow requests do
	Series []BesideSeries `json:"series"`
}

// P99 is the median over the rounds of the fast requests' 99th percentile beside the slow ones, and its quartiles.
func (s BesideSeries) P99() (median, low, high float64) {
	values := each(s.Rounds, func(r BesideRound) float64 { return r.BesideP99 })
	low, high = Quartiles(values)
	return Median(values), low, high
}

// Text writes the table.
func (b Beside) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nalone, beside: milliseconds of a fast request, without and with the slow ones. Medians of the rounds.\n\n", b.Title)
	var t table
	head := []string{"server", "alone p50", "alone p99", "beside p50", "beside p99", "p99 quartiles", "beside max", "fast req/s", "slow req/s",
		"errors", "steal worst", "others worst"}
	apart := slices.ContainsFunc(b.Series, func(s BesideSeries) bool { return len(s.Rounds) > 0 && s.Rounds[0].ApartP99 > 0 })
	if apart {
		head = slices.Insert(head, 3, "apart p99")
	}
	t.row(head...)
	for _, s := range b.Series {
		middle := func(f func(BesideRound) float64) float64 { return Median(each(s.Rounds, f)) }
		worst := func(f func(BesideRound) float64) float64 { return Highest(each(s.Rounds, f)).Best }
		var errors int64
		for _, r := range s.Rounds {
			errors += r.Errors
		}
		p99, low, high := s.P99()
		row := []string{s.Server,
			f2(middle(func(r BesideRound) float64 { return r.AloneP50 })), f2(middle(func(r BesideRound) float64 { return r.AloneP99 })),
			f2(middle(func(r BesideRound) float64 { return r.BesideP50 })), f2(p99), between(low, high),
			f2(middle(func(r BesideRound) float64 { return r.BesideMax })),
			f0(middle(func(r BesideRound) float64 { return r.Fast })), f0(middle(func(r BesideRound) float64 { return r.Slow })),
			fmt.Sprint(errors),
			f1(worst(func(r BesideRound) float64 { return r.Steal })) + " %", f1(worst(func(r BesideRound) float64 { return r.Others })) + " %"}
		if apart {
			row = slices.Insert(row, 3, f2(middle(func(r BesideRound) float64 { return r.ApartP99 })))
		}
		t.row(row...)
	}
	t.write(w)
}
