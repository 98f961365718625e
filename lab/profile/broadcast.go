package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// broadcast measures what many connections get at once.
type broadcast struct {
	common
	// opens n connections that receive.
	open  func(ctx context.Context, addr string, n int) (receivers, error)
	what  string // they receive: "event"
	apart bool   // one is published when all connections have the last; else all at once
	count int    // in a turn

	most, size, rounds int // most is --receivers
}

// receivers are connections that get what is published.
type receivers interface {
	// Receive publishes, and returns when all have it.
	Receive(ctx context.Context, addr string, n, size int) error
	Close()
}

// run parses the flags and measures. Those of common and count are registered.
func (b *broadcast) run(ctx context.Context, f *flag.FlagSet, args []string, out, log io.Writer) error {
	if err := b.parse(f, args); err != nil {
		return err
	}
	if err := installed("taskset"); err != nil {
		return err
	}
	return b.measure(ctx, out, log)
}

func (b *broadcast) parse(f *flag.FlagSet, args []string) error {
	f.IntVar(&b.most, "receivers", 10000, "how many connections get each "+b.what)
	f.IntVar(&b.size, "size", 64, "bytes of one "+b.what)
	f.IntVar(&b.rounds, "rounds", 7, "how many turns each server has")
	if err := parse(f, args); err != nil {
		return err
	}
	if b.most < 1 || b.count < 1 || b.count > 64 || b.size < 1 || b.size > 1<<16-1 || b.rounds < 1 {
		return fmt.Errorf("--receivers, --%ss (up to 64), --size (up to 65535) and --rounds may not be less than 1", b.what)
	}
	return nil
}

// measure makes the table. All servers run the whole time.
func (b *broadcast) measure(ctx context.Context, out, log io.Writer) error {
	seats, err := b.seats(-1)
	if err != nil {
		return err
	}
	specs, dir, err := b.common.open(ctx, log)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	release, err := pin(ctx, seats.Load)
	if err != nil {
		return err
	}
	defer release()
	limit, err := load.RaiseFiles(b.most*len(specs) + spareFiles)
	if err != nil {
		return err
	}
	// With too few files for the connections of all servers, each has its own for its turns only.
	together := limit >= b.most*len(specs)+spareFiles
	n, message := clamp(b.most, 1, limit)
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
	for _, spec := range specs {
		s, err := rival.Start(ctx, spec, rival.Room{Cores: seats.Server, Connections: n})
		if err != nil {
			return err
		}
		defer s.Stop()
		servers = append(servers, s)
	}
	turn := func(s *rival.Server) (report.BroadcastRound, error) { return b.turnAlone(ctx, s, n, seats) }
	if together {
		rooms := make(map[*rival.Server]receivers)
		for _, s := range servers {
			room, err := b.open(ctx, s.Addr, n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			defer room.Close()
			rooms[s] = room
		}
		turn = func(s *rival.Server) (report.BroadcastRound, error) { return b.turn(ctx, s, rooms[s], n, seats) }
	}
	if table.Series, err = b.series(servers, turn, log); err != nil {
		return err
	}
	table.Text(out)
	return b.finish(report.File{Broadcast: &table}, nil, out)
}

// series takes the rounds, and a warm-up before them.
func (b *broadcast) series(servers []*rival.Server, turn func(*rival.Server) (report.BroadcastRound, error), log io.Writer) ([]report.BroadcastSeries, error) {
	all := make([]report.BroadcastSeries, len(servers))
	for i, s := range servers {
		all[i].Server = s.Name
	}
	p := Pace{Rounds: b.rounds + 1}
	err := p.inTurn(len(servers), func(i int, name string) error {
		round, err := turn(servers[i])
		if err != nil {
			return fmt.Errorf("%s: %w", servers[i].Name, err)
		}
		fmt.Fprintf(log, "%-12s %-24s %6.2f us/%s  %8.0f %ss/s  steal %.1f %%  others %.1f %%\n",
			name, servers[i].Name, round.CPU, b.what, round.Rate, b.what, round.Steal, round.Others)
		all[i].Rounds = append(all[i].Rounds, round)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Rounds = all[i].Rounds[1:]
	}
	return all, nil
}

// turnAlone is a turn whose connections are opened before it, and closed after it until nothing is left of them.
func (b *broadcast) turnAlone(ctx context.Context, s *rival.Server, n int, seats Seats) (round report.BroadcastRound, err error) {
	room, err := b.open(ctx, s.Addr, n)
	if err != nil {
		return round, err
	}
	if err = settle(ctx, s); err == nil {
		round, err = b.turn(ctx, s, room, n, seats)
	}
	room.Close()
	if err != nil {
		return round, err
	}
	return round, settle(ctx, s)
}

// turn publishes, and reads on all connections.
func (b *broadcast) turn(ctx context.Context, s *rival.Server, room receivers, n int, seats Seats) (report.BroadcastRound, error) {
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
			if err := room.Receive(ctx, s.Addr, together, b.size); err != nil {
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

// pin confines this process to a core, as it is the load. release undoes it.
func pin(ctx context.Context, core int) (release func(), err error) {
	allowed, err := measure.Allowed()
	if err != nil {
		return nil, err
	}
	confine := func(ctx context.Context, cores []int) error {
		list := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(cores)), ","), "[]")
		_, err := child.Run(ctx, child.Command{Args: []string{"taskset", "-a", "-p", "-c", list, strconv.Itoa(os.Getpid())}})
		return err
	}
	if err := confine(ctx, []int{core}); err != nil {
		return nil, err
	}
	procs := runtime.GOMAXPROCS(1)
	return func() {
		runtime.GOMAXPROCS(procs)
		confine(context.WithoutCancel(ctx), allowed)
	}, nil
}
