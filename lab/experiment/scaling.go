package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

func scaling() Experiment {
	return Experiment{
		Name:  "scaling",
		Title: "How the cost of a request grows",
		Asks: "All five stop at a few hundred connections and one size of answer. Here the processor time of a request is measured over connections (1 to 4,096 that ask, and 16,000 that are open), the size of the answer, the number of routes, " +
			"the number of header fields, and cores where there are enough, for chert beside net/http. A model is fitted: a fixed cost, the cost of sleeping that requests share, a cost for each connection, and one for each byte. " +
			"What it says about machines that were not measured is an extrapolation, and marked as one.",
		Needs: []string{"wrk"},
		Claims: []Claim{
			{
				Text: "Thousands of connections cost a loop no more than dozens (wanted by the raw-TCP server: how to hold thousands of connections).",
				Rule: "with 4,096 connections chert's request costs at most 1.3 times that with 64; in part at most 1.6",
				Here: "{chert/connections/4096/cpu:chert/connections/64/cpu} times with 4,096, {chert/open/9000/cpu:chert/open/64/cpu} with 9,000 of which 64 ask; net/http {nethttp/connections/4096/cpu:nethttp/connections/64/cpu} and {nethttp/open/9000/cpu:nethttp/open/64/cpu}",
				Judge: func(v Values) Verdict {
					return within(v.ratio("chert/connections/4096/cpu", "chert/connections/64/cpu"), 0, 1.3, 1.6/1.3)
				},
			},
			{
				Text: "A router does not get slower with routes (a radix tree is what Flint wants).",
				Rule: "with 1,000 routes a request costs at most 1.05 times that with one; in part 1.15",
				Here: "chert {chert/routes/1000/cpu:chert/routes/1/cpu} times, net/http {nethttp/routes/1000/cpu:nethttp/routes/1/cpu}, both with http.ServeMux",
				Judge: func(v Values) Verdict {
					return within(v.ratio("chert/routes/1000/cpu", "chert/routes/1/cpu"), 0, 1.05, 1.15/1.05)
				},
			},
			{
				Text:  "A model of four numbers describes the cost of a request.",
				Rule:  "the largest residual is at most 15 % of the measured cost; in part 30 %",
				Here:  "largest residual {chert/residual} %, for chert: {chert/fixed} µs, {chert/wait} µs to sleep and wake up, {chert/perthousand} µs for each thousand connections, {chert/perkib} µs for each KiB",
				Judge: needing(func(v Values) Verdict { return within(v["chert/residual"], 0, 15, 2) }, "chert/residual"),
			},
		},
		Run: runScaling,
	}
}

// sweep is a series of measurements of which one number changes.
type sweep struct {
	name, title string
	values      []int
	check       func(n int) profile.Check
	connections func(n int) int
	flags       func(n int) []string
}

func sweeps(b *Bench) []sweep {
	const usual = 64
	always := func(int) int { return usual }
	none := func(int) []string { return nil }
	return []sweep{
		{"connections", "connections", list(b.Scale, 3, 1, 16, 64, 4, 256, 1024, 4096), func(int) profile.Check { return hello() }, func(n int) int { return n }, none},
		{"open", "open connections, of which 64 ask", list(b.Scale, 1, 64, 1000, 4000, 9000, 16000), func(int) profile.Check { return hello() }, always, none},
		{"bytes", "bytes of the answer", list(b.Scale, 2, 1, 100<<10, 1<<10, 10<<10, 1<<20), func(n int) profile.Check {
			return profile.Check{Request: exchange.Get("/bytes/" + strconv.Itoa(n)), Want: exchange.OK("text/plain", strings.Repeat("x", n))}
		}, always, none},
		{"routes", "routes of the router", list(b.Scale, 1, 1, 10, 100, 1000), func(n int) profile.Check {
			return profile.Check{Request: exchange.Get(fmt.Sprintf("/route/%d/of/chert", n-1)), Want: exchange.OK("text/plain", "chert")}
		}, always, func(n int) []string { return []string{"--routes", strconv.Itoa(n)} }},
		{"fields", "header fields of the request", list(b.Scale, 1, 1, 10, 30, 100), func(n int) profile.Check {
			c := hello()
			c.Request.Fields = n
			return c
		}, always, none},
	}
}

