package experiment

import (
	"context"
	"fmt"

	"github.com/chert-http/chert/lab/chart"
)

func keepalive() Experiment {
	return Experiment{
		Name:  "keepalive",
		Title: "What keeping connections is worth",
		Asks: "The C server was measured with one thread, with and without keep-alive, and gained three times by it. Here every server is, with one core and 100 connections: " +
			"kept for all requests, or opened and closed for each. The third stage of [lab/stages](../../stages/README.md) is closest to the C server.",
		Needs: []string{"wrk"},
		Helps: []string{"nginx", "h2o"},
		Claims: []Claim{
			{
				Text: "A connection that is kept serves three times as many requests (152,935 by 51,105: 2.99).",
				Rule: "the third stage gains 2.4 to 3.7 times; in part 1.6 to 5.6 times",
				Here: "{stage3/kept/rate:stage3/closed/rate} times",
				Judge: func(v Values) Verdict {
					return within(v.ratio("stage3/kept/rate", "stage3/closed/rate"), 2.4, 3.7, 1.5)
				},
				Why: map[Verdict]string{HeldInPart: "How much a connection costs depends on the kernel; that it costs several times as much as a request does not."},
			},
			{
				Text:  "chert loses no more by closing than nginx does.",
				Rule:  "chert's gain by keeping is at most 1.1 of nginx's; in part 1.4",
				Here:  "chert {chert/kept/rate:chert/closed/rate}, nginx {nginx/kept/rate:nginx/closed/rate} times",
				Judge: closingLikeNginx,
				Why:   map[Verdict]string{HeldInPart: "chert makes more for a new connection than nginx, which reuses what it has.", Refuted: "chert makes more for a new connection than nginx, which reuses what it has."},
			},
		},
		Run: runKeepalive,
	}
}

func closingLikeNginx(v Values) Verdict {
	chert, nginx := v.ratio("chert/kept/rate", "chert/closed/rate"), v.ratio("nginx/kept/rate", "nginx/closed/rate")
	return within(chert/nginx, 0, 1.1, 1.4/1.1)
}

func runKeepalive(ctx context.Context, b *Bench, r *Result) error {
	all, err := stageEntrants(ctx, b, 3)
	if err != nil {
		return err
	}
	specs, err := b.servers(ctx, r, "chert", "chertdirect", "nethttp", "fasthttp", "hertz", "nginx", "h2o")
	if err != nil {
		return err
	}
	if b.Scale.Short {
		specs = specs[:1]
	}
	all = append(all, entrants(specs)...)
	groups := chart.Groups{Title: "Connections kept, or one for each request", Axis: "requests per second, one core"}
	table := Table{Title: "Kept and closed", Columns: []string{"server", "kept req/s", "CPU µs", "closed req/s", "CPU µs", "gain"}}
	for _, e := range all {
		groups.Names = append(groups.Names, e.Name)
		table.Rows = append(table.Rows, []string{e.Name})
	}
	for _, how := range []string{"kept", "closed"} {
		check := hello()
		if how == "closed" {
			check = closing()
		}
		fmt.Fprintln(b.Log, "connections", how)
		series, err := b.contest(ctx, r, contest{check: check, connections: 100, rounds: b.Scale.rounds(5)}, all)
		if err != nil {
			return err
		}
		kind := chart.Kind{Name: how}
		for i, s := range series {
			name := s.Server + "/" + how
			r.Values.series(name, s)
			kind.Values = append(kind.Values, r.Values[name+rate])
			table.Rows[i] = append(table.Rows[i], number(r.Values[name+rate]), number(r.Values[name+cpu]))
		}
		groups.Kinds = append(groups.Kinds, kind)
	}
	for i, e := range all {
		table.Rows[i] = append(table.Rows[i], number(r.Values.ratio(e.Name+"/kept/rate", e.Name+"/closed/rate")))
	}
	r.Tables = append(r.Tables, table)
	r.plot("rates", "A connection costs several times as much as a request, on every server.", groups)
	return nil
}
