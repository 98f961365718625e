package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// duet is a measurement of fast requests beside slow ones in the same server.
type duet struct {
	name, about string
	slow        []slowWork // a table for each
	streams     bool       // of one connection, over TLS and HTTP/2
}

// slowWork is what the other requests ask for.
type slowWork struct {
	what string // for the title
	path string
	turn string // if not empty, the path is fast until this one is requested
	// busy: it keeps a core busy, so by default there are only as many as leave half of the cores free.
	busy bool
}

func duets() []duet {
	return []duet{
		{name: "fastslow", about: "fast requests beside a handler that sleeps 20 ms: their latency alone and beside", slow: []slowWork{{"sleep", "/sleep", "", false}}},
		{name: "h2slowstreams", about: "HTTP/2: the same as streams of one connection", slow: []slowWork{{"sleep", "/sleep", "", false}}, streams: true},
		{name: "fastcompute", about: "fast requests beside a handler that computes for 20 ms", slow: []slowWork{{"compute", "/compute", "", true}}},
		{name: "fastturns", about: "fast requests beside a handler that is fast too until it turns to sleeping, or computing", slow: []slowWork{
			{"turn to sleep", "/turning", "/turn?to=sleep", false}, {"turn to compute", "/turning", "/turn?to=compute", true}}},
	}
}

