package report

import (
	"fmt"
	"io"
)

// ReadersRound is one server's turn with a fast download, first alone and then beside slow ones. Rates are MiB a second,
// times are milliseconds, of one file from the request to its end.
type ReadersRound struct {
	Alone     float64 `json:"alone_mib_per_second"`
	AloneP99  float64 `json:"alone_p99_ms"`
	Beside    float64 `json:"beside_mib_per_second"`
	BesideP99 float64 `json:"beside_p99_ms"`
	BesideMax float64 `json:"beside_max_ms"`
	Slow      float64 `json:"slow_mib_per_second"` // over all slow readers
	Before    int64   `json:"resident_before_bytes"`
	Most      int64   `json:"resident_most_bytes"`
	Errors    int64   `json:"errors"`
	Steal     float64 `json:"steal_percent"`
	Others    float64 `json:"others_percent"`
}

// ReadersSeries is all rounds of one server.
type ReadersSeries struct {
	Server string         `json:"server"`
	Rounds []ReadersRound `json:"rounds"`
}

// Readers is one table: a fast download alone and beside slow ones, on several servers.
type Readers struct {
	Title  string          `json:"title"`
	Series []ReadersSeries `json:"series"`
}

// Kept is how much of its rate the fast download keeps beside the slow ones: the median over the rounds of each round's
// ratio, and its quartiles.
func (s ReadersSeries) Kept() (median, low, high float64) {
	values := each(s.Rounds, func(r ReadersRound) float64 { return quotient(r.Beside, r.Alone) })
	low, high = Quartiles(values)
	return Median(values), low, high
}

// Text writes the table.
func (t Readers) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nalone, beside: MiB per second of the fast download, and milliseconds of one, without and with the slow ones. Medians of the rounds.\n\n", t.Title)
	var rows table
	rows.row("server", "alone MiB/s", "beside MiB/s", "kept", "quartiles", "alone p99", "beside p99", "beside max", "slow MiB/s",
		"RSS before", "RSS most", "errors", "steal worst", "others worst")
	for _, s := range t.Series {
		middle := func(f func(ReadersRound) float64) float64 { return Median(each(s.Rounds, f)) }
		most := func(f func(ReadersRound) float64) float64 { return Highest(each(s.Rounds, f)).Best }
		var errors int64
		for _, r := range s.Rounds {
			errors += r.Errors
		}
		kept, low, high := s.Kept()
		rows.row(s.Server,
			f0(middle(func(r ReadersRound) float64 { return r.Alone })), f0(middle(func(r ReadersRound) float64 { return r.Beside })),
			f2(kept), between(low, high),
			f2(middle(func(r ReadersRound) float64 { return r.AloneP99 })), f2(middle(func(r ReadersRound) float64 { return r.BesideP99 })),
			f2(middle(func(r ReadersRound) float64 { return r.BesideMax })), f1(middle(func(r ReadersRound) float64 { return r.Slow })),
			mib(int64(middle(func(r ReadersRound) float64 { return float64(r.Before) }))),
			mib(int64(most(func(r ReadersRound) float64 { return float64(r.Most) }))),
			fmt.Sprint(errors),
			f1(most(func(r ReadersRound) float64 { return r.Steal }))+" %", f1(most(func(r ReadersRound) float64 { return r.Others }))+" %")
	}
	rows.write(w)
}
