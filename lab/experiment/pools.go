package experiment

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

func pools() Experiment {
	return Experiment{
		Name:  "pools",
		Title: "What three pools of buffers are worth",
		Asks: "A raw-TCP server in Go was measured before and after it took its buffers from three pools: 8 KiB for a request, 256 bytes for a chunk of it, one for the response. " +
			"[lab/pools](../../pools/main.go) is such a server, and a flag is the whole difference. `ab -k -c 10` drives it, as then; net/http and chert run beside it in the same rounds.",
		Needs: []string{"ab"},
		Claims: []Claim{
			{
				Text:  "Three pools nearly double the rate (4,000 to 7,721: 1.93).",
				Rule:  "before costs 1.5 to 2.5 times the CPU of after; in part from 1.07 times. ab may limit the rate",
				Here:  "{before/cpu:after/cpu} times the CPU, {after/rate:before/rate} times the rate",
				Judge: func(v Values) Verdict { return within(v.ratio("before/cpu", "after/cpu"), 1.5, 2.5, 1.4) },
				Why: map[Verdict]string{
					HeldInPart: "Collections are fewer, but a request costs more than its buffers.",
					Refuted:    "Go's allocator and collector have become cheaper than a request's system calls: what pools save is a small part of it.",
				},
			},
			{
				Text:  "About 95 % fewer allocations.",
				Rule:  "90 % or more; in part from 50 %",
				Here:  "{saved} % fewer objects, {savedcollections} % fewer collections",
				Judge: needing(func(v Values) Verdict { return within(v["saved"], 90, 100, 1.8) }, "saved"),
				Why: map[Verdict]string{
					HeldInPart: "The strings that the parser makes are not in any pool.",
					Refuted:    "The strings that the parser makes are not in any pool: buffers are most of the bytes, but not most of the objects.",
				},
			},
		},
		Run: runPools,
	}
}

// abServer is a server that ab drives.
type abServer struct {
	name        string
	spec        rival.Spec
	keep        bool
	connections int
}

func runPools(ctx context.Context, b *Bench, r *Result) error {
	own, err := b.ready(ctx, rival.Program("before", "pools"), rival.Program("after", "pools", "--pools"))
	if err != nil {
		return err
	}
	others, err := b.servers(ctx, r, "nethttp", "chert")
	if err != nil {
		return err
	}
	all := []abServer{{"before", own[0], true, 10}, {"after", own[1], true, 10},
		{"before-one", own[0], true, 1}, {"after-closing", own[1], false, 10}}
	for _, spec := range others {
		all = append(all, abServer{spec.Name, spec, true, 10})
	}
	rounds := map[string][]abRound{}
	requests := b.Scale.of(20000, 1000)
	for round := range b.Scale.rounds(7) {
		for k := range all {
			s := all[(round+k)%len(all)]
			got, err := b.ab(ctx, r, s, requests)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			fmt.Fprintf(b.Log, "round %d %-14s %8.0f req/s, %.1f allocations a request\n", round+1, s.name, got.PerSecond, got.allocs)
			rounds[s.name] = append(rounds[s.name], got)
		}
	}
	table := Table{Title: "ab, " + plural(requests, "request") + " in each round", Columns: []string{"server", "connections", "req/s", "ms a request", "objects a request", "collections in 10,000", "CPU µs"}}
	bars := chart.Bars{Title: "A raw-TCP server before and after pools, ab -k -c 10", Axis: "requests per second"}
	for _, s := range all {
		v, of := r.Values, rounds[s.name]
		v[s.name+rate] = medianOf(of, func(a abRound) float64 { return a.PerSecond })
		v[s.name+"/each"] = medianOf(of, func(a abRound) float64 { return a.Each })
		v[s.name+"/allocs"] = medianOf(of, func(a abRound) float64 { return a.allocs })
		v[s.name+"/collections"] = medianOf(of, func(a abRound) float64 { return a.collections })
		v[s.name+cpu] = medianOf(of, func(a abRound) float64 { return a.cpu })
		how := fmt.Sprintf("%d kept", s.connections)
		if !s.keep {
			how = fmt.Sprintf("%d at a time", s.connections)
		}
		table.Rows = append(table.Rows, []string{s.name, how, number(v[s.name+rate]), number(v[s.name+"/each"]), number(v[s.name+"/allocs"]),
			number(v[s.name+"/collections"]), number(v[s.name+cpu])})
		if s.keep && s.connections == 10 {
			low, high := quartilesOf(of, func(a abRound) float64 { return a.PerSecond })
			bars.Bars = append(bars.Bars, chart.Bar{Name: s.name, Value: chart.Value{Middle: v[s.name+rate], Low: low, High: high}})
		}
	}
	r.Values["saved"] = 100 * (1 - r.Values.ratio("after/allocs", "before/allocs"))
	if r.Values["before/collections"] > 0 {
		r.Values["savedcollections"] = 100 * (1 - r.Values.ratio("after/collections", "before/collections"))
	}
	r.Tables = append(r.Tables, table)
	r.note("ab has one thread and speaks HTTP/1.0; it is the limit for servers that are faster than itself. Compare CPU then.")
	r.plot("rates", "Pools save collections; most of a request is elsewhere.", bars)
	return nil
}

// abRound is one turn.
type abRound struct {
	load.AbResult
	allocs      float64 // for each request
	collections float64 // in 10,000 requests
	cpu         float64 // microseconds for each request
}

// ab drives a fresh server once, after a warm-up.
func (b *Bench) ab(ctx context.Context, r *Result, s abServer, requests int) (abRound, error) {
	server, err := rival.Start(ctx, s.spec, rival.Room{Cores: b.Seats.Server, Connections: s.connections})
	if err != nil {
		return abRound{}, err
	}
	defer server.Stop()
	if err := answers(ctx, server, hello()); err != nil {
		return abRound{}, err
	}
	run := load.Ab{Addr: server.Addr, Path: "/", Requests: max(s.connections, requests/5), Connections: s.connections, Keep: s.keep, Core: b.Seats.Load}
	if _, err := run.Run(ctx); err != nil {
		return abRound{}, err
	}
	run.Requests = requests
	before, err := profile.Stats(ctx, server)
	if err != nil {
		return abRound{}, err
	}
	var got abRound
	spent, err := profile.Spend(server, b.Seats, func() (time.Duration, error) {
		var err error
		got.AbResult, err = run.Run(ctx)
		return 0, err // ab's own time counts as that of others, which is not shown
	})
	if err != nil {
		return got, err
	}
	after, err := profile.Stats(ctx, server)
	if err != nil {
		return got, err
	}
	if got.Failed > 0 {
		r.Faults = append(r.Faults, fmt.Sprintf("%s: %d of %d requests failed", s.name, got.Failed, requests))
	}
	got.allocs = float64(after.Allocated-before.Allocated) / float64(requests)
	got.collections = float64(after.Collections-before.Collections) / float64(requests) * 10000
	got.cpu = float64(spent.CPU.Total.Microseconds()) / float64(requests)
	return got, answers(ctx, server, hello())
}

func medianOf[T any](rounds []T, f func(T) float64) float64 {
	return report.Median(figures(rounds, f))
}

func quartilesOf[T any](rounds []T, f func(T) float64) (low, high float64) {
	return report.Quartiles(figures(rounds, f))
}

// figures are those of the rounds that have one.
func figures[T any](rounds []T, f func(T) float64) []float64 {
	var all []float64
	for _, r := range rounds {
		if x := f(r); !math.IsNaN(x) {
			all = append(all, x)
		}
	}
	return all
}
