package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/rival"
)

func workers() Experiment {
	return Experiment{
		Name:  "workers",
		Title: "A goroutine for each connection, a pool of workers, or a placement",
		Asks: "Flint has a pool of 100 workers with a queue of 1,000 connections, and was measured without it too. [lab/flint](../../flint/main.go) is such a server with both, " +
			"and runs the same handlers on net/http and on chert, which runs quick handlers on its loops and others on goroutines of a pool. " +
			"First a fast handler with 100 clients that keep their connections; then one of 50 ms with 500 clients, each request on a connection of its own, so that a worker is free for the next client.",
		Claims: []Claim{
			{
				Text:  "A pool is slower with fast handlers (1,975 by 2,985 req/s: 0.66; p99 168 by 102 ms).",
				Rule:  "a request costs the server at least 1.05 times the CPU, and p99 is at least 1.05 times as long; in part if one is true",
				Here:  "{pool/fast/cpu:naked/fast/cpu} times the CPU, {pool/fast/p99:naked/fast/p99} times the p99; {pool/fast/rate:naked/fast/rate} of the rate, which the client limits",
				Judge: needing(poolSlower, "pool/fast/cpu", "naked/fast/cpu", "pool/fast/p99", "naked/fast/p99"),
				Why: map[Verdict]string{
					Refuted: "A worker has a connection until it is closed, so with as many workers as connections the queue is passed once for each connection: there is nothing to be slower by.",
				},
			},
			{
				Text:  "A pool holds memory: 500 clients and a handler of 50 ms cost 500 goroutines (about 4 MB of stack) without it, 100 with it.",
				Rule:  "there are 400 to 600 goroutines without and at most 150 with; in part if one is true",
				Here:  "{naked/slow/goroutines} goroutines and {naked/slow/stack} MB of stacks without, {pool/slow/goroutines} and {pool/slow/stack} MB with; chert {chert/slow/goroutines} and {chert/slow/stack} MB",
				Judge: needing(poolHolds, "naked/slow/goroutines", "pool/slow/goroutines"),
				Why:   map[Verdict]string{Held: "And it bounds the rate: 100 workers that wait 50 ms each answer 2,000 requests a second and no more."},
			},
			{
				Text:  "chert's placement has both: it serves slow handlers as fast as a goroutine for each connection does, and fast ones at less cost.",
				Rule:  "with the slow handler at least 0.9 of net/http's rate, and with the fast one at most 0.9 of its CPU; in part if one is true",
				Here:  "slow: {chert/slow/rate:nethttp/slow/rate} of the rate; fast: {chert/fast/cpu:nethttp/fast/cpu} of the CPU",
				Judge: needing(placementBoth, "chert/slow/rate", "nethttp/slow/rate", "chert/fast/cpu", "nethttp/fast/cpu"),
			},
		},
		Run: runWorkers,
	}
}

func poolSlower(v Values) Verdict {
	return count(v.ratio("pool/fast/cpu", "naked/fast/cpu") >= 1.05, v.ratio("pool/fast/p99", "naked/fast/p99") >= 1.05)
}

func poolHolds(v Values) Verdict {
	return count(v["naked/slow/goroutines"] >= 400 && v["naked/slow/goroutines"] <= 600, v["pool/slow/goroutines"] <= 150)
}

func placementBoth(v Values) Verdict {
	return count(v.ratio("chert/slow/rate", "nethttp/slow/rate") >= 0.9, v.ratio("chert/fast/cpu", "nethttp/fast/cpu") <= 0.9)
}

// burstKind is a load of a number of requests.
type burstKind struct {
	name     string
	path     string
	clients  int
	requests int
	closes   bool
	tls      bool
}

func runWorkers(ctx context.Context, b *Bench, r *Result) error {
	specs, err := b.ready(ctx, flintServers(0, "naked", "pool", "nethttp", "chert")...)
	if err != nil {
		return err
	}
	kinds := []burstKind{
		{name: "fast", path: "/", clients: b.Scale.of(100, 10), requests: b.Scale.of(20000, 500)},
		{name: "slow", path: "/slow", clients: b.Scale.of(500, 20), requests: b.Scale.of(6000, 100), closes: true},
	}
	table := Table{Title: "A fast handler and one of 50 ms", Columns: []string{"handler", "server", "clients", "req/s", "p99 ms", "CPU µs", "goroutines", "stacks MB"}}
	groups := chart.Groups{Title: "Goroutines of a server with 500 clients in a handler of 50 ms", Axis: "goroutines", Kinds: []chart.Kind{{Name: "in the middle of it"}}}
	for _, kind := range kinds {
		results, err := b.bursts(ctx, r, kind, specs, b.Scale.rounds(5))
		if err != nil {
			return err
		}
		for i, spec := range specs {
			name := spec.Name + "/" + kind.name
			v := r.Values
			v.burst(name, results[i])
			table.Rows = append(table.Rows, []string{kind.name, spec.Name, strconv.Itoa(kind.clients), number(v[name+rate]), number(v[name+p99]), number(v[name+cpu]),
				number(v[name+"/goroutines"]), number(v[name+"/stack"])})
			if kind.closes {
				groups.Names = append(groups.Names, spec.Name)
				groups.Kinds[0].Values = append(groups.Kinds[0].Values, v[name+"/goroutines"])
			}
		}
	}
	r.Tables = append(r.Tables, table)
	r.note("Goroutines are the most that were counted during a burst; stacks are what the Go runtime holds for all of them then.")
	r.plot("goroutines", "A pool bounds the goroutines, and with them how many slow requests are served at a time.", groups)
	return nil
}

