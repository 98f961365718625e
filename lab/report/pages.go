package report

import (
	"fmt"
	"io"
)

// PageTime is how long a page took, in milliseconds.
type PageTime struct {
	Page float64 `json:"page_ms"` // until it was complete
	File float64 `json:"file_ms"` // until one of its files was, on average
}

// PagesSeries is the pages from one server over one version of HTTP: each round one over new connections, then one over
// the same.
type PagesSeries struct {
	Server string     `json:"server"`
	HTTP   int        `json:"http"`
	New    []PageTime `json:"new"`
	Warm   []PageTime `json:"warm"`
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
		"with their opening, and then over the same.\nratio: to the first line's in the same round, median. "+
		"file: until one of its files was complete, on average; median.\n\n", p.Title, p.Packets)
	var t table
	t.row("server", "new median", "p90", "ratio", "file", "warm median", "p90", "ratio", "file")
	for _, s := range p.Series {
		row := []string{fmt.Sprintf("%s, HTTP/%d", s.Server, s.HTTP)}
		for _, side := range [][2][]PageTime{{s.New, p.Series[0].New}, {s.Warm, p.Series[0].Warm}} {
			took := each(side[0], func(t PageTime) float64 { return t.Page })
			ratios := make([]float64, len(took))
			for i := range took {
				ratios[i] = quotient(took[i], side[1][i].Page)
			}
			row = append(row, f0(Median(took)), f0(Percentile(took, 0.9)), f2(Median(ratios)),
				f0(Median(each(side[0], func(t PageTime) float64 { return t.File }))))
		}
		t.row(row...)
	}
	t.write(w)
}
