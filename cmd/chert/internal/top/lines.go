package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/stats"
)

// Clean returns text that clients have sent without anything that a terminal would
// interpret.
func Clean(s string) string {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			q := strconv.QuoteToASCII(s)
			return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
		}
	}
	return s
}

// cut returns the beginning of a line of text, in at most n columns.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// style is how a whole line looks.
type style uint8

const (
	normal style = iota
	bold
	head // of a table
	warn
	dim
)

type line struct {
	text  string
	style style
}

// View selects what the lower part shows.
type view uint8

const (
	viewRoutes view = iota
	viewRequests
	viewConnections
	viewUpstreams
	viewSites
	views
)

var viewNames = [views]string{"routes", "requests", "connections", "upstreams", "sites"}

// order is by which column routes are sorted, the highest first.
type order struct {
	key  byte
	name string
	by   func(interval.Route) float64
}

var orders = []order{
	{'t', "time", func(r interval.Route) float64 { return r.Share }},
	{'r', "requests", func(r interval.Route) float64 { return r.Rate }},
	{'l', "latency", func(r interval.Route) float64 { return float64(r.P99) }},
	{'e', "errors", func(r interval.Route) float64 { return r.Errors }},
	{'o', "hand-overs", func(r interval.Route) float64 { return r.Handovers }},
}

// content is what is shown.
type content struct {
	name     string
	report   *interval.Report
	view     view
	asked    view // what the server was asked for beside the report
	order    order
	requests []interval.Running
	conns    []stats.Connection
	at       time.Time // of conns and setup
	setup    admin.Setup
	now, old Upstreams // and those of the update before
}

// summary returns the lines that every form has.
func summary(r *interval.Report) []line {
	var lines []line
	add := func(label, format string, args ...any) {
		lines = append(lines, line{text: fmt.Sprintf("%-12s ", label) + fmt.Sprintf(format, args...)})
	}
	number, short, size := interval.Number, interval.Short, interval.Bytes
	var classes []interval.Rate
	for i, n := range r.Classes {
		if n > 0 {
			name := strconv.Itoa(i) + "xx"
			if i == 0 {
				name = "no response"
			}
			classes = append(classes, interval.Rate{Name: name, N: n})
		}
	}
	if r.Average {
		// One sample has no rates. Their averages since the start would look like what happens now.
		add("requests", "measuring")
		add("handlers", "%d running, %d waiting", r.Running, r.Waiting)
		add("connections", "%d open, %d active", r.Conns.Open, r.Conns.Active)
		return lines
	}
	add("requests", "%s/s%s; %s/s in, %s/s out", number(r.Requests), join(":", classes, number), size(r.Read),
		size(r.Written))
	ways := slices.DeleteFunc(slices.Clone(r.Ways), func(w interval.Rate) bool { return w.N == 0 })
	add("handlers", "%d running, %d waiting%s", r.Running, r.Waiting,
		join(";", ways, func(n float64) string { return percent(n / r.Requests) }))
	c := &r.Conns
	kinds := []interval.Rate{{Name: "HTTP/1", N: float64(c.HTTP1)}, {Name: "HTTP/2", N: float64(c.HTTP2)},
		{Name: "HTTP/3", N: float64(c.HTTP3)}, {Name: "WebSockets", N: float64(c.WebSockets)},
		{Name: "streams", N: float64(c.EventStreams)}, {Name: "on goroutines", N: float64(c.Goroutines)}}
	kinds = slices.DeleteFunc(kinds, func(k interval.Rate) bool { return k.N == 0 })
	add("connections", "%d open, %d active%s; %s new/s", c.Open, c.Active, join(";", kinds, number), number(c.Accepted))
	// Those that are not 0.00.
	if calls := slices.DeleteFunc(slices.Clone(r.Syscalls),
		func(c interval.Rate) bool { return c.N < 0.005 }); len(calls) > 0 {
		add("system calls", "%s for a request", strings.TrimSpace(join("", calls,
			func(n float64) string { return fmt.Sprintf("%.2f", n) })))
	}
	u := &r.Runtime
	add("runtime", "%d goroutines; heap %s of %s, %s/s allocated; collector %s, pauses %s; waits for mutexes %s/s",
		u.Goroutines, size(float64(u.Heap)), size(float64(u.HeapGoal)), size(u.Allocated), percent(u.GC),
		duration(u.Pause), short(time.Duration(u.Locks*1e9)))
	if r.TLS.Handshakes+r.TLS.Failed > 0 {
		early := ""
		if r.TLS.Early > 0 {
			early = "; " + number(r.TLS.Early) + "/s early requests"
		}
		add("handshakes", "%s/s, %s resumed, %s/s failed, 99 %% below %s%s", number(r.TLS.Handshakes),
			percent(r.TLS.Resumed), number(r.TLS.Failed), duration(r.TLS.P99), early)
	}
	if len(r.Troubles) > 0 {
		add("refused", "%s", strings.TrimSpace(join("", r.Troubles, number)))
	}
	for _, f := range r.Findings {
		text := "! " + f.Text
		if f.Look != "" {
			text += " (" + f.Look + ")"
		}
		lines = append(lines, line{Clean(text), warn})
	}
	for i, l := range lines {
		lines[i].text = ascii(l.text)
	}
	return lines
}

