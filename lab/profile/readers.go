package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// What the readers read.
var (
	fastFile = files.File{Name: "/fast.jpg", Size: 1 << 20}
	slowFile = files.File{Name: "/slow.iso", Size: 10 << 30, Sparse: true}
)

func runReaders(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Files, server: fileServer}
	a := audience{log: log}
	f := flag.NewFlagSet("slowreaders", flag.ContinueOnError)
	c.register(f, everyone)
	a.Pace.register(f)
	f.IntVar(&a.plan.Connections, "connections", 1, "how many for the fast download")
	f.IntVar(&a.plan.Slows, "slow", 1000, "how many slow readers")
	f.IntVar(&a.plan.Rate, "rate", 64<<10, "bytes a second that each of them reads")
	loadCore := f.Int("load-core", -1, "the core the load comes from (-1: the first no server has)")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := a.Pace.check(); err != nil {
		return err
	}
	if a.plan.Connections < 1 || a.plan.Slows < 1 || a.plan.Rate < 1 {
		return fmt.Errorf("%d connections, %d slow readers, %d bytes a second: none may be less than 1", a.plan.Connections, a.plan.Slows, a.plan.Rate)
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	var err error
	if a.seats, err = c.seats(*loadCore); err != nil {
		return err
	}
	limit, err := load.RaiseFiles(2*a.plan.Slows + a.plan.Connections + spareFiles) // a server may have one more for each
	if err != nil {
		return err
	}
	if most := (limit - spareFiles - a.plan.Connections) / 2; a.plan.Slows > most {
		return fmt.Errorf("the limit of open files is %d: no more than %d slow readers (raise it with ulimit -Hn)", limit, most)
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a.folder, err = files.Write("", []files.File{fastFile, slowFile})
	defer os.RemoveAll(a.folder)
	if err != nil {
		return err
	}
	a.binary = filepath.Join(dir, "pace")
	if err := child.Build(ctx, a.binary, load.PaceFolder); err != nil {
		return err
	}
	table, err := a.table(ctx, specs)
	if err != nil {
		return err
	}
	table.Text(out)
	return c.finish(report.File{Readers: &table}, a.faults, out)
}

// audience takes the rounds of slow readers.
type audience struct {
	Pace
	plan   load.Readers
	seats  Seats
	folder string
	binary string // of load.PaceFolder
	log    io.Writer
	faults []string
}

func (a *audience) table(ctx context.Context, specs []rival.Spec) (report.Readers, error) {
	a.plan.Fast, a.plan.Slow, a.plan.Seconds = fastFile.Name, slowFile.Name, float64(a.Seconds)
	table := report.Readers{Title: fmt.Sprintf("slowreaders, %d connections with 1 MiB, %d with 10 GiB at %d KiB/s each: %d rounds of 2 x %d s, %s",
		a.plan.Connections, a.plan.Slows, a.plan.Rate>>10, a.Rounds, a.Seconds, a.seats.Describe("load"))}
	for _, spec := range specs {
		table.Series = append(table.Series, report.ReadersSeries{Server: spec.Name})
	}
	err := a.inTurn(len(specs), func(i int, name string) error {
		got, err := a.turn(ctx, specs[i], name)
		if err != nil {
			return fmt.Errorf("%s: %w", specs[i].Name, err)
		}
		table.Series[i].Rounds = append(table.Series[i].Rounds, got)
		return nil
	})
	return table, err
}

// turn measures one server, in a process of its own each time: what it needs for a thousand slow readers it may keep.
func (a *audience) turn(ctx context.Context, spec rival.Spec, name string) (report.ReadersRound, error) {
	var round report.ReadersRound
	s, err := rival.Start(ctx, spec, rival.Room{Cores: a.seats.Server, Connections: a.plan.Connections + a.plan.Slows, Files: a.folder})
	if err != nil {
		return round, err
	}
	defer s.Stop()
	if err := checkFast(ctx, s); err != nil {
		return round, err
	}
	before, err := measure.ResidentTree(s.PID())
	if err != nil {
		return round, err
	}
	plan := a.plan
	plan.Addr = s.Addr
	var res load.ReadersResult
	watched := watch(ctx, s)
	spent, err := Spend(s, a.seats, func() (used time.Duration, err error) {
		res, err = plan.Child(ctx, a.binary, a.seats.Load)
		return res.CPU, err
	})
	most := watched()
	if err != nil {
		return round, err
	}
	if err := checkFast(ctx, s); err != nil {
		return round, fmt.Errorf("after its turn: %w", err)
	}
	round = readersRoundOf(res, spent, a.Seconds)
	round.Before, round.Most = before, max(before, most)
	if round.Errors > 0 || res.Alone.Requests == 0 || res.Beside.Requests == 0 || res.SlowBytes < res.Wanted/2 {
		a.faults = append(a.faults, fmt.Sprintf("%s, %s: %d and %d fast downloads, slow readers got %d bytes of %d; %d connections failed, %s",
			spec.Name, name, res.Alone.Requests, res.Beside.Requests, res.SlowBytes, res.Wanted, res.Errors, res.Fault))
	}
	fmt.Fprintf(a.log, "%-12s %-24s alone %.0f MiB/s, beside %.0f MiB/s  slow %.1f MiB/s  %.1f MiB resident  %d errors  steal %.1f %%  others %.1f %%\n",
		name, spec.Name, round.Alone, round.Beside, round.Slow, float64(round.Most)/(1<<20), round.Errors, round.Steal, round.Others)
	return round, nil
}

func checkFast(ctx context.Context, s *rival.Server) error {
	content, err := fastFile.Content()
	if err != nil {
		return err
	}
	answer, err := exchange.Fetch(ctx, s.Addr, exchange.Get(fastFile.Name))
	if err == nil {
		err = answer.Differs(exchange.OK("", content))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fastFile.Name, err)
	}
	return nil
}

// watch samples a server's memory. The function it returns ends that, and returns the maximum.
func watch(ctx context.Context, s *rival.Server) (end func() int64) {
	const pause = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	var most int64
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			if n, err := measure.ResidentTree(s.PID()); err == nil { // if it has ended, others say so
				most = max(most, n)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	})
	return func() int64 {
		cancel()
		watching.Wait()
		return most
	}
}

func readersRoundOf(res load.ReadersResult, spent Cost, seconds int) report.ReadersRound {
	mib := func(bytes float64) float64 { return bytes / (1 << 20) }
	return report.ReadersRound{
		Alone: mib(res.Alone.PerSecond * float64(fastFile.Size)), AloneP99: millis(res.Alone.P99),
		Beside: mib(res.Beside.PerSecond * float64(fastFile.Size)), BesideP99: millis(res.Beside.P99), BesideMax: millis(res.Beside.Max),
		Slow: mib(float64(res.SlowBytes) / float64(seconds)), Errors: res.Errors, Steal: spent.Steal, Others: spent.Others,
	}
}
