package report

import (
	"fmt"
	"io"
)

// PagesSeries is how long pages took from one server over one version of HTTP, in milliseconds: each round one over new
// connections, then one over the same.
type PagesSeries struct {
	Server string    `json:"server"`
	HTTP   int       `json:"http"`
	New    []float64 `json:"new_ms"`
	Warm   []float64 `json:"warm_ms"`
}

// Pages is one table: pages over a path with a delay and losses. The others are compared with the first series.
type Pages struct {
	Title   string        `json:"title"`
	Packets string        `json:"packets"` // what has become of them
	Series  []PagesSeries `json:"series"`
}

// Text writes the table.
func (p Pages) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\nMilliseconds until a page was complete, median and 90th percentile, over new connections, "+
		"with their opening, and then over the same.\nratio: to the first line's in the same round, median.\n\n",
		p.Title, p.Packets)
	var t table
	t.row("server", "new median", "new p90", "ratio", "warm median", "warm p90", "ratio")
	for _, s := range p.Series {
		row := []string{fmt.Sprintf("%s, HTTP/%d", s.Server, s.HTTP)}
		for _, side := range [][2][]float64{{s.New, p.Series[0].New}, {s.Warm, p.Series[0].Warm}} {
			ratios := make([]float64, len(side[0]))
			for i, took := range side[0] {
				ratios[i] = quotient(took, side[1][i])
			}
			row = append(row, f0(Median(side[0])), f0(Percentile(side[0], 0.9)), f2(Median(ratios)))
		}
		t.row(row...)
	}
	t.write(w)
}
