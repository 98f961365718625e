package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// runFar measures uploads through a relay that delays what it passes on.
func runFar(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Code | rival.H2}
	p := Pace{}
	f := flag.NewFlagSet("h2far", flag.ContinueOnError)
	c.register(f, "nethttp")
	f.IntVar(&p.Rounds, "rounds", 3, "how many uploads each server gets")
	size := f.Int("mib", 1024, "MiB of an upload")
	delay := f.Duration("delay", 50*time.Millisecond, "of each direction")
	if err := parse(f, args); err != nil {
		return err
	}
	if p.Rounds < 1 || *size < 1 || *delay < 0 {
		return fmt.Errorf("%d rounds of %d MiB with a delay of %v: too little", p.Rounds, *size, *delay)
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
	table := report.Far{Title: fmt.Sprintf("h2far, POST of %d MiB over TLS and HTTP/2, each direction delayed by %v: %d rounds, %s",
		*size, *delay, p.Rounds, fmt.Sprintf("servers on core %d", seats.Server[0]))}
	var relays []*load.Relay
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, rival.Room{Cores: seats.Server, Connections: 10, TLS: true})
		if err != nil {
			return err
		}
		defer s.Stop()
		relay, err := load.OpenRelay(s.TLS, *delay)
		if err != nil {
			return err
		}
		defer relay.Close()
		relays = append(relays, relay)
		table.Series = append(table.Series, report.FarSeries{Server: spec.Name})
	}
	err = p.inTurn(len(specs), func(i int, name string) error {
		took, err := load.UploadH2(ctx, relays[i].Addr, int64(*size)<<20)
		if err != nil {
			return fmt.Errorf("%s: %w", specs[i].Name, err)
		}
		rate := float64(*size) / took.Seconds()
		table.Series[i].Rates = append(table.Series[i].Rates, rate)
		fmt.Fprintf(log, "%-12s %-24s %.1f MiB/s\n", name, specs[i].Name, rate)
		return nil
	})
	if err != nil {
		return err
	}
	table.Text(out)
	return c.finish(report.File{Fars: []report.Far{table}}, nil, out)
}
