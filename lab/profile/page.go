package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// watched measures what the live page of package admin costs a server that is busy, and whether it stays live.
type watched struct {
	Pace
	seats       Seats
	server      *rival.Server
	events      string // the address of the page's event stream
	pipeline    int
	connections int
	viewers     int
	log         io.Writer
	faults      []string
}

func runPage(ctx context.Context, args []string, out, log io.Writer) error {
	c := common{}
	w := watched{log: log}
	f := flag.NewFlagSet("page", flag.ContinueOnError)
	f.IntVar(&c.cores, "cores", 1, "how many cores the server has")
	f.IntVar(&c.core, "server-core", -1, "the first core it runs on (-1: the first this process may use)")
	f.StringVar(&c.json, "json", "", "also write every round to this `file`")
	w.register(f)
	f.IntVar(&w.connections, "connections", 64, "how many have requests")
	f.IntVar(&w.pipeline, "pipeline", 16, "requests in each write")
	f.IntVar(&w.viewers, "viewers", 1, "how many watch, every second turn")
	idle := f.Int("idle", 10000, "how many connections do nothing")
	if err := parse(f, args); err != nil {
		return err
	}
	c.profile = f.Name()
	if err := w.check(); err != nil {
		return err
	}
	if w.connections < 1 || w.pipeline < 1 || w.viewers < 1 || w.viewers > 64 || *idle < 1 {
		return fmt.Errorf("--connections, --pipeline, --viewers (up to 64) and --idle may not be less than 1")
	}
	if err := installed("wrk", "taskset"); err != nil {
		return err
	}
	var err error
	if w.seats, err = c.seats(-1); err != nil {
		return err
	}
	release, err := pin(ctx, w.seats.Load)
	if err != nil {
		return err
	}
	defer release()
	limit, err := load.RaiseFiles(*idle + spareFiles)
	if err != nil {
		return err
	}
	n, message := clamp(*idle, 1, limit)
	if message != "" {
		fmt.Fprintln(log, message)
	}
	stop, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer stop()
	held, err := load.OpenIdle(ctx, w.server.Addr, n, nil)
	if err != nil {
		return err
	}
	defer held.Close()
	table := report.Page{Title: fmt.Sprintf("page, %d connections, %d requests in each write, %d idle connections, viewers of the live page: %d rounds of 2 x %d s, %s",
		w.connections, w.pipeline, n, w.Rounds, w.Seconds, w.seats.Describe("wrk"))}
	if table.Rounds, err = w.rounds(ctx); err != nil {
		return err
	}
	if err := held.Ask(ctx); err != nil {
		return fmt.Errorf("not all idle connections were still open: %w", err)
	}
	table.Text(out)
	return c.finish(report.File{Page: &table}, w.faults, out)
}

// open starts the server.
func (w *watched) open(ctx context.Context) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "chert-lab-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the program runs without its file
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	page := l.Addr().String() // which is free until the server takes it, as rival's addresses are
	l.Close()
	w.events = "http://" + page + "/events"
	specs, err := rival.Ready(ctx, dir, []rival.Spec{rival.Program("chertpage", "cmd/chertpage", "--page", page)})
	if err != nil {
		return nil, err
	}
	if w.server, err = rival.Start(ctx, specs[0], rival.Room{Cores: w.seats.Server}); err != nil {
		return nil, err
	}
	return w.server.Stop, nil
}

// rounds are pairs of turns; every second round begins with the viewers. The first one is a warm-up.
func (w *watched) rounds(ctx context.Context) ([]report.PageRound, error) {
	var all []report.PageRound
	for i := range w.Rounds + 1 {
		var round report.PageRound
		for k := range 2 {
			to, viewers := &round.Without, 0
			if (i+k)%2 == 1 {
				to, viewers = &round.With, w.viewers
			}
			var err error
			if *to, err = w.turn(ctx, viewers); err != nil {
				return nil, err
			}
			fmt.Fprintf(w.log, "round %d/%d  viewers %d  %6.3f us  %8.0f req/s  steal %.1f %%  others %.1f %%  %d events  largest gap %.2f s\n",
				i, w.Rounds, viewers, to.CPU, to.Rate, to.Steal, to.Others, to.Events, to.Largest)
		}
		all = append(all, round)
	}
	return all[1:], nil
}

// turn is one of a pair.
func (w *watched) turn(ctx context.Context, viewers int) (report.PageTurn, error) {
	watching, err := load.Watch(ctx, w.events, viewers)
	if err != nil {
		return report.PageTurn{}, err
	}
	request := exchange.Get("/")
	request.Pipeline = w.pipeline
	var res load.Result
	begin := time.Now()
	spent, err := Spend(w.server, w.seats, func() (time.Duration, error) {
		res, err = load.Run{Addr: w.server.Addr, Request: request, Connections: w.connections, Seconds: w.Seconds, Core: w.seats.Load}.Wrk(ctx)
		return res.CPU, err
	})
	end := time.Now()
	seen, failed := watching.Close()
	if err == nil {
		err = failed
	}
	if err != nil {
		return report.PageTurn{}, err
	}
	if n := res.Errors.Sum(); n > 0 {
		w.faults = append(w.faults, fmt.Sprintf("chertpage with %d viewers: %v", viewers, res.Errors))
	}
	turn := report.PageTurn{CPU: micros(spent.CPU.Total) / float64(max(res.Requests, 1)), Rate: res.PerSecond, Steal: spent.Steal, Others: spent.Others}
	for v := range viewers {
		last := begin
		for _, s := range seen {
			if s.Viewer != v || s.At.Before(begin) {
				continue
			}
			turn.Events++
			turn.Bytes += float64(s.Bytes)
			turn.Largest = max(turn.Largest, s.At.Sub(last).Seconds())
			last = s.At
		}
		turn.Largest = max(turn.Largest, end.Sub(last).Seconds())
	}
	turn.Bytes /= float64(max(turn.Events, 1))
	return turn, nil
}
