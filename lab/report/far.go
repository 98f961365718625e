package report

import (
	"fmt"
	"io"
)

// FarSeries is the rate of one server's uploads, in MiB a second, for each round.
type FarSeries struct {
	Server string    `json:"server"`
	Rates  []float64 `json:"mib_per_second"`
}

// Far is one table: uploads over a link with a delay. The first server is compared with the others.
type Far struct {
	Title  string      `json:"title"`
	Series []FarSeries `json:"series"`
}

// Text writes the table.
func (f Far) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nMiB/s: of one upload. ratio: the first server's by this one's in the same round, median.\n\n", f.Title)
	var t table
	t.row("server", "MiB/s best", "MiB/s median", "quartiles", "ratio")
	for _, s := range f.Series {
		ratios := make([]float64, len(s.Rates))
		for i, rate := range s.Rates {
			ratios[i] = quotient(f.Series[0].Rates[i], rate)
		}
		low, high := Quartiles(s.Rates)
		t.row(s.Server, f1(Highest(s.Rates).Best), f1(Median(s.Rates)), between(low, high), f2(Median(ratios)))
	}
	t.write(w)
}
