package profile

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// streamKinds are the tables. Bodies are what is sent, in chunks or with a length, and what is received.
func streamKinds(size int64) []streamKind {
	give := fmt.Sprint("/debug/give?bytes=", size)
	return []streamKind{
		{"echo, chunked", load.Stream{Method: "POST", Path: "/stream/echo", Send: size, Chunked: true, Receive: size}},
		{"upload, chunked", load.Stream{Method: "POST", Path: "/stream/take", Send: size, Chunked: true}},
		{"upload with a length", load.Stream{Method: "POST", Path: "/stream/take", Send: size}},
		{"download, chunked", load.Stream{Method: "GET", Path: give, Receive: size}},
		{"download with a length", load.Stream{Method: "GET", Path: give + "&length", Receive: size}},
	}
}

type streamKind struct {
	name string
	plan load.Stream
}

// streamBase is the server that the others are compared with.
const streamBase = "nethttp"

func runStream(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Streams}
	var p Pace
	f := flag.NewFlagSet("stream", flag.ContinueOnError)
	c.register(f, everyone)
	p.register(f)
	connections := f.Int("connections", 4, "how many, each with one body at a time")
	size := f.Int("mib", 64, "MiB of a body")
	only := f.String("only", "", "the tables whose name has this in it")
	loadCore := f.Int("load-core", -1, "the core the load comes from (-1: the first no server has)")
	if err := parse(f, args); err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	if *connections < 1 || *size < 1 {
		return fmt.Errorf("%d connections with bodies of %d MiB: neither may be less than 1", *connections, *size)
	}
	var kinds []streamKind
	for _, kind := range streamKinds(int64(*size) << 20) {
		if strings.Contains(kind.name, *only) {
			kinds = append(kinds, kind)
		}
	}
	if kinds == nil {
		return fmt.Errorf("no table has %q in its name", *only)
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
	s := streaming{Pace: p, seats: seats, binary: filepath.Join(dir, "pace"), size: *size, log: log}
	if err := child.Build(ctx, s.binary, load.PaceFolder); err != nil {
		return err
	}
	for _, spec := range specs {
		server, err := rival.Start(ctx, spec, rival.Room{Cores: seats.Server, Connections: *connections})
		if err != nil {
			return err
		}
		defer server.Stop()
		s.servers = append(s.servers, server)
	}
	var file report.File
	for _, kind := range kinds {
		kind.plan.Connections, kind.plan.Seconds = *connections, float64(p.Seconds)
		table, err := s.table(ctx, kind)
		if err != nil {
			return err
		}
		table.Title = fmt.Sprintf("stream, %s: %d connections with bodies of %d MiB: %d rounds of %d s, %s",
			kind.name, *connections, *size, p.Rounds, p.Seconds, seats.Describe("load"))
		table.Text(out)
		fmt.Fprintln(out)
		file.Streams = append(file.Streams, table)
	}
	return c.finish(file, s.faults, out)
}

// streaming takes the rounds of large bodies. All servers run the whole time.
type streaming struct {
	Pace
	seats   Seats
	servers []*rival.Server
	binary  string // of load.PaceFolder
	size    int    // of a body, in MiB
	log     io.Writer
	faults  []string
}

func (s *streaming) table(ctx context.Context, kind streamKind) (report.Stream, error) {
	table := report.Stream{Kind: kind.name, Base: streamBase}
	for _, server := range s.servers {
		table.Series = append(table.Series, report.StreamSeries{Server: server.Name})
		if _, err := s.turn(ctx, server, kind, "warm-up"); err != nil {
			return table, fmt.Errorf("%s: %w", server.Name, err)
		}
	}
	err := s.inTurn(len(s.servers), func(i int, name string) error {
		got, err := s.turn(ctx, s.servers[i], kind, name)
		if err != nil {
			return fmt.Errorf("%s: %w", s.servers[i].Name, err)
		}
		table.Series[i].Rounds = append(table.Series[i].Rounds, got)
		return nil
	})
	return table, err
}

func (s *streaming) turn(ctx context.Context, server *rival.Server, kind streamKind, name string) (report.StreamRound, error) {
	var round report.StreamRound
	plan := kind.plan
	plan.Addr = server.Addr
	before, err := readsOf(ctx, server)
	if err != nil {
		return round, err
	}
	var res load.StreamResult
	spent, err := Spend(server, s.seats, func() (used time.Duration, err error) {
		res, err = plan.Child(ctx, s.binary, s.seats.Load)
		return res.CPU, err
	})
	if err != nil {
		return round, err
	}
	after, err := readsOf(ctx, server)
	if err != nil {
		return round, err
	}
	after.Reads, after.Bytes = after.Reads-before.Reads, after.Bytes-before.Bytes
	if want := plan.Send * res.Requests; res.Errors == 0 && after.Bytes != want {
		return round, fmt.Errorf("%s: the handler has read %d bytes, not %d", kind.name, after.Bytes, want)
	}
	round = streamRoundOf(res, spent, s.size, after)
	if round.Errors > 0 || res.Requests == 0 {
		s.faults = append(s.faults, fmt.Sprintf("%s, %s, %s: %d requests answered; %d connections failed, %s",
			server.Name, kind.name, name, res.Requests, res.Errors, res.Fault))
	}
	fmt.Fprintf(s.log, "%-12s %-24s %-24s %5.0f us/MiB %6.0f MiB/s %5.1f reads/MiB  %d errors  steal %.1f %%  others %.1f %%\n",
		name, kind.name, server.Name, round.CPU, round.Rate, round.Reads, round.Errors, round.Steal, round.Others)
	return round, nil
}

// readsOf returns what a server's handlers have read so far.
func readsOf(ctx context.Context, s *rival.Server) (reads work.Reads, err error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr+"/debug/reads", nil)
	if err != nil {
		return reads, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reads, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return reads, fmt.Errorf("/debug/reads: status %d", resp.StatusCode)
	}
	return reads, json.NewDecoder(resp.Body).Decode(&reads)
}

// streamRoundOf is a round of bodies of some MiB. Bytes that go both ways count once.
func streamRoundOf(res load.StreamResult, spent Cost, size int, reads work.Reads) report.StreamRound {
	round := report.StreamRound{Errors: res.Errors, Steal: spent.Steal, Others: spent.Others}
	if mib := float64(res.Requests) * float64(size); mib > 0 {
		round.CPU = micros(spent.CPU.Total) / mib
		round.Rate = mib / res.Elapsed.Seconds()
		round.Reads = float64(reads.Reads) / mib
	}
	return round
}