// flintServers are the engines of the program flint.
func flintServers(limit int, engines ...string) []rival.Spec {
	var specs []rival.Spec
	for _, engine := range engines {
		specs = append(specs, rival.Program(engine, "flint", "--engine", engine, "--limit", strconv.Itoa(limit)))
	}
	return specs
}

// burstRound is one turn.
type burstRound struct {
	load.BurstResult
	cpu               float64 // microseconds for each request
	goroutines, stack float64 // in the middle of it; MB
	others            float64 // percent of the cores
}

// burst sets the medians over the rounds of a server.
func (v Values) burst(name string, rounds []burstRound) {
	ms := func(f func(burstRound) time.Duration) float64 {
		return medianOf(rounds, func(r burstRound) float64 { return float64(f(r).Microseconds()) / 1000 })
	}
	v[name+rate] = medianOf(rounds, func(r burstRound) float64 { return r.PerSecond })
	v[name+mean] = ms(func(r burstRound) time.Duration { return r.Mean })
	v[name+p50] = ms(func(r burstRound) time.Duration { return r.P50 })
	v[name+"/p95"] = ms(func(r burstRound) time.Duration { return r.P95 })
	v[name+p99] = ms(func(r burstRound) time.Duration { return r.P99 })
	v[name+cpu] = medianOf(rounds, func(r burstRound) float64 { return r.cpu })
	v[name+"/ok"] = medianOf(rounds, func(r burstRound) float64 { return float64(r.Statuses[200]) })
	v[name+"/goroutines"] = medianOf(rounds, func(r burstRound) float64 { return r.goroutines })
	v[name+"/stack"] = medianOf(rounds, func(r burstRound) float64 { return r.stack })
}

// bursts drives servers in turn, each turn with a fresh one, since limiters remember.
func (b *Bench) bursts(ctx context.Context, r *Result, kind burstKind, specs []rival.Spec, rounds int) ([][]burstRound, error) {
	pace := filepath.Join(b.Dir, "pace")
	if err := child.Build(ctx, pace, load.PaceFolder); err != nil {
		return nil, err
	}
	all := make([][]burstRound, len(specs))
	for round := range rounds {
		for k := range specs {
			i := (round + k) % len(specs)
			got, err := b.burst(ctx, pace, kind, specs[i])
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", specs[i].Name, kind.name, err)
			}
			if got.Errors > 0 {
				r.Faults = append(r.Faults, fmt.Sprintf("%s, %s: %d of %d requests without an answer: %s", specs[i].Name, kind.name, got.Errors, kind.requests, got.Fault))
			}
			fmt.Fprintf(b.Log, "%s, round %d %-10s %8.0f req/s, %d errors, others %.0f %%\n", kind.name, round+1, specs[i].Name, got.PerSecond, got.Errors, got.others)
			all[i] = append(all[i], got)
		}
	}
	return all, nil
}

func (b *Bench) burst(ctx context.Context, pace string, kind burstKind, spec rival.Spec) (burstRound, error) {
	var got burstRound
	s, err := rival.Start(ctx, spec, rival.Room{Cores: b.Seats.Server, Connections: kind.clients})
	if err != nil {
		return got, err
	}
	defer s.Stop()
	if err := answers(ctx, s, hello()); err != nil {
		return got, err
	}
	plan := load.Burst{Addr: s.Addr, Path: kind.path, Requests: kind.requests, Clients: kind.clients, Close: kind.closes, TLS: kind.tls}
	if kind.tls {
		plan.Addr = secure(s.Addr)
	}
	var inside chan measure.Process
	if kind.closes { // there is room for one more connection
		inside = b.inside(ctx, s)
	}
	spent, err := profile.Spend(s, b.Seats, func() (time.Duration, error) {
		got.BurstResult, err = plan.Child(ctx, pace, b.Seats.Load)
		return got.CPU, err
	})
	if err != nil {
		return got, err
	}
	if inside != nil {
		during := <-inside
		got.goroutines = float64(during.Goroutines)
		got.stack = float64(during.StackInUse) / 1e6
	}
	got.cpu = float64(spent.CPU.Total.Microseconds()) / float64(kind.requests)
	got.others = spent.Others
	return got, nil
}

// inside reads a server's state soon after a burst has begun. A server that does not answer in time has no state.
func (b *Bench) inside(ctx context.Context, s *rival.Server) chan measure.Process {
	state := make(chan measure.Process, 1)
	go func() {
		var most measure.Process
		for range b.Scale.of(6, 2) {
			select {
			case <-ctx.Done():
			case <-time.After(60 * time.Millisecond):
			}
			if p, err := profile.Stats(ctx, s); err == nil && p.Goroutines > most.Goroutines {
				most = p
			}
		}
		state <- most
	}()
	return state
}
