package profile

import (
	"context"
	"errors"
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

// runEventsIdle is idle with streams of events.
func runEventsIdle(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Events, server: "chertevents"}
	f := flag.NewFlagSet("sseidle", flag.ContinueOnError)
	c.register(f, "nethttp")
	connections := f.Int("connections", 10000, "how many streams to hold")
	secure := f.Bool("tls", false, "with TLS")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	title := "streams of events on which nothing happens"
	return c.hold(ctx, *connections, title, Holding{Open: load.OpenEvents, TLS: *secure, Heap: *heap, publishes: true}, out, log)
}

func runEventsBroadcast(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Events, server: "chertevents"}
	f := flag.NewFlagSet("ssebroadcast", flag.ContinueOnError)
	c.register(f, "nethttp")
	receivers := f.Int("receivers", 10000, "how many streams get each event")
	events := f.Int("events", 20, "how many events are published in a turn")
	size := f.Int("size", 64, "bytes of data of an event")
	rounds := f.Int("rounds", 7, "how many turns each server has")
	if err := parse(f, args); err != nil {
		return err
	}
	if *receivers < 1 || *events < 1 || *events > 64 || *size < 1 || *rounds < 1 {
		return errors.New("--receivers, --events (up to 64), --size and --rounds may not be less than 1")
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	seats, err := c.seats(-1)
	if err != nil {
		return err
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limit, err := load.RaiseFiles(*receivers*len(specs) + spareFiles)
	if err != nil {
		return err
	}
	n, message := clamp(*receivers, len(specs), limit)
	if message != "" {
		fmt.Fprintln(log, message)
	}
	table := report.Broadcast{Title: fmt.Sprintf("ssebroadcast, %d receivers of %d events of %d bytes: %d rounds, %s", n, *events, *size, *rounds, seats.Describe("load"))}
	var servers []*rival.Server
	var streams []*load.Idle
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, rival.Room{Cores: seats.Server, Connections: n})
		if err != nil {
			return err
		}
		defer s.Stop()
		i, err := load.OpenEvents(ctx, s.Addr, n, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		defer i.Close()
		servers, streams = append(servers, s), append(streams, i)
		table.Series = append(table.Series, report.BroadcastSeries{Server: s.Name})
	}
	p := Pace{Rounds: *rounds + 1} // the first is a warm-up
	err = p.inTurn(len(servers), func(i int, turn string) error {
		begin := time.Now()
		var took time.Duration
		spent, err := Spend(servers[i], seats, func() (time.Duration, error) {
			before, err := measure.Own()
			if err != nil {
				return 0, err
			}
			if err := streams[i].Receive(ctx, servers[i].Addr, *events, *size); err != nil {
				return 0, err
			}
			took = time.Since(begin)
			after, err := measure.Own()
			return after.Sub(before).Total, err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		each := float64(n * *events)
		round := report.BroadcastRound{CPU: micros(spent.CPU.Total) / each, Rate: each / took.Seconds(), Steal: spent.Steal, Others: spent.Others}
		fmt.Fprintf(log, "%-12s %-24s %6.2f us/event  %8.0f events/s  steal %.1f %%  others %.1f %%\n", turn, servers[i].Name, round.CPU, round.Rate, round.Steal, round.Others)
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
	return c.finish(report.File{Broadcast: &table}, nil, out)
}