func runScaling(ctx context.Context, b *Bench, r *Result) error {
	points := map[string][]point{}
	for _, s := range sweeps(b) {
		lines := chart.Lines{Title: "Processor time of a request over " + s.title, XAxis: s.title, YAxis: "CPU microseconds per request"}
		table := Table{Title: "Over " + s.title, Columns: []string{s.title, "chert CPU µs", "quartiles", "net/http CPU µs", "quartiles", "chert by net/http"}}
		for _, n := range slices.Sorted(slices.Values(s.values)) {
			fmt.Fprintln(b.Log, s.title+":", n)
			series, err := scaled(ctx, b, r, s, n)
			if errors.Is(err, errFiles) {
				r.note(fmt.Sprintf("Without %d %s: %v.", n, s.title, err))
				continue
			}
			if err != nil {
				return err
			}
			cells := []string{number(float64(n))}
			for k, one := range series {
				name := one.Server + "/" + s.name + "/" + strconv.Itoa(n)
				r.Values.series(name, one)
				low, high := one.CPUQuartiles()
				cells = append(cells, number(r.Values[name+cpu]), number(low)+"–"+number(high))
				extend(&lines, k, n, one, func(r report.Round) float64 { return r.CPU })
				if p := (point{s.connections(n), s.connections(n), one.ResponseBytes, r.Values[name+cpu]}); s.name != "routes" && s.name != "fields" {
					if s.name == "open" {
						p.open = n
					}
					points[one.Server] = append(points[one.Server], p)
				}
			}
			key := fmt.Sprintf("/%s/%d%s", s.name, n, cpu)
			table.Rows = append(table.Rows, append(cells, number(r.Values.ratio("chert"+key, "nethttp"+key))))
		}
		r.Tables = append(r.Tables, table)
		r.plot(s.name, map[string]string{
			"connections": "One connection pays for sleeping and waking up each time; dozens share it; thousands cost caches.",
			"open":        "Connections that are silent cost memory, and next to nothing of a request.",
			"bytes":       "A few kilobytes are free beside the fixed cost; from then on it is copying.",
			"routes":      "A tree of routes does not notice how many there are.",
			"fields":      "Each field costs its bytes, and on net/http a string and an entry in a map.",
		}[s.name], lines)
	}
	if err := overCores(ctx, b, r); err != nil {
		return err
	}
	return extrapolate(ctx, b, r, points)
}

// scaled measures both servers at one place of a sweep.
func scaled(ctx context.Context, b *Bench, r *Result, s sweep, n int) ([]report.Series, error) {
	var specs []rival.Spec
	for _, engine := range []string{"chert", "nethttp"} {
		specs = append(specs, rival.Program(engine, "scale", append([]string{"--engine", engine}, s.flags(n)...)...))
	}
	specs, err := rival.Ready(ctx, b.Dir, specs)
	if err != nil {
		return nil, err
	}
	connections := s.connections(n)
	c := contest{check: s.check(n), connections: connections, rounds: b.Scale.rounds(3)}
	if s.name == "open" {
		c.idle = n - connections
	}
	return b.contest(ctx, r, c, entrants(specs))
}

