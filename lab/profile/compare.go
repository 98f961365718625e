package profile

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// Compare puts servers under the same load in turn. All of them run the whole time, on the same core; those that have
// no turn have nothing to do.
type Compare struct {
	Title                string
	Path                 string       // what wrk asks for
	Want                 rival.Answer // what it must get, before and after
	Rounds, Seconds      int
	ServerCore, LoadCore int
	Log                  io.Writer // progress
	Faults               []string  // requests that failed, in all runs so far
}

// warmUp is the length in seconds of the turn each server has before the first round; wrk knows no less.
const warmUp = 1

// Run starts the servers, takes all rounds with the given number of connections and stops the servers.
func (c *Compare) Run(ctx context.Context, specs []rival.Spec, connections int) (report.Comparison, error) {
	table := report.Comparison{Title: c.Title, Connections: connections}
	var servers []*rival.Server
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, c.ServerCore)
		if err != nil {
			return table, err
		}
		defer s.Stop()
		servers = append(servers, s)
		answer, err := c.check(ctx, s)
		if err != nil {
			return table, err
		}
		table.Series = append(table.Series, report.Series{Server: s.Name, ResponseBytes: answer.Size})
	}
	for _, s := range servers {
		if _, err := c.turn(ctx, s, connections, warmUp, "warm-up"); err != nil {
			return table, err
		}
	}
	for round := range c.Rounds {
		for k := range servers {
			// Each round begins with another server, so that none always follows the same one.
			i := (round + k) % len(servers)
			r, err := c.turn(ctx, servers[i], connections, c.Seconds, fmt.Sprintf("round %d/%d", round+1, c.Rounds))
			if err != nil {
				return table, err
			}
			table.Series[i].Rounds = append(table.Series[i].Rounds, r)
		}
	}
	for _, s := range servers {
		if _, err := c.check(ctx, s); err != nil {
			return table, fmt.Errorf("after the last round: %w", err)
		}
	}
	return table, nil
}

func (c *Compare) check(ctx context.Context, s *rival.Server) (rival.Answer, error) {
	answer, err := rival.Fetch(ctx, s.Addr, c.Path)
	if err == nil {
		err = answer.Differs(c.Want)
	}
	if err != nil {
		return answer, fmt.Errorf("%s: %w", s.Name, err)
	}
	return answer, nil
}

// turn drives one server once.
func (c *Compare) turn(ctx context.Context, s *rival.Server, connections, seconds int, name string) (report.Round, error) {
	run := load.Run{URL: "http://" + s.Addr + c.Path, Connections: connections, Seconds: seconds, Core: c.LoadCore}
	res, cost, err := c.measure(ctx, s, run)
	if ended := s.Ended(); ended != nil {
		err = ended // the cause; wrk only saw that nobody was there
	}
	if err != nil {
		return report.Round{}, err
	}
	r := roundOf(res, cost)
	if r.Errors > 0 || r.Requests == 0 {
		fault := fmt.Sprintf("%s, %d connections, %s: %d requests answered; %v", s.Name, connections, name, r.Requests, res.Errors)
		c.Faults = append(c.Faults, fault)
	}
	fmt.Fprintf(c.Log, "%-12s %-8s %7.2f us/request %8.0f req/s  %d errors  steal %.1f %%  others %.1f %%\n",
		name, s.Name, r.CPU, r.PerSecond, r.Errors, r.Steal, r.Others)
	return r, nil
}

// cost is what the machine spent during one turn.
type cost struct {
	cpu    measure.CPU // of the server
	steal  float64     // percent, of the cores in use
	others float64     // the same, by processes that are neither the server nor wrk
}

func (c *Compare) measure(ctx context.Context, s *rival.Server, run load.Run) (load.Result, cost, error) {
	var res load.Result
	cores, err := measure.ReadCores(c.ServerCore, c.LoadCore)
	if err != nil {
		return res, cost{}, err
	}
	before, err := measure.Tree(s.PID())
	if err != nil {
		return res, cost{}, err
	}
	if res, err = run.Wrk(ctx); err != nil {
		return res, cost{}, err
	}
	after, err := measure.Tree(s.PID())
	if err != nil {
		return res, cost{}, err
	}
	coresAfter, err := measure.ReadCores(c.ServerCore, c.LoadCore)
	if err != nil {
		return res, cost{}, err
	}
	used := after.Sub(before)
	return res, cost{used, coresAfter.StealSince(cores), coresAfter.OthersSince(cores, used.Total+res.CPU)}, nil
}

func roundOf(res load.Result, spent cost) report.Round {
	r := report.Round{
		PerSecond: res.PerSecond,
		Requests:  res.Requests,
		Errors:    res.Errors.Sum(),
		Steal:     spent.steal,
		Others:    spent.others,
		P50:       micros(res.Latency.P50),
		P99:       micros(res.Latency.P99),
	}
	if res.Requests > 0 {
		r.CPU = micros(spent.cpu.Total) / float64(res.Requests)
	}
	if sampled := spent.cpu.User + spent.cpu.System; sampled > 0 {
		r.User = r.CPU * float64(spent.cpu.User) / float64(sampled)
	}
	return r
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
