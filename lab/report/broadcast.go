package report

import (
	"fmt"
	"io"
)

// BroadcastRound is one server's turn with events, or messages, for many receivers.
type BroadcastRound struct {
	CPU    float64 `json:"cpu_us_per_event"` // of the server's process tree, for each that one receiver gets
	Rate   float64 `json:"events_per_second"`
	Steal  float64 `json:"steal_percent"`
	Others float64 `json:"others_percent"`
}

// BroadcastSeries is all rounds of one server.
type BroadcastSeries struct {
	Server string           `json:"server"`
	Rounds []BroadcastRound `json:"rounds"`
}

// Broadcast is one table: events, or messages, that many receivers get, on several servers.
type Broadcast struct {
	Title  string            `json:"title"`
	What   string            `json:"what"` // the receivers get: "event"
	Series []BroadcastSeries `json:"series"`
}

// Text writes the table.
func (t Broadcast) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nCPU: microseconds of the server's processor time for each %s that one receiver gets, user + system.\n\n", t.Title, t.What)
	var rows table
	rows.row("server", "CPU best", "CPU median", t.What+"s/s", "steal worst", "others worst")
	for _, s := range t.Series {
		cpu := Lowest(each(s.Rounds, func(r BroadcastRound) float64 { return r.CPU }))
		worst := func(f func(BroadcastRound) float64) string { return f1(Highest(each(s.Rounds, f)).Best) + " %" }
		rows.row(s.Server, f2(cpu.Best), f2(cpu.Median), f0(Median(each(s.Rounds, func(r BroadcastRound) float64 { return r.Rate }))),
			worst(func(r BroadcastRound) float64 { return r.Steal }), worst(func(r BroadcastRound) float64 { return r.Others }))
	}
	rows.write(w)
}