// overCores measures with more cores for the server, if there are any.
func overCores(ctx context.Context, b *Bench, r *Result) error {
	wide := b.wide()
	if len(wide) < 2 {
		r.note("Cores: beside the one that makes the load there is only one for servers. How they scale over cores cannot be measured with that.")
		return nil
	}
	table := Table{Title: "Over cores, 256 connections", Columns: []string{"cores", "chert req/s", "net/http req/s", "chert CPU µs", "net/http CPU µs"}}
	for n := 1; n <= len(wide); n *= 2 {
		specs, err := rival.Ready(ctx, b.Dir, []rival.Spec{rival.Program("chert", "scale", "--engine", "chert"), rival.Program("nethttp", "scale", "--engine", "nethttp")})
		if err != nil {
			return err
		}
		series, err := b.contest(ctx, r, contest{check: hello(), connections: 256, rounds: b.Scale.rounds(3), cores: wide[:n]}, entrants(specs))
		if err != nil {
			return err
		}
		name := "/cores/" + strconv.Itoa(n)
		for _, s := range series {
			r.Values.series(s.Server+name, s)
		}
		table.Rows = append(table.Rows, []string{strconv.Itoa(n), number(r.Values["chert"+name+rate]), number(r.Values["nethttp"+name+rate]),
			number(r.Values["chert"+name+cpu]), number(r.Values["nethttp"+name+cpu])})
	}
	r.Tables = append(r.Tables, table)
	r.note("wrk has one thread on one core: with several cores for the server its rate is soon wrk's, and CPU is what counts.")
	return nil
}

// extrapolate fits the model, shows its residuals, and says what it would mean for machines that were not measured.
func extrapolate(ctx context.Context, b *Bench, r *Result, points map[string][]point) error {
	residuals := Table{Title: "The model and what it misses", Columns: []string{"server", "asking", "open", "bytes", "measured µs", "model µs", "residual %"}}
	far := Table{Title: "Extrapolation: not measured", Columns: []string{"server", "64 cores, 64 connections each, req/s", "a million open on 64 cores, 64 asking on each, req/s", "memory of a million idle connections"}}
	for _, server := range []string{"chert", "nethttp"} {
		m, err := fit(points[server])
		if err != nil {
			r.note(fmt.Sprintf("No model for %s: %v.", server, err))
			continue
		}
		v, worst := r.Values, 0.0
		for _, p := range points[server] {
			guess := m.cost(float64(p.active), float64(p.open), float64(p.bytes))
			off := 100 * (guess - p.cost) / p.cost
			worst = max(worst, math.Abs(off))
			residuals.Rows = append(residuals.Rows, []string{server, number(float64(p.active)), number(float64(p.open)), number(float64(p.bytes)), number(p.cost), number(guess), number(off)})
		}
		v[server+"/residual"], v[server+"/fixed"], v[server+"/wait"] = worst, m.fixed, m.wait
		v[server+"/perthousand"], v[server+"/perkib"] = 1000*m.connected, 1024*m.byte
		each, err := idleBytes(ctx, b, server)
		if err != nil {
			return err
		}
		v[server+"/idlebytes"] = each
		const small = 130 // bytes of an answer
		far.Rows = append(far.Rows, []string{server, number(64e6 / m.cost(64, 64, small)), number(64e6 / m.cost(64, 1e6/64, small)), number(each/1000) + " GB"})
	}
	r.Tables = append(r.Tables, residuals, far)
	r.note("The extrapolation takes 64 cores for 64 times one of these, without anything that they share: memory, the kernel's locks, a network card. Connections of a loop are a 64th of all. It is an upper bound, not a forecast.")
	r.note("Turns with thousands of connections include opening them, which makes them look more expensive than they are.")
	return nil
}

// idleBytes is the resident memory of an idle connection.
func idleBytes(ctx context.Context, b *Bench, server string) (float64, error) {
	specs, err := rival.Ready(ctx, b.Dir, []rival.Spec{rival.Program(server, "scale", "--engine", server)})
	if err != nil {
		return 0, err
	}
	n := b.Scale.of(10000, 200)
	limit, err := load.RaiseFiles(n + spareFiles)
	if err != nil {
		return 0, err
	}
	n = min(n, limit-spareFiles)
	held, err := profile.Hold(ctx, specs[0], b.Seats.Server, n, profile.Holding{Open: profile.OpenBy(load.OpenIdle)}, b.Log)
	return float64(held.After.Resident-held.Before.Resident) / float64(n), err
}
