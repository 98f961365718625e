package experiment

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/chert-http/chert/lab/chart"
	"github.com/chert-http/chert/lab/gobench"
)

// flintLimit is how many requests pass a limiter.
const flintLimit = 1500

func flint() Experiment {
	return Experiment{
		Name:  "flint",
		Title: "A limiter, TLS, and the parts of a server",
		Asks: "Flint was measured with `hey -n 10000 -c 100` behind a limiter that lets about 1,500 requests pass: over TLS with its pool, and beside it net/http without TLS. " +
			"Its author expected a gap under 5 % with both in plain HTTP and no limiter. A program of the lab sends the same requests to [lab/flint](../../flint/main.go), to net/http and to chert, " +
			"with and without TLS and limiter; and `go test -bench . ./components` measures parts as Flint's table has them.",
		Claims: []Claim{
			{
				Text: "Apples to apples (both HTTP, no limiter) the gap would be under 5 %.",
				Rule: "the rate is 0.95 to 1.05 of net/http's; in part 0.86 to 1.16",
				Here: "{flint/plain/open/rate:nethttp/plain/open/rate} of net/http's rate; CPU {flint/plain/open/cpu:nethttp/plain/open/cpu}",
				Judge: func(v Values) Verdict {
					return within(v.ratio("flint/plain/open/cpu", "nethttp/plain/open/cpu"), 0.95, 1.05, 1.1)
				},
				Why: map[Verdict]string{
					Refuted: "A server from scratch does less than net/http, and is as much faster as it leaves out.",
				},
			},
			{
				Text: "With TLS and a limiter it is about 9 % slower than net/http without TLS (4,902 by 5,408).",
				Rule: "a request costs 1 to 1.25 times the CPU; in part 0.75 to 1.66 times. The rate is limited by the client",
				Here: "{flint/tls/limited/cpu:nethttp/plain/limited/cpu} times the CPU, {flint/tls/limited/rate:nethttp/plain/limited/rate} of the rate",
				Judge: func(v Values) Verdict {
					return within(v.ratio("flint/tls/limited/cpu", "nethttp/plain/limited/cpu"), 1, 1.25, 1.33)
				},
				Why: map[Verdict]string{Refuted: "TLS and what net/http does besides cost about as much as each other: which is more depends on the handshakes, a hundred in a run that lasts less than a second."},
			},
			{
				Text:  "The limiter lets about 1,500 of 10,000 pass, on every server.",
				Rule:  "1,490 to 1,510 on each; in part on some",
				Here:  "its like {flint/plain/limited/ok}, net/http {nethttp/plain/limited/ok}, chert {chert/plain/limited/ok}",
				Judge: needing(limiterPasses, "flint/plain/limited/ok", "nethttp/plain/limited/ok", "chert/plain/limited/ok"),
			},
			{
				Text:  "Parsing takes 3 µs and 13 allocations: a parser without allocations is what to want next.",
				Rule:  "chert's parser makes none, and takes at most a third of net/http's time; in part if one is true",
				Here:  "{parse-get/chert/allocs} allocations and {parse-get/chert/ns:parse-get/std/ns} of net/http's time",
				Judge: needing(parserWithout, "parse-get/chert/allocs", "parse-get/chert/ns", "parse-get/std/ns"),
			},
		},
		Run: runFlint,
	}
}

func limiterPasses(v Values) Verdict {
	passes := func(name string) bool {
		ok := v[name+"/plain/limited/ok"]
		return ok >= flintLimit-10 && ok <= flintLimit+10
	}
	return count(passes("flint"), passes("nethttp"), passes("chert"))
}

func parserWithout(v Values) Verdict {
	return count(v["parse-get/chert/allocs"] == 0, v.ratio("parse-get/chert/ns", "parse-get/std/ns") <= 1.0/3)
}

func runFlint(ctx context.Context, b *Bench, r *Result) error {
	table := Table{Title: "10,000 requests over 100 connections", Columns: []string{"TLS", "limiter", "server", "req/s", "p50 ms", "p95 ms", "p99 ms", "CPU µs", "200s"}}
	groups := chart.Groups{Title: "10,000 requests over 100 connections, with and without TLS and limiter", Axis: "requests per second, one core"}
	for _, limit := range []int{0, flintLimit} {
		specs, err := b.ready(ctx, flintServers(limit, "pool", "nethttp", "chert")...)
		if err != nil {
			return err
		}
		specs[0].Name = "flint"
		for _, tls := range []bool{false, true} {
			names := map[bool][2]string{false: {"plain", "open"}, true: {"tls", "limited"}}
			kind := burstKind{name: names[tls][0] + "/" + names[limit > 0][1], path: "/", clients: b.Scale.of(100, 10), requests: b.Scale.of(10000, 2000), tls: tls}
			results, err := b.bursts(ctx, r, kind, specs, b.Scale.rounds(5))
			if err != nil {
				return err
			}
			bars := chart.Kind{Name: kind.name}
			for i, spec := range specs {
				name, v := spec.Name+"/"+kind.name, r.Values
				v.burst(name, results[i])
				bars.Values = append(bars.Values, v[name+rate])
				table.Rows = append(table.Rows, []string{yes(tls), yes(limit > 0), spec.Name, number(v[name+rate]), number(v[name+p50]), number(v[name+"/p95"]), number(v[name+p99]),
					number(v[name+cpu]), number(v[name+"/ok"])})
			}
			groups.Kinds = append(groups.Kinds, bars)
		}
	}
	groups.Names = []string{"flint", "nethttp", "chert"}
	r.Tables = append(r.Tables, table)
	r.plot("rates", "TLS costs all three about the same; the limiter hardly anything.", groups)
	return b.components(ctx, r)
}

// components runs the benchmarks of the parts.
func (b *Bench) components(ctx context.Context, r *Result) error {
	fmt.Fprintln(b.Log, "benchmarks of the parts")
	all, err := gobench.Run(ctx, "components", time.Duration(b.Scale.of(300, 5))*time.Millisecond, b.Seats.Server)
	if err != nil {
		return err
	}
	table := Table{Title: "Parts, by go test -bench", Columns: []string{"part", "ns/op", "B/op", "allocs/op"}}
	for _, x := range all {
		r.Values[x.Name+"/ns"], r.Values[x.Name+"/bytes"], r.Values[x.Name+"/allocs"] = x.NS, x.Bytes, x.Allocs
		table.Rows = append(table.Rows, []string{x.Name, number(x.NS), number(x.Bytes), number(x.Allocs)})
	}
	r.Tables = append(r.Tables, table)
	return nil
}

// secure is the address of the TLS listener of the program flint.
func secure(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return net.JoinHostPort("127.0.0.2", port)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
