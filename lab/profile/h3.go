package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/files"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// h3Rivals are measured over HTTP/3 if they have it, else over HTTP/2.
const h3Rivals = "chert3direct,quicgo,caddy3,nethttp,chert"

// h3Scenes are profiles over HTTP/3, with load.Gets. Servers without HTTP/3 take part over TLS and HTTP/2, with as many
// streams: what HTTP/3 costs more is in the same rounds.
func h3Scenes() []scene {
	hello := exchange.OK("text/plain", work.Hello)
	all := []scene{
		{name: "h3hello1", about: "HTTP/3: \"Hello, World!\", 64 connections with one stream at a time", title: "%d connections of 1 stream",
			connections: "64", streams: 1, request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "h3hello16", about: "HTTP/3: the same, 8 connections of 16 streams", title: "%d connections of 16 streams",
			connections: "8", streams: 16, request: exchange.Get("/"), want: hello, needs: rival.Answers},
		{name: "h3file1k", about: "HTTP/3: a file of 1 KiB", title: "%d connections of 16 streams, a file of 1 KiB",
			connections: "8", streams: 16, rivals: "chert3direct,quicgo,caddy3,nethttpfiles,chertfiles",
			needs: rival.Files, folder: &folder{files: []files.File{{Name: "/file1k.css", Size: 1 << 10}}}},
	}
	for i := range all {
		s := &all[i]
		s.server, s.tls, s.h3 = "chert3", true, true
		s.needs |= rival.H2
		s.title += ", HTTP/3 (chert3, quicgo, caddy3) or HTTP/2"
		if s.rivals == "" {
			s.rivals = h3Rivals
		}
	}
	return all
}

// runH3Idle is idle over HTTP/3.
func runH3Idle(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Code | rival.H2, server: "chert3"}
	f := flag.NewFlagSet("h3idle", flag.ContinueOnError)
	c.register(f, "quicgo,nethttp,chert")
	connections := f.Int("connections", 2000, "how many to hold")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	how := Holding{Open: OpenBy(load.OpenIdleH2), H3: OpenBy(load.OpenIdleH3), TLS: true, Heap: *heap}
	return c.hold(ctx, *connections, "keep-alive connections after one request on each", how, out, log)
}

// runH3Download measures one download after another, each over a connection of its own.
func runH3Download(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Streams | rival.H2, server: "chert3"}
	p := Pace{}
	f := flag.NewFlagSet("h3download", flag.ContinueOnError)
	c.register(f, "quicgo,nethttp,chert")
	f.IntVar(&p.Rounds, "rounds", 3, "how many downloads of each server")
	size := f.Int("mib", 1024, "MiB of a download")
	if err := parse(f, args); err != nil {
		return err
	}
	if p.Rounds < 1 || *size < 1 {
		return fmt.Errorf("%d rounds of %d MiB: too little", p.Rounds, *size)
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
	d := download{Pace: p, seats: seats, size: *size, binary: filepath.Join(dir, "pace"), log: log}
	if err := child.Build(ctx, d.binary, load.PaceFolder); err != nil {
		return err
	}
	table, err := d.measure(ctx, specs)
	if err != nil {
		return err
	}
	table.Text(out)
	return c.finish(report.File{Streams: []report.Stream{table}}, d.faults, out)
}

// download takes the rounds of runH3Download.
type download struct {
	Pace
	seats  Seats
	size   int    // MiB
	binary string // of load.PaceFolder
	log    io.Writer
	faults []string
}

func (d *download) measure(ctx context.Context, specs []rival.Spec) (report.Stream, error) {
	table := report.Stream{Kind: "download with a length", Base: "quicgo", Title: fmt.Sprintf(
		"h3download, GET of %d MiB with a length, HTTP/3 (chert3, quicgo) or HTTP/2: %d rounds, %s", d.size, d.Rounds, d.seats.Describe("load"))}
	var servers []*rival.Server
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, rival.Room{Cores: d.seats.Server, Connections: 10, TLS: true})
		if err != nil {
			return table, err
		}
		defer s.Stop()
		servers = append(servers, s)
		table.Series = append(table.Series, report.StreamSeries{Server: spec.Name})
	}
	err := d.inTurn(len(servers), func(i int, name string) error {
		round, err := d.turn(ctx, servers[i], name)
		table.Series[i].Rounds = append(table.Series[i].Rounds, round)
		return err
	})
	return table, err
}

func (d *download) turn(ctx context.Context, s *rival.Server, name string) (round report.StreamRound, err error) {
	length := int64(d.size) << 20
	// The time is over when the first download has begun.
	plan := load.Gets{Addr: s.TLS, H3: s.Does.Has(rival.H3), Path: fmt.Sprintf("/debug/give?bytes=%d&length", length), Length: length,
		Connections: 1, Streams: 1, Seconds: 0.001, Patience: 600, Server: s.PID()}
	got, server, err := plan.Child(ctx, d.binary, d.seats.Load)
	if err != nil {
		return round, fmt.Errorf("%s: %w", s.Name, err)
	}
	round = report.StreamRound{Errors: got.Errors.Sum()}
	if mib := float64(got.Requests) * float64(d.size); mib > 0 {
		round.CPU, round.Rate = micros(server.Total)/mib, got.PerSecond*float64(d.size)
	}
	if round.Errors > 0 || got.Requests == 0 {
		d.faults = append(d.faults, fmt.Sprintf("%s, %s: %d downloads; %s", s.Name, name, got.Requests, got.Fault))
	}
	fmt.Fprintf(d.log, "%-12s %-24s %5.0f us/MiB %6.0f MiB/s  %d errors\n", name, s.Name, round.CPU, round.Rate, round.Errors)
	return round, nil
}
