package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Round is one server's turn in one round.
type Round struct {
	CPU       float64 `json:"cpu_us_per_request"` // user + system of the server's process tree
	User      float64 `json:"user_us_per_request"`
	PerSecond float64 `json:"requests_per_second"`
	Requests  int64   `json:"requests"`
	Bytes     float64 `json:"bytes"` // of all answers, also of those that were not read to their end
	Errors    int64   `json:"errors"`
	Steal     float64 `json:"steal_percent"`  // of the cores in use, taken by the hypervisor
	Others    float64 `json:"others_percent"` // of the same, used by processes that have no part in it
	Mean      float64 `json:"mean_us"`
	P50       float64 `json:"p50_us"`
	P99       float64 `json:"p99_us"`
}

// Series is all rounds of one server.
type Series struct {
	Server        string  `json:"server"`
	Base          string  `json:"base,omitempty"`    // the series this one is compared with, if not the first with this one
	Present       string  `json:"present,omitempty"` // the series of the present source, if this one is of another revision
	ResponseBytes int     `json:"response_bytes"`    // the mean, where they differ
	Resident      int64   `json:"resident_bytes"`    // of the server's process tree, after the last round
	Rounds        []Round `json:"rounds"`
}

// Comparison is one table: servers under the same load. The first series is the server the others are rivals of.
type Comparison struct {
	Title       string   `json:"title"`
	Connections int      `json:"connections"`
	Series      []Series `json:"series"`
}

// Median is that of one figure over the rounds.
func (s Series) Median(f func(Round) float64) float64 { return Median(each(s.Rounds, f)) }

// Quartiles are those of one figure over the rounds.
func (s Series) Quartiles(f func(Round) float64) (low, high float64) {
	return Quartiles(each(s.Rounds, f))
}

// Errors is how many requests failed.
func (s Series) Errors() int64 { return s.errors() }

// CPU summarises microseconds per request.
func (s Series) CPU() Summary { return Lowest(each(s.Rounds, func(r Round) float64 { return r.CPU })) }

// CPUQuartiles is the spread of CPU.
func (s Series) CPUQuartiles() (low, high float64) {
	return Quartiles(each(s.Rounds, func(r Round) float64 { return r.CPU }))
}

// PerSecond summarises requests per second.
func (s Series) PerSecond() Summary {
	return Highest(each(s.Rounds, func(r Round) float64 { return r.PerSecond }))
}

func (s Series) user() Summary {
	return Lowest(each(s.Rounds, func(r Round) float64 { return r.User }))
}

func (s Series) worst(f func(Round) float64) string {
	return f1(Highest(each(s.Rounds, f)).Best) + " %"
}

func (s Series) errors() int64 {
	var sum int64
	for _, r := range s.Rounds {
		sum += r.Errors
	}
	return sum
}

// Text writes the table, and that of the ratios.
func (c Comparison) Text(w io.Writer) {
	fmt.Fprintf(w, "%s\nCPU: microseconds of the server's processor time per request, user + system. bytes: one response.\n\n", c.Title)
	var t table
	t.row("server", "CPU best", "CPU median", "quartiles", "user median", "req/s best", "req/s median", "RSS", "bytes", "errors",
		"steal worst", "others worst")
	for _, s := range c.Series {
		cpu, rate := s.CPU(), s.PerSecond()
		t.row(s.Server, f2(cpu.Best), f2(cpu.Median), between(s.CPUQuartiles()), f2(s.user().Median), f0(rate.Best), f0(rate.Median),
			mib(s.Resident), fmt.Sprint(s.ResponseBytes), fmt.Sprint(s.errors()),
			s.worst(func(r Round) float64 { return r.Steal }), s.worst(func(r Round) float64 { return r.Others }))
	}
	t.write(w)
	all := c.Ratios()
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w)
	var ratios table
	ratios.row("ratio", "CPU best", "CPU median", "req/s best", "req/s median")
	for _, r := range all {
		ratios.row(r.Server+" / "+r.Rival, times(r.CPU.Best), times(r.CPU.Median), times(r.PerSecond.Best), times(r.PerSecond.Median))
	}
	ratios.write(w)
}

// Ratio compares a server with one of its rivals. Below 1, CPU is the better; above 1, PerSecond is.
type Ratio struct {
	Server    string  `json:"server"`
	Rival     string  `json:"rival"`
	CPU       Summary `json:"cpu"`
	PerSecond Summary `json:"requests_per_second"`
}

// Ratios compares servers of the present source with those of other revisions. Then it compares the first server with
// each of the others; or, where series have a base, each of those with it.
func (c Comparison) Ratios() []Ratio {
	var revisions, first, based []Ratio
	for i, s := range c.Series {
		present := c.index(s.Present)
		if present >= 0 {
			revisions = append(revisions, ratio(c.Series[present], s))
		}
		if base := c.index(s.Base); base >= 0 {
			based = append(based, ratio(s, c.Series[base]))
		} else if i > 0 && present < 0 {
			first = append(first, ratio(c.Series[0], s))
		}
	}
	if based != nil {
		return append(revisions, based...)
	}
	return append(revisions, first...)
}

// index finds a series by the name of its server; there is none without a name.
func (c Comparison) index(server string) int {
	return slices.IndexFunc(c.Series, func(s Series) bool { return s.Server == server })
}

func ratio(s, rival Series) Ratio {
	return Ratio{s.Server, rival.Server, s.CPU().To(rival.CPU()), s.PerSecond().To(rival.PerSecond())}
}

func f0(v float64) string { return fmt.Sprintf("%.0f", v) }
func f1(v float64) string { return fmt.Sprintf("%.1f", v) }
func f2(v float64) string { return strings.Replace(fmt.Sprintf("%.2f", v), "-0.00", "0.00", 1) }

func between(low, high float64) string { return f2(low) + "-" + f2(high) }

// times writes a ratio; there is none when one side served nothing.
func times(v float64) string {
	if v == 0 {
		return "-"
	}
	return f2(v)
}
