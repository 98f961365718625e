package profile

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/link"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// Compare puts servers under the same load in turn. All of them run the whole time, on the same cores; those that have
// no turn have nothing to do.
type Compare struct {
	Pace
	Checks  []Check // what must be answered, before and after; wrk requests the first, unless there is an order
	Order   *load.Order
	Folder  string        // what servers of files serve
	Cold    bool          // no server is warmed up
	ByBytes bool          // requests are counted by the bytes that came
	TLS     bool          // the load is over TLS
	Streams int           // on each connection, over TLS and HTTP/2, or HTTP/3; 0: wrk and HTTP/1
	H3      bool          // servers that have HTTP/3 are measured over that, the others over HTTP/2
	Sockets *load.Sockets // if not nil, messages over WebSockets instead of requests
	pace    string        // the program built in load.PaceFolder, which Sockets and HTTP/3 need
	Seats   Seats
	Link    *link.Link // where servers run; nil for loopback
	Log     io.Writer  // progress
	Faults  []string   // requests that failed, in all runs so far
}

// Check is a request and the answer it must have.
type Check struct {
	Request exchange.Request
	Want    exchange.Answer
}

// Entrant is a server that takes part.
type Entrant struct {
	Spec rival.Spec
	Name string
	// Check is what this one must answer and is measured with; nil: the Checks of the Compare.
	Check *Check
	base  string // the entrant it is compared with; empty for the usual way
	Idle  int    // connections it holds besides
	// present is the entrant of the present source, if this one is of another revision.
	present string
}

// runner is an entrant that runs.
type runner struct {
	Entrant
	*rival.Server
	idle  *load.Idle // nil for none
	size  int        // of its answer
	turns int        // it has had
}

func (r *runner) stop() {
	if r.idle != nil {
		r.idle.Close()
	}
	r.Stop()
}

// warmUp is the length in seconds of the turn each server has before the first round; wrk knows no less. With an order
// it takes warmUpOrder for most files to have been requested, and for caches to know which of them are popular.
const (
	warmUp      = 1
	warmUpOrder = 5
)

// patience is how many seconds a large answer may take.
const patience = 30

// warmUp is which of the two it is.
func (c *Compare) warmUp() int {
	if c.Order != nil {
		return warmUpOrder
	}
	return warmUp
}

