package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// broadcast measures what many connections get at once.
type broadcast struct {
	common
	open  Opener // connections that receive
	what  string // they receive: "event"
	apart bool   // one is published when all connections have the last; else all at once
	count int    // in a turn

	receivers, size, rounds int
}

// run parses the flags and measures. Those of common and count are registered.
func (b *broadcast) run(ctx context.Context, f *flag.FlagSet, args []string, out, log io.Writer) error {
	f.IntVar(&b.receivers, "receivers", 10000, "how many connections get each "+b.what)
	f.IntVar(&b.size, "size", 64, "bytes of one "+b.what)
	f.IntVar(&b.rounds, "rounds", 7, "how many turns each server has")
	if err := parse(f, args); err != nil {
		return err
	}
	if b.receivers < 1 || b.count < 1 || b.count > 64 || b.size < 1 || b.size > 1<<16-1 || b.rounds < 1 {
		return fmt.Errorf("--receivers, --%ss (up to 64), --size (up to 65535) and --rounds may not be less than 1", b.what)
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	seats, err := b.seats(-1)
	if err != nil {
		return err
	}
	specs, dir, err := b.common.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limit, err := load.RaiseFiles(b.receivers*len(specs) + spareFiles)
	if err != nil {
		return err
	}
	n, message := clamp(b.receivers, len(specs), limit)
	if message != "" {
		fmt.Fprintln(log, message)
	}
	how := ""
	if b.apart {
		how = ", one after the other"
	}
	table := report.Broadcast{What: b.what, Title: fmt.Sprintf("%s, %d receivers of %d %ss of %d bytes%s: %d rounds, %s",
		b.profile, n, b.count, b.what, b.size, how, b.rounds, seats.Describe("load"))}
	var servers []*rival.Server
	var receivers []*load.Idle
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, rival.Room{Cores: seats.Server, Connections: n})
		if err != nil {
			return err
		}
		defer s.Stop()
		i, err := b.open(ctx, s.Addr, n, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		defer i.Close()
		servers, receivers = append(servers, s), append(receivers, i)
		table.Series = append(table.Series, report.BroadcastSeries{Server: s.Name})
	}
	p := Pace{Rounds: b.rounds + 1} // the first is a warm-up
	err = p.inTurn(len(servers), func(i int, turn string) error {
		round, err := b.turn(ctx, servers[i], receivers[i], n, seats)
		if err != nil {
			return fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		fmt.Fprintf(log, "%-12s %-24s %6.2f us/%s  %8.0f %ss/s  steal %.1f %%  others %.1f %%\n",
			turn, servers[i].Name, round.CPU, b.what, round.Rate, b.what, round.Steal, round.Others)
		table.Series[i].Rounds = append(table.Series[i].Rounds, round)
		return nil
	})
	if err != nil {
		return err
	}
	for i := range table.Series {
		table.Series[i].Rounds = table.Series[i].Rounds[1:]
	}
	table.Text(out)
	return b.finish(report.File{Broadcast: &table}, nil, out)
}

// turn publishes, and reads on all connections.
func (b *broadcast) turn(ctx context.Context, s *rival.Server, receivers *load.Idle, n int, seats Seats) (report.BroadcastRound, error) {
	times, together := 1, b.count
	if b.apart {
		times, together = b.count, 1
	}
	var took time.Duration
	spent, err := Spend(s, seats, func() (time.Duration, error) {
		before, err := measure.Own()
		if err != nil {
			return 0, err
		}
		begin := time.Now()
		for range times {
			if err := receivers.Receive(ctx, s.Addr, together, b.size); err != nil {
				return 0, err
			}
		}
		took = time.Since(begin)
		after, err := measure.Own()
		return after.Sub(before).Total, err
	})
	if err != nil {
		return report.BroadcastRound{}, err
	}
	each := float64(n * b.count)
	return report.BroadcastRound{CPU: micros(spent.CPU.Total) / each, Rate: each / took.Seconds(), Steal: spent.Steal, Others: spent.Others}, nil
}
