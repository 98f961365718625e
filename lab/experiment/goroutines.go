package experiment

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/rival"
)

func goroutines() Experiment {
	return Experiment{
		Name:  "goroutines",
		Title: "Goroutines of connections that are open and silent",
		Asks: "http-over-polling runs net/http's handlers on netpoll, and counted goroutines at 4,096 open connections: none for idle HTTP and for WebSockets that are read as they arrive. " +
			"It is in no module proxy; [lab/sockets](../../sockets/polling.go) does the same on the same netpoll in 150 lines, and with the same handlers on net/http and on chert. " +
			"Each row is a fresh server: connections are opened, one exchange is made on each, and goroutines and resident memory are counted when all is silent. " +
			"Then wrk compares the three, with 300 connections.",
		Needs: []string{"wrk"},
		Claims: []Claim{
			{
				Text:  "net/http has a goroutine for each idle connection (4,096), polling none.",
				Rule:  "net/http has 0.99 to 1.01 for each, polling at most 0.01; in part if one is true",
				Here:  "{nethttp/idle/goroutines} and {polling/idle/goroutines} at {connections}; chert {chert/idle/goroutines}",
				Judge: needing(idleGoroutines, "nethttp/idle/goroutines", "polling/idle/goroutines", "connections"),
			},
			{
				Text:  "gorilla's usual loop needs a goroutine for each connection on net/http, and two on polling (8,190).",
				Rule:  "net/http has 0.99 to 1.01 for each, polling 1.9 to 2.1; in part if one is true",
				Here:  "{nethttp/gorilla/goroutines} and {polling/gorilla/goroutines} at {connections}; chert {chert/gorilla/goroutines}",
				Judge: needing(gorillaGoroutines, "nethttp/gorilla/goroutines", "polling/gorilla/goroutines", "connections"),
				Why:   map[Verdict]string{HeldInPart: "The second one is its own: here the goroutine that netpoll calls the handler on is the one that reads."},
			},
			{
				Text:  "WebSockets that are read as they arrive need no goroutine.",
				Rule:  "at most 0.01 for each connection, with both ways of reading; in part if one is true",
				Here:  "{polling/gobwas-low/goroutines} and {polling/gobwas-high/goroutines} at {connections}; chert {chert/gobwas-low/goroutines} and {chert/gobwas-high/goroutines}, and {chert/gorilla-event/goroutines} with gorilla",
				Judge: needing(eventGoroutines, "polling/gobwas-low/goroutines", "polling/gobwas-high/goroutines", "connections"),
			},
			{
				Text:  "Polling serves twice the requests of net/http (229,711 by 112,946: 2.03).",
				Rule:  "net/http's handlers on polling serve at least 1.6 times as many; in part at least as many",
				Here:  "polling {polling/wrk/rate:nethttp/wrk/rate} times, chert {chert/wrk/rate:nethttp/wrk/rate} times",
				Judge: above("polling/wrk/rate", "nethttp/wrk/rate", 1.6),
				Why: map[Verdict]string{
					HeldInPart: "What a loop saves is less than what net/http's parser and writer cost, and those are used here; hop has its own. chert has both.",
					Refuted:    "netpoll starts a goroutine for each request, and net/http's parser is used here; hop has its own. chert needs neither.",
				},
			},
		},
		Run: runGoroutines,
	}
}

func idleGoroutines(v Values) Verdict {
	n := v["connections"]
	return count(near(v["nethttp/idle/goroutines"], n), v["polling/idle/goroutines"] <= 0.01*n+1)
}

func gorillaGoroutines(v Values) Verdict {
	n, polling := v["connections"], v["polling/gorilla/goroutines"]
	return count(near(v["nethttp/gorilla/goroutines"], n), polling >= 1.9*n && polling <= 2.1*n)
}

func eventGoroutines(v Values) Verdict {
	n := v["connections"]
	return count(v["polling/gobwas-low/goroutines"] <= 0.01*n+1, v["polling/gobwas-high/goroutines"] <= 0.01*n+1)
}

// near is about one for each of n.
func near(x, n float64) bool { return x >= 0.99*n-1 && x <= 1.01*n+1 }