// run is the Run of a duet's Profile.
func (d duet) run(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Code}
	if d.streams {
		c.needs |= rival.H2
	}
	var p Pace
	f := flag.NewFlagSet(d.name, flag.ContinueOnError)
	c.register(f, everyone)
	p.register(f)
	connections := f.Int("connections", 32, "how many for the fast requests")
	slows := f.Int("slow", 0, "connections for the slow ones (0: as many, of computing ones half as many as there are cores, at least 1)")
	together := f.Bool("together", false, "slow requests begin at once and stay in step, not spread over the time that one sleeps")
	rate := f.Int("rate", 2000, "fast requests per second, over all connections")
	loadCore := f.Int("load-core", -1, "the core the load comes from (-1: the first no server has)")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	if *connections < 1 || *rate < 1 || *slows < 0 {
		return fmt.Errorf("%d connections with %d requests a second: neither may be less than 1; %d slow ones: not less than 0", *connections, *rate, *slows)
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	seats, err := c.seats(*loadCore)
	if err != nil {
		return err
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := recital{Pace: p, seats: seats, binary: filepath.Join(dir, "pace"), log: log}
	if err := child.Build(ctx, r.binary, load.PaceFolder); err != nil {
		return err
	}
	var file report.File
	for _, slow := range d.slow {
		plan := load.Beside{Fast: "/", Slow: slow.path, Turn: slow.turn, Connections: *connections, Slows: slow.connections(*slows, *connections, c.cores), PerSecond: float64(*rate), Seconds: float64(p.Seconds), Streams: d.streams}
		if !*together && !slow.busy {
			plan.Spread = work.Pause
		}
		if slow.turn != "" {
			plan.SlowBefore = plan.PerSecond
		}
		kind, slowKind := "connections", ""
		if d.streams {
			kind = "streams of one connection"
		}
		if *together {
			slowKind = " in step"
		}
		title := fmt.Sprintf("%s, %s: %d %s with %d fast requests a second, %d with slow ones%s: %d rounds of %d x %d s, %s",
			d.name, slow.what, *connections, kind, *rate, plan.Slows, slowKind, p.Rounds, parts(plan), p.Seconds, seats.Describe("load"))
		table, err := r.table(ctx, specs, plan)
		if err != nil {
			return err
		}
		table.Title, table.Slow = title, slow.what
		table.Text(out)
		fmt.Fprintln(out)
		file.Besides = append(file.Besides, table)
	}
	return c.finish(file, r.faults, out)
}

// connections is how many ask for the slow work.
func (s slowWork) connections(wanted, fast, cores int) int {
	switch {
	case wanted > 0:
		return wanted
	case s.busy:
		return max(1, cores/2)
	}
	return fast
}

// recital takes the rounds of a duet.
type recital struct {
	Pace
	seats  Seats
	binary string // of load.PaceFolder
	log    io.Writer
	faults []string
}

func (r *recital) table(ctx context.Context, specs []rival.Spec, plan load.Beside) (report.Beside, error) {
	var table report.Beside
	for _, spec := range specs {
		table.Series = append(table.Series, report.BesideSeries{Server: spec.Name})
	}
	fmt.Fprintf(r.log, "%d servers, %d rounds of %d x %d s, about %v\n", len(specs), r.Rounds, parts(plan), r.Seconds,
		time.Duration(len(specs)*r.Rounds*parts(plan)*r.Seconds)*time.Second)
	err := r.inTurn(len(specs), func(i int, name string) error {
		got, err := r.turn(ctx, specs[i], plan, name)
		if err != nil {
			return fmt.Errorf("%s: %w", specs[i].Name, err)
		}
		table.Series[i].Rounds = append(table.Series[i].Rounds, got)
		return nil
	})
	return table, err
}

// parts is how many times a round is measured: streams also beside slow ones of another connection.
func parts(plan load.Beside) int {
	if plan.Streams {
		return 3
	}
	return 2
}

// turn measures one server, in a process of its own each time: none must know from earlier which handler is slow.
func (r *recital) turn(ctx context.Context, spec rival.Spec, plan load.Beside, name string) (report.BesideRound, error) {
	var round report.BesideRound
	s, err := rival.Start(ctx, spec, rival.Room{Cores: r.seats.Server, Connections: plan.Connections + plan.Slows, TLS: plan.Streams})
	if err != nil {
		return round, err
	}
	defer s.Stop()
	if err := both(ctx, s, plan); err != nil {
		return round, err
	}
	if plan.Addr = s.Addr; plan.Streams {
		plan.Addr = s.TLS
	}
	var res load.BesideResult
	spent, err := Spend(s, r.seats, func() (used time.Duration, err error) {
		res, err = plan.Child(ctx, r.binary, r.seats.Load)
		return res.CPU, err
	})
	if err != nil {
		return round, err
	}
	if err := both(ctx, s, plan); err != nil {
		return round, fmt.Errorf("after its turn: %w", err)
	}
	round = besideRoundOf(res, spent)
	if round.Errors > 0 || res.Beside.Requests == 0 || res.Slow.Requests == 0 {
		r.faults = append(r.faults, fmt.Sprintf("%s, %s: %d fast and %d slow requests answered; %d connections failed, %s",
			spec.Name, name, res.Beside.Requests, res.Slow.Requests, res.Errors, res.Fault))
	}
	fmt.Fprintf(r.log, "%-12s %-24s p99 alone %.2f ms, beside %.2f ms  %.0f fast and %.0f slow req/s  %d errors  steal %.1f %%  others %.1f %%\n",
		name, spec.Name, round.AloneP99, round.BesideP99, round.Fast, round.Slow, round.Errors, round.Steal, round.Others)
	return round, nil
}

// both checks the answers to the two kinds of requests.
func both(ctx context.Context, s *rival.Server, plan load.Beside) error {
	for _, path := range []string{plan.Fast, plan.Slow} {
		fetch, addr := exchange.Fetch, s.Addr
		if plan.Streams {
			fetch, addr = exchange.FetchH2, s.TLS
		}
		answer, err := fetch(ctx, addr, exchange.Get(path))
		if err == nil {
			err = answer.Differs(exchange.OK("text/plain", work.Hello))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func besideRoundOf(res load.BesideResult, spent Cost) report.BesideRound {
	return report.BesideRound{
		AloneP50: millis(res.Alone.P50), AloneP99: millis(res.Alone.P99), ApartP99: millis(res.Apart.P99),
		BesideP50: millis(res.Beside.P50), BesideP99: millis(res.Beside.P99), BesideMax: millis(res.Beside.Max),
		FastBefore: res.Alone.PerSecond, Fast: res.Beside.PerSecond, Slow: res.Slow.PerSecond,
		Errors: res.Errors, Steal: spent.Steal, Others: spent.Others,
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