// ascii replaces the sign of micro, which findings may have had escaped.
func ascii(s string) string { return strings.NewReplacer(`\u00b5`, "u", "µ", "u").Replace(s) }

func duration(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return ascii(interval.Short(d))
}

func percent(x float64) string {
	if x > 0 && x < 0.0995 {
		return fmt.Sprintf("%.1f%%", x*100)
	}
	return fmt.Sprintf("%.0f%%", x*100)
}

// join lists values after sep, "" for none.
func join(sep string, rates []interval.Rate, format func(float64) string) string {
	if len(rates) == 0 {
		return ""
	}
	var parts []string
	for _, r := range rates {
		parts = append(parts, r.Name+" "+format(r.N))
	}
	return sep + " " + strings.Join(parts, ", ")
}

func stages(r *interval.Report) []line {
	if r.Average {
		return nil
	}
	lines := []line{{fmt.Sprintf("%-10s %9s %9s %9s %9s", "STAGE", "PER S", "50 %", "90 %", "99 %"), head}}
	for _, s := range r.Stages {
		if s.Rate > 0 || s.Name == "total" {
			lines = append(lines, line{text: fmt.Sprintf("%-10s %9s %9s %9s %9s", s.Name, interval.Number(s.Rate),
				duration(s.P50), duration(s.P90), duration(s.P99))})
		}
	}
	return lines
}

func loops(r *interval.Report, most int) []line {
	if len(r.Loops) == 0 || most < 2 || r.Average {
		return nil
	}
	lines := []line{{fmt.Sprintf("%-4s %-12s %8s %7s %7s %6s %8s %9s %8s", "LOOP", "BUSY", "ON LOOP", "POOLED",
		"HANDED", "CONNS", "AT WORK", "TURN 99 %", "LAG"), head}}
	for i, l := range r.Loops {
		if len(lines) == most-1 && i < r.AllLoops-1 {
			lines = append(lines, line{fmt.Sprintf("%d more loops", r.AllLoops-i), dim})
			break
		}
		lag, s := duration(l.Lag), normal
		if l.Stale {
			lag, s = "> 100 ms", warn
		}
		full := int(l.Busy*6 + 0.5)
		bar := strings.Repeat("|", full) + strings.Repeat(" ", 6-full)
		lines = append(lines, line{fmt.Sprintf("%-4d %s %5s %8s %7s %7s %6d %8d %9s %8s", l.Index, bar, percent(l.Busy),
			interval.Number(l.Inline+l.Direct), interval.Number(l.Pooled), interval.Number(l.Handovers), l.Connections,
			l.AtWork, duration(l.TurnP99), lag), s})
	}
	return lines
}

// routes are of a width of about 80 columns with the way alone that most requests went, or
// of 100 with all of them.
func routes(r *interval.Report, by order, width int) []line {
	if r.Average {
		return nil
	}
	sorted := slices.Clone(r.Routes)
	slices.SortStableFunc(sorted, func(x, y interval.Route) int { return cmp.Compare(by.by(y), by.by(x)) })
	place := 9
	if width >= 100 {
		place = 26
	}
	const format = "%7s %7s %7s %7s %5s %6s %6s  %-*s %s"
	lines := []line{{fmt.Sprintf(format, "PER S", "50 %", "99 %", "HANDLER", "TIME", "ERRORS", "HANDED", place,
		"PLACEMENT", "ROUTE (by "+by.name+")"), head}}
	for _, t := range sorted {
		s := normal
		if t.Errors > 0 {
			s = warn
		}
		ways := strings.TrimSpace(join("", t.Ways, percent))
		if width < 100 && len(t.Ways) > 0 {
			ways = slices.MaxFunc(t.Ways, func(x, y interval.Rate) int { return cmp.Compare(x.N, y.N) }).Name
		}
		lines = append(lines, line{fmt.Sprintf(format, interval.Number(t.Rate), duration(t.P50), duration(t.P99),
			duration(t.Handler),
			percent(t.Share), interval.Number(t.Errors), interval.Number(t.Handovers), place, cut(ways, place),
			Clean(interval.RouteName(t.Pattern))), s})
	}
	if len(sorted) == 0 {
		lines = append(lines, line{"no request in this interval", dim})
	}
	return lines
}

