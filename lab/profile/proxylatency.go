package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// runProxyLatency measures what a proxy adds to the latency of requests that come at a rate: each round asks the server behind
// it directly, and then through it.
func runProxyLatency(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Proxy, server: proxyServer}
	l := latency{log: log}
	f := flag.NewFlagSet("proxylatency", flag.ContinueOnError)
	c.register(f, everyone)
	l.register(f)
	f.IntVar(&l.connections, "connections", 32, "how many the requests come on")
	f.IntVar(&l.rate, "rate", 10000, "requests a second, over all connections")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	if l.connections < 1 || l.rate < 1 {
		return fmt.Errorf("%d connections with %d requests a second: neither may be less than 1", l.connections, l.rate)
	}
	err := installed("taskset")
	if err != nil {
		return err
	}
	if l.seats, err = c.seats(-1); err != nil {
		return err
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l.binary = filepath.Join(dir, "pace")
	if err := child.Build(ctx, l.binary, load.PaceFolder); err != nil {
		return err
	}
	turns := make([][]latencyTurn, len(specs))
	if err := l.inTurn(len(specs), func(i int, name string) error {
		t, err := l.turn(ctx, specs[i], name)
		if err != nil {
			return fmt.Errorf("%s: %w", specs[i].Name, err)
		}
		turns[i] = append(turns[i], t)
		return nil
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "proxylatency: %d connections to a proxy, %d requests a second: %d rounds of %d s directly and %d s through it, %s\n",
		l.connections, l.rate, l.Rounds, l.Seconds, l.Seconds, l.seats.Describe("load"))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "medians of the rounds\treq/s\tp50 directly\tp50\tadded\tp99 directly\tp99\tadded\tsteal worst\tothers worst\t")
	for i, spec := range specs {
		fmt.Fprintln(table, latencyRow(spec.Name, turns[i]))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return c.finish(report.File{}, l.faults, out)
}

// latency takes the rounds.
type latency struct {
	Pace
	connections, rate int
	seats             Seats
	binary            string // of load.PaceFolder
	log               io.Writer
	faults            []string
}

// latencyTurn is one server in one round.
type latencyTurn struct {
	directly, through load.Timings
	spent             Cost
}

func (l *latency) turn(ctx context.Context, spec rival.Spec, name string) (t latencyTurn, err error) {
	s, err := rival.Start(ctx, spec, rival.Room{Cores: l.seats.Server, Connections: l.connections})
	if err != nil {
		return t, err
	}
	defer s.Stop()
	answer, err := exchange.Fetch(ctx, s.Addr, exchange.Get("/"))
	if err == nil {
		err = answer.Differs(exchange.OK("text/plain", work.Hello))
	}
	if err != nil {
		return t, err
	}
	plan := load.Paced{Addr: s.Origin(), Path: "/", Connections: l.connections, PerSecond: float64(l.rate), Seconds: float64(l.Seconds)}
	direct, _, err := plan.Child(ctx, l.binary, l.seats.Load)
	if err != nil {
		return t, err
	}
	plan.Addr = s.Addr
	var through load.PacedResult
	t.spent, err = Spend(s, l.seats, func() (used time.Duration, err error) {
		through, used, err = plan.Child(ctx, l.binary, l.seats.Load)
		return used, err
	})
	if err != nil {
		return t, err
	}
	t.directly, t.through = direct.Timings, through.Timings
	if failed := direct.Errors + through.Errors; failed > 0 || t.through.Requests == 0 {
		l.faults = append(l.faults, fmt.Sprintf("%s, %s: %d connections failed, %s", spec.Name, name, failed, direct.Fault+through.Fault))
	}
	fmt.Fprintf(l.log, "%-12s %-24s p50 %v and %v, p99 %v and %v\n", name, spec.Name, t.directly.P50, t.through.P50, t.directly.P99, t.through.P99)
	return t, nil
}

// latencyRow is a server's line in the table.
func latencyRow(name string, turns []latencyTurn) string {
	median := func(of func(latencyTurn) time.Duration) time.Duration {
		var all []time.Duration
		for _, t := range turns {
			all = append(all, of(t))
		}
		slices.Sort(all)
		return all[len(all)/2].Round(time.Microsecond)
	}
	var rates []float64
	var steal, others float64
	for _, t := range turns {
		rates = append(rates, t.through.PerSecond)
		steal, others = max(steal, t.spent.Steal), max(others, t.spent.Others)
	}
	slices.Sort(rates)
	return fmt.Sprintf("%s\t%.0f\t%v\t%v\t%v\t%v\t%v\t%v\t%.1f %%\t%.1f %%\t", name, rates[len(rates)/2],
		median(func(t latencyTurn) time.Duration { return t.directly.P50 }),
		median(func(t latencyTurn) time.Duration { return t.through.P50 }),
		median(func(t latencyTurn) time.Duration { return t.through.P50 - t.directly.P50 }),
		median(func(t latencyTurn) time.Duration { return t.directly.P99 }),
		median(func(t latencyTurn) time.Duration { return t.through.P99 }),
		median(func(t latencyTurn) time.Duration { return t.through.P99 - t.directly.P99 }),
		steal, others)
}