// Run starts the servers, takes all rounds with the given number of connections and stops the servers. It returns what
// it measured in the order of the entrants.
func (c *Compare) Run(ctx context.Context, entrants []Entrant, connections int) ([]report.Series, error) {
	all := make([]report.Series, 0, len(entrants))
	var runners []*runner
	for _, e := range entrants {
		r, size, err := c.start(ctx, e, connections)
		if err != nil {
			return nil, err
		}
		defer r.stop()
		runners = append(runners, r)
		all = append(all, report.Series{Server: e.Name, Base: e.base, Present: e.present, ResponseBytes: size})
	}
	for _, r := range runners {
		if c.Cold {
			break
		}
		if _, err := c.turn(ctx, r, connections, c.warmUp(), "warm-up"); err != nil {
			return nil, err
		}
	}
	err := c.inTurn(len(runners), func(i int, name string) error {
		r, err := c.turn(ctx, runners[i], connections, c.Seconds, name)
		all[i].Rounds = append(all[i].Rounds, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if c.Order != nil {
		for i := range all {
			all[i].ResponseBytes = meanSize(all[i].Rounds)
		}
	}
	for i, r := range runners {
		var err error
		if all[i].Resident, err = c.end(ctx, r); err != nil {
			return nil, fmt.Errorf("after the last round: %w", err)
		}
	}
	return all, nil
}

// start starts a server, checks its answer and returns how long that is.
func (c *Compare) start(ctx context.Context, e Entrant, connections int) (*runner, int, error) {
	s, err := rival.Start(ctx, e.Spec, rival.Room{Cores: c.Seats.Server, Connections: connections + e.Idle, Files: c.Folder, TLS: c.TLS, Link: c.Link})
	if err != nil {
		return nil, 0, err
	}
	r := &runner{Entrant: e, Server: s}
	size, err := c.check(ctx, r)
	if err == nil && e.Idle > 0 {
		fmt.Fprintf(c.Log, "%s: opening the connections\n", e.Name)
		r.idle, err = load.OpenIdle(ctx, s.Addr, e.Idle, nil)
	}
	if err != nil {
		r.stop()
		return nil, 0, err
	}
	if c.Sockets != nil {
		size = c.Sockets.FrameSize()
	}
	r.size = size
	return r, size, nil
}

// check requests everything that must be answered, and returns the length of the first response.
func (c *Compare) check(ctx context.Context, r *runner) (size int, err error) {
	for i, check := range c.checks(r.Entrant) {
		fetch, addr := exchange.Fetch, r.Addr
		switch {
		case c.H3 && r.Does.Has(rival.H3):
			fetch, addr = exchange.FetchH3, r.TLS
		case c.Streams > 0:
			fetch, addr = exchange.FetchH2, r.TLS
		case c.TLS:
			fetch, addr = exchange.FetchTLS, r.TLS
		}
		answer, err := fetch(ctx, addr, check.Request)
		if err == nil {
			err = answer.Differs(check.Want)
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", r.Name, check.Request.Path, err)
		}
		if i == 0 {
			size = answer.Size
		}
	}
	return size, nil
}

// checks are those of an entrant.
func (c *Compare) checks(e Entrant) []Check {
	if e.Check != nil {
		return []Check{*e.Check}
	}
	return c.Checks
}

// end reads a server's memory and makes sure that it still answers, on its idle connections too.
func (c *Compare) end(ctx context.Context, r *runner) (resident int64, err error) {
	if resident, err = measure.ResidentTree(r.PID()); err != nil {
		return 0, err
	}
	if _, err := c.check(ctx, r); err != nil {
		return 0, err
	}
	if r.idle == nil {
		return resident, nil
	}
	if err := r.idle.Ask(ctx); err != nil {
		return 0, fmt.Errorf("%s: not all connections were still open: %w", r.Name, err)
	}
	return resident, nil
}

// turn drives one server once.
func (c *Compare) turn(ctx context.Context, r *runner, connections, seconds int, name string) (report.Round, error) {
	// With an order every turn of a server goes on at another place, which is the same for all.
	run := load.Run{Addr: r.Addr, Request: c.checks(r.Entrant)[0].Request, Order: c.Order, From: r.turns * c.Order.Len() / (1 + c.Rounds),
		Connections: connections, Seconds: seconds, Core: c.Seats.Load}
	r.turns++
	if c.ByBytes {
		run.Patience = patience // 64 large responses at once are slow, and no server promises to send them evenly
	}
	var res load.Result
	var during measure.CPU // of the server while it was asked, if the load has taken that
	spent, err := Spend(r.Server, c.Seats, func() (used time.Duration, err error) {
		if c.TLS {
			run.Addr, run.TLS = r.TLS, true
		}
		switch {
		case c.Sockets != nil:
			plan := *c.Sockets
			plan.Addr, plan.Connections, plan.Seconds = r.Addr, connections, float64(seconds)
			res, err = plan.Child(ctx, c.pace, c.Seats.Load)
		case c.H3:
			plan := load.Gets{Addr: r.TLS, H3: r.Does.Has(rival.H3), Path: run.Request.Path, Length: c.checks(r.Entrant)[0].Want.Length,
				Connections: connections, Streams: c.Streams, Seconds: float64(seconds), Server: r.PID()}
			res, during, err = plan.Child(ctx, c.pace, c.Seats.Load)
		case c.Streams > 0:
			res, err = run.H2load(ctx, c.Streams)
		default:
			res, err = run.Wrk(ctx)
		}
		return res.CPU, err
	})
	if err != nil {
		return report.Round{}, err
	}
	if during.Total > 0 {
		spent.CPU = during
	}
	if c.ByBytes {
		res = res.ByBytes(r.size)
	}
	round := roundOf(res, spent)
	if round.Errors > 0 || round.Requests == 0 {
		fault := fmt.Sprintf("%s, %d connections, %s: %d requests answered; %v", r.Name, connections, name, round.Requests, res.Errors)
		if res.Fault != "" {
			fault += "; " + res.Fault
		}
		c.Faults = append(c.Faults, fault)
	}
	fmt.Fprintf(c.Log, "%-12s %-24s %7.2f us/request %8.0f req/s  %d errors  steal %.1f %%  others %.1f %%\n",
		name, r.Name, round.CPU, round.PerSecond, round.Errors, round.Steal, round.Others)
	return round, nil
}

func roundOf(res load.Result, spent Cost) report.Round {
	r := report.Round{
		PerSecond: res.PerSecond,
		Requests:  res.Requests,
		Errors:    res.Errors.Sum(),
		Bytes:     res.Bytes,
		Steal:     spent.Steal,
		Others:    spent.Others,
		Mean:      micros(res.Latency.Mean),
		P50:       micros(res.Latency.P50),
		P99:       micros(res.Latency.P99),
	}
	if res.Requests > 0 {
		r.CPU = micros(spent.CPU.Total) / float64(res.Requests)
	}
	if sampled := spent.CPU.User + spent.CPU.System; sampled > 0 {
		r.User = r.CPU * float64(spent.CPU.User) / float64(sampled)
	}
	return r
}

// meanSize is that of all answers.
func meanSize(rounds []report.Round) int {
	var bytes, requests float64
	for _, r := range rounds {
		bytes += r.Bytes
		requests += float64(r.Requests)
	}
	if requests == 0 {
		return 0
	}
	return int(bytes / requests)
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