func requests(all []interval.Running) []line {
	lines := []line{{fmt.Sprintf("%9s %-8s %-10s %4s %-22s %s", "RUNNING", "STAGE", "WHERE", "LOOP", "PEER", "REQUEST"),
		head}}
	for _, q := range all {
		lines = append(lines, line{text: fmt.Sprintf("%9s %-8s %-10s %4d %-22s %s", duration(q.Age), q.Stage, q.Way,
			q.Loop, Clean(q.Peer), Clean(q.Method+" "+q.Target))})
	}
	return lines
}

func connections(all []stats.Connection, at time.Time) []line {
	lines := []line{{fmt.Sprintf("%-8s %9s %-14s %-4s %9s %4s %s", "STATE", "FOR", "PROTOCOL", "TLS", "UNSENT", "LOOP",
		"PEER"), head}}
	for _, c := range all {
		age := "-"
		if !c.Since.IsZero() {
			age = duration(max(at.Sub(c.Since), 1))
		}
		lines = append(lines, line{text: fmt.Sprintf("%-8s %9s %-14s %-4s %9s %4d %s", c.State, age, c.Protocol, c.TLS,
			interval.Bytes(float64(c.Unsent)), c.Loop, Clean(c.Peer))})
	}
	return lines
}

// unlimited is the width of what is no terminal.
const unlimited = math.MaxInt

// wrap continues lines that are too long below their text.
func wrap(lines []line, width int) (all []line) {
	const indent = "             " // as long as a label
	for _, l := range lines {
		for len(l.text) > width && width > 2*len(indent) {
			at := strings.LastIndexByte(l.text[:width+1], ' ')
			if at <= len(indent) {
				break // a word that is too long
			}
			all = append(all, line{l.text[:at], l.style})
			l.text = indent + l.text[at+1:]
		}
		all = append(all, l)
	}
	return all
}

// title is the first line.
func (c *content) title() string {
	up := c.report.At.Sub(c.report.Since).Round(time.Second)
	return fmt.Sprintf("chert at %s  %s  up %v", Clean(c.name), c.report.At.Local().Format(time.TimeOnly), up)
}

// block returns all of it, for outputs that are no terminal.
func (c *content) block() string {
	var b strings.Builder
	b.WriteString(c.title() + "\n")
	parts := [][]line{summary(c.report), stages(c.report), loops(c.report, interval.MaxLoops+2),
		routes(c.report, c.order, unlimited)}
	if len(c.now.Upstreams) > 0 {
		parts = append(parts, upstreams(&c.now, &c.old))
	}
	for _, part := range parts {
		for _, l := range part {
			b.WriteString(strings.TrimRight(l.text, " ") + "\n")
		}
	}
	return b.String()
}

// screen returns the lines of a terminal, none wider than it, and not more than it has.
func (c *content) screen(width, height int, state string) []line {
	lines := []line{{c.title(), bold}}
	lines = append(lines, wrap(summary(c.report), width)...)
	lines = append(lines, line{})
	lines = append(lines, stages(c.report)...)
	lines = append(lines, line{})
	// Loops get a third of what is left: routes are what people come for.
	lines = append(lines, loops(c.report, max((height-len(lines))/3, 4))...)
	lines = append(lines, line{})
	switch {
	case c.view == viewRoutes:
		lines = append(lines, routes(c.report, c.order, width)...)
	case c.view != c.asked: // an empty list would say that there is nothing
		lines = append(lines, line{"asking for the " + viewNames[c.view], dim})
	case c.view == viewRequests:
		lines = append(lines, requests(c.requests)...)
	case c.view == viewConnections:
		lines = append(lines, connections(c.conns, c.at)...)
	case c.view == viewUpstreams:
		lines = append(lines, upstreams(&c.now, &c.old)...)
	case c.view == viewSites:
		lines = append(lines, sites(&c.setup, c.at)...)
	}
	lines = lines[:min(len(lines), max(height-1, 0))]
	for len(lines) < height-1 {
		lines = append(lines, line{})
	}
	keys := "q quit  space pause  tab or v view (" + viewNames[c.view] +
		")  c connections  u upstreams  s sites  routes by: r requests  l latency  t time  e errors  o hand-overs"
	if len(keys) > width {
		keys = "q quit  space pause  tab view (" + viewNames[c.view] + ")  sort by: r l t e o"
	}
	if state != "" {
		keys = state
	}
	lines = append(lines, line{keys, dim})
	for i := range lines {
		lines[i].text = cut(lines[i].text, width)
	}
	return lines
}