func runGoroutines(ctx context.Context, b *Bench, r *Result) error {
	n := b.Scale.of(4096, 64)
	limit, err := load.RaiseFiles(n + spareFiles)
	if err == nil && limit < n+spareFiles {
		err = fmt.Errorf("%d connections: the limit of open files is %d", n, limit)
	}
	if err != nil {
		return err
	}
	r.Values["connections"] = float64(n)
	var specs []rival.Spec
	for _, engine := range []string{"nethttp", "polling", "chert"} {
		specs = append(specs, rival.Program(engine, "sockets", "--engine", engine))
	}
	if specs, err = b.ready(ctx, specs...); err != nil {
		return err
	}
	scenarios := []struct{ name, what, path, only string }{ // by these servers only; empty: by all
		{"idle", "idle HTTP", "", ""},
		{"gorilla", "gorilla's usual loop", "/gorilla", ""},
		{"gobwas", "gobwas, a loop", "/gobwas", ""},
		{"gobwas-low", "gobwas, frames as they arrive", "/gobwas-low", "polling chert"},
		{"gobwas-high", "gobwas wsutil, as they arrive", "/gobwas-high", "polling chert"},
		{"gorilla-event", "gorilla, messages as they arrive", "/gorilla-event", "chert"},
	}
	table := Table{Title: plural(n, "connection") + ", silent", Columns: []string{"scenario", "server", "goroutines", "resident bytes each", "heap bytes each"}}
	groups := chart.Groups{Title: "Resident memory of a silent connection", Axis: "bytes"}
	for _, spec := range specs {
		groups.Kinds = append(groups.Kinds, chart.Kind{Name: spec.Name})
	}
	for _, s := range scenarios {
		if s.only == "" {
			groups.Names = append(groups.Names, s.what)
		}
		for i, spec := range specs {
			if s.only != "" && !slices.Contains(strings.Fields(s.only), spec.Name) {
				continue
			}
			how := profile.Holding{Open: profile.OpenBy(load.OpenIdle)}
			if s.path != "" {
				how.Open = profile.OpenBy(func(ctx context.Context, addr string, n int, cfg *tls.Config) (*load.Idle, error) {
					return load.OpenSockets(ctx, addr, s.path, n, cfg)
				})
			}
			held, err := profile.Hold(ctx, spec, b.Seats.Server, n, how, b.Log)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", spec.Name, s.what, err)
			}
			name, each := spec.Name+"/"+s.name, func(after, before int64) float64 { return float64(after-before) / float64(n) }
			r.Values[name+"/goroutines"] = float64(held.After.Goroutines)
			r.Values[name+"/bytes"] = each(held.After.Resident, held.Before.Resident)
			heap := each(held.After.HeapInUse, held.Before.HeapInUse)
			table.Rows = append(table.Rows, []string{s.what, spec.Name, number(r.Values[name+"/goroutines"]), number(r.Values[name+"/bytes"]), number(heap)})
			if s.only == "" {
				groups.Kinds[i].Values = append(groups.Kinds[i].Values, max(0, r.Values[name+"/bytes"]))
			}
		}
	}
	r.note("Goroutines are all that the server has, its own few included. Memory is what it has grown by since 200 connections came and went.")
	r.Tables = append(r.Tables, table)
	r.plot("memory", "A stack and two buffers for each connection are what net/http holds; a loop holds little more than the connection's number.", groups)
	if err := pollingRates(ctx, b, r, specs); err != nil {
		return err
	}
	return b.parserBench(ctx, r)
}

// pollingRates is the comparison by wrk.
func pollingRates(ctx context.Context, b *Bench, r *Result, specs []rival.Spec) error {
	connections := b.Scale.of(300, 20)
	series, err := b.contest(ctx, r, contest{check: hello(), connections: connections, rounds: b.Scale.rounds(5)}, entrants(specs))
	if err != nil {
		return err
	}
	table := Table{Title: "wrk with " + strconv.Itoa(connections) + " connections", Columns: []string{"server", "req/s", "mean ms", "p99 ms", "CPU µs"}}
	for _, s := range series {
		name, v := s.Server+"/wrk", r.Values
		v.series(name, s)
		table.Rows = append(table.Rows, []string{s.Server, number(v[name+rate]), number(v[name+mean]), number(v[name+p99]), number(v[name+cpu])})
	}
	r.Tables = append(r.Tables, table)
	return nil
}

// parserBench sets the values of the parsers: those benchmarks are shown by the experiment flint.
func (b *Bench) parserBench(ctx context.Context, r *Result) error {
	tables := len(r.Tables)
	err := b.components(ctx, r)
	r.Tables = r.Tables[:tables]
	for name := range r.Values {
		if strings.HasPrefix(name, "router-") || strings.HasPrefix(name, "chain/") || strings.HasPrefix(name, "logger/") || strings.HasPrefix(name, "limiter/") {
			delete(r.Values, name)
		}
	}
	return err
}
