package report

import (
	"fmt"
	"io"
)

// PageRound is a turn without viewers of the live page, and one with them.
type PageRound struct {
	Without, With PageTurn
}

// PageTurn is one of the two.
type PageTurn struct {
	CPU     float64 `json:"cpu_us_per_request"` // of the server's process tree
	Rate    float64 `json:"requests_per_second"`
	Steal   float64 `json:"steal_percent"`
	Others  float64 `json:"others_percent"`
	Events  int     `json:"events"`          // that all viewers have got
	Largest float64 `json:"largest_gap_s"`   // between two events of a viewer, or the turn's begin or end and one
	Bytes   float64 `json:"bytes_per_event"` // on average
}

// cost is what the viewers cost in processor time, as a part of one core at the rate of requests without them.
func (r PageRound) cost() float64 { return (r.With.CPU - r.Without.CPU) * r.Without.Rate / 1e6 }

// Page is the table of the live page under load.
type Page struct {
	Title  string      `json:"title"`
	Rounds []PageRound `json:"rounds"`
}

// Text writes the table.
func (p Page) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nCPU: microseconds of the server's processor time for each request, user + system, the page's included.\n\n", p.Title)
	var t table
	t.row("viewers", "CPU best", "CPU median", "quartiles", "req/s best", "req/s median", "steal worst", "others worst")
	for _, side := range []struct {
		name string
		of   func(PageRound) PageTurn
	}{{"none", func(r PageRound) PageTurn { return r.Without }}, {"watching", func(r PageRound) PageTurn { return r.With }}} {
		values := func(f func(PageTurn) float64) []float64 {
			return each(p.Rounds, func(r PageRound) float64 { return f(side.of(r)) })
		}
		cpu := values(func(t PageTurn) float64 { return t.CPU })
		rate := Highest(values(func(t PageTurn) float64 { return t.Rate }))
		low, high := Quartiles(cpu)
		t.row(side.name, f2(Lowest(cpu).Best), f2(Median(cpu)), between(low, high), f0(rate.Best), f0(rate.Median),
			f1(Highest(values(func(t PageTurn) float64 { return t.Steal })).Best)+" %",
			f1(Highest(values(func(t PageTurn) float64 { return t.Others })).Best)+" %")
	}
	t.write(w)
	costs := each(p.Rounds, PageRound.cost)
	low, high := Quartiles(costs)
	fmt.Fprintf(w, "\ncost of watching: %.2f %% of a core (the median of the differences in each round; half are from %.2f to %.2f %%)\n",
		Median(costs)*100, low*100, high*100)
	gaps := each(p.Rounds, func(r PageRound) float64 { return r.With.Largest })
	fmt.Fprintf(w, "events: %.0f bytes each; at most %.2f s without one, in the middle round %.2f s\n",
		Median(each(p.Rounds, func(r PageRound) float64 { return r.With.Bytes })), Highest(gaps).Best, Median(gaps))
}
