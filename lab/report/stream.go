package report

import (
	"fmt"
	"io"
)

// StreamRound is one server's turn with large bodies.
type StreamRound struct {
	CPU    float64 `json:"cpu_us_per_mib"` // user + system of the server's process tree
	Rate   float64 `json:"mib_per_second"`
	Reads  float64 `json:"reads_per_mib"` // the handler's, of requests' bodies
	Errors int64   `json:"errors"`
	Steal  float64 `json:"steal_percent"`
	Others float64 `json:"others_percent"`
}

// StreamSeries is all rounds of one server.
type StreamSeries struct {
	Server string        `json:"server"`
	Rounds []StreamRound `json:"rounds"`
}

// Stream is one table: large bodies of one kind on several servers.
type Stream struct {
	Title  string         `json:"title"`
	Kind   string         `json:"kind"`
	Base   string         `json:"base"` // the server that the others are compared with
	Series []StreamSeries `json:"series"`
}

// Ratio is what a server's processor time is to that of the base in the same round: the median over the rounds, and its
// quartiles. They are 0 without a base.
func (t Stream) Ratio(s StreamSeries) (median, low, high float64) {
	var values []float64
	for _, base := range t.Series {
		if base.Server != t.Base {
			continue
		}
		for i := range min(len(s.Rounds), len(base.Rounds)) {
			values = append(values, quotient(s.Rounds[i].CPU, base.Rounds[i].CPU))
		}
	}
	low, high = Quartiles(values)
	return Median(values), low, high
}

// Text writes the table.
func (t Stream) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nCPU: microseconds of the server's processor time per MiB, user + system. ratio: to %s's in the same round, median.\n\n", t.Title, t.Base)
	var rows table
	rows.row("server", "CPU best", "CPU median", "ratio", "quartiles", "reads/MiB", "MiB/s", "errors", "steal worst", "others worst")
	for _, s := range t.Series {
		cpu := Lowest(each(s.Rounds, func(r StreamRound) float64 { return r.CPU }))
		worst := func(f func(StreamRound) float64) string { return f1(Highest(each(s.Rounds, f)).Best) + " %" }
		var errors int64
		for _, r := range s.Rounds {
			errors += r.Errors
		}
		ratio, low, high := t.Ratio(s)
		rows.row(s.Server, f0(cpu.Best), f0(cpu.Median), f2(ratio), between(low, high),
			f1(Median(each(s.Rounds, func(r StreamRound) float64 { return r.Reads }))),
			f0(Median(each(s.Rounds, func(r StreamRound) float64 { return r.Rate }))),
			fmt.Sprint(errors), worst(func(r StreamRound) float64 { return r.Steal }), worst(func(r StreamRound) float64 { return r.Others }))
	}
	rows.write(w)
}
