package profile

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

const (
	// warmConnections are opened and closed before the first reading, so that pools, the heap and the poller have their
	// usual size and only what the idle connections add is counted.
	warmConnections = 200
	// spareFiles is what a server and the lab need besides the connections: listeners, pollers, libraries, pipes.
	spareFiles = 100
)

func runIdle(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{needs: rival.Code} // their memory and goroutines are read from /debug/stats
	f := flag.NewFlagSet("idle", flag.ContinueOnError)
	c.register(f, "nethttp")
	connections := f.Int("connections", 10000, "how many to hold")
	secure := f.Bool("tls", false, "with TLS: of chert and nethttp")
	h2 := f.Bool("h2", false, "with --tls: over HTTP/2")
	heap := f.String("heap", "", "also write a profile of each server's heap to this `file`, with the server's name after it; GODEBUG=memprofilerate=1 makes it exact")
	if err := parse(f, args); err != nil {
		return err
	}
	if *connections < 1 {
		return fmt.Errorf("%d connections: may not be less than 1", *connections)
	}
	if *h2 && !*secure {
		return errors.New("--h2 needs --tls")
	}
	how := Holding{Open: OpenBy(load.OpenIdle), TLS: *secure, Heap: *heap, h2: *h2}
	if *h2 {
		how.Open = OpenBy(load.OpenIdleH2)
	}
	return c.hold(ctx, *connections, "keep-alive connections after one request on each", how, out, log)
}

// hold measures so many connections of each server in turn.
func (c *common) hold(ctx context.Context, connections int, title string, how Holding, out, log io.Writer) error {
	if err := installed("taskset"); err != nil {
		return err
	}
	seats, err := c.seats(-1)
	if err != nil {
		return err
	}
	limit, err := load.RaiseFiles(connections + spareFiles)
	if err != nil {
		return err
	}
	n, message := clamp(connections, 1, limit)
	if message != "" {
		fmt.Fprintln(log, message)
	}
	specs, dir, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	table := report.Idle{Title: fmt.Sprintf("%s, %d %s", c.profile, n, title), Connections: n}
	if how.TLS {
		table.Title += ", TLS 1.3"
	}
	switch {
	case how.H3 != nil:
		table.Title += ", HTTP/3 (chert3, quicgo) or HTTP/2"
	case how.h2:
		table.Title += ", HTTP/2"
	}
	for _, spec := range specs {
		held, err := Hold(ctx, spec, seats.Server, n, how, log)
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Name, err)
		}
		table.Servers = append(table.Servers, held)
	}
	table.Text(out)
	return c.finish(report.File{Idle: &table}, nil, out)
}

// clamp bounds the number of connections that each of so many servers holds by the limit of open files: a server has one
// file for each of its own, the lab one for each of all.
func clamp(n, servers, limit int) (int, string) {
	most := max(1, (limit-spareFiles)/servers)
	if n <= most {
		return n, ""
	}
	return most, fmt.Sprintf("the limit of open files is %d: %d connections instead of %d (raise it with ulimit -Hn)", limit, most, n)
}

// Opener opens connections that are to be idle.
type Opener func(ctx context.Context, addr string, n int, cfg *tls.Config) (idle, error)

// idle are such connections.
type idle interface {
	receivers
	Ask(ctx context.Context) error // makes a request on each
}

// OpenBy is a function such as load.OpenIdle as an Opener.
func OpenBy[T idle](open func(ctx context.Context, addr string, n int, cfg *tls.Config) (T, error)) Opener {
	return func(ctx context.Context, addr string, n int, cfg *tls.Config) (idle, error) {
		return open(ctx, addr, n, cfg)
	}
}

// Holding says how connections are held.
type Holding struct {
	Open Opener
	TLS  bool   // on the server's port for it
	Heap string // a file for the server's heap profile; empty for none
	// H3 opens those of servers that have HTTP/3; nil if it is not that which is measured.
	H3 Opener
	// h2 and publishes: over HTTP/2; the connections are streams of events, which are published.
	h2, publishes bool
}

// Hold measures n connections of one server in a process of its own.
func Hold(ctx context.Context, spec rival.Spec, cores []int, n int, how Holding, log io.Writer) (report.Held, error) {
	held := report.Held{Server: spec.Name}
	if how.H3 != nil && spec.Does.Has(rival.H3) {
		how.Open = how.H3
	}
	s, err := rival.Start(ctx, spec, rival.Room{Cores: cores, Connections: n})
	if err != nil {
		return held, err
	}
	defer s.Stop()
	answer, err := exchange.Fetch(ctx, s.Addr, exchange.Get("/"))
	if err != nil {
		return held, err
	}
	if err := answer.Differs(exchange.OK("text/plain", work.Hello)); err != nil {
		return held, err
	}
	addr, cfg := s.Addr, (*tls.Config)(nil)
	if how.TLS {
		b, err := get(ctx, s, "/debug/tls")
		if err != nil {
			return held, err
		}
		addr, cfg = string(b), &tls.Config{InsecureSkipVerify: true}
	}
	warm, err := how.Open(ctx, addr, min(n, warmConnections), cfg)
	if err != nil {
		return held, err
	}
	warm.Close()
	if held.Before, err = rest(ctx, s); err != nil {
		return held, err
	}
	idle, err := how.Open(ctx, addr, n, cfg)
	if err != nil {
		return held, err
	}
	defer idle.Close()
	if err := settle(ctx, s); err != nil {
		return held, err
	}
	if held.Grown, err = state(ctx, s); err != nil {
		return held, err
	}
	if held.After, err = rest(ctx, s); err != nil {
		return held, err
	}
	if how.Heap != "" {
		b, err := get(ctx, s, "/debug/heap")
		if err != nil {
			return held, err
		}
		if err := os.WriteFile(how.Heap+"."+spec.Name, b, 0o600); err != nil {
			return held, err
		}
	}
	// A server that has dropped some of the connections would look small.
	ask := func() error { return idle.Ask(ctx) }
	if how.publishes {
		ask = func() error { return idle.Receive(ctx, s.Addr, 1, 64) }
	}
	if err := ask(); err != nil {
		return held, fmt.Errorf("not all connections were still open: %w", err)
	}
	fmt.Fprintf(log, "%-24s %d connections opened, held and asked once more\n", spec.Name, n)
	return held, nil
}
