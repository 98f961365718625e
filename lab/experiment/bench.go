package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/exchange"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/perf"
	"github.com/chert-http/chert/lab/profile"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
	"github.com/chert-http/chert/lab/work"
)

// Scale is how much of an experiment is made.
type Scale struct {
	// Short is the form for tests: everything once, with few connections. Its figures say nothing.
	Short bool
	// Rounds multiplies those of the full form; 1 is the usual number.
	Rounds int
}

// rounds is how many turns each server has, where n are enough.
func (s Scale) rounds(n int) int {
	if s.Short {
		return 1
	}
	return n * max(1, s.Rounds)
}

// of is n, or what stands for it in the short form.
func (s Scale) of(n, short int) int {
	if s.Short {
		return short
	}
	return n
}

// list is all, or the last of a list in the short form.
func list[T any](s Scale, short int, all ...T) []T {
	if s.Short {
		return all[:min(short, len(all))]
	}
	return all
}

// Bench is what an experiment measures with.
type Bench struct {
	Scale Scale
	Seats profile.Seats // servers have one core, the load another
	Dir   string        // for programs that are built
	Log   io.Writer     // progress
}

// spareFiles is how many a process opens besides its connections, with room.
const spareFiles = 200

// hello is the smallest exchange; closing is the same with a connection of its own.
func hello() profile.Check {
	return profile.Check{Request: exchange.Get("/"), Want: exchange.OK("text/plain", work.Hello)}
}

func closing() profile.Check {
	c := hello()
	c.Request.Close = true
	return c
}

// servers makes known servers ready to start, by name, and leaves out what is not installed, with a note.
func (b *Bench) servers(ctx context.Context, r *Result, names ...string) ([]rival.Spec, error) {
	var all []rival.Spec
	for _, name := range names {
		spec, err := rival.Find(name)
		if err != nil {
			return nil, err
		}
		if err := spec.Available(ctx); err != nil {
			r.note(fmt.Sprintf("Without %s: %v.", name, err))
			continue
		}
		all = append(all, spec)
	}
	return b.ready(ctx, all...)
}

func (b *Bench) ready(ctx context.Context, specs ...rival.Spec) ([]rival.Spec, error) {
	fmt.Fprintf(b.Log, "building what %d servers need\n", len(specs))
	return rival.Ready(ctx, b.Dir, specs)
}

// entrants makes one of each server.
func entrants(specs []rival.Spec) []profile.Entrant {
	var all []profile.Entrant
	for _, s := range specs {
		all = append(all, profile.Entrant{Spec: s, Name: s.Name})
	}
	return all
}

// errFiles means that so many connections cannot be opened here.
var errFiles = errors.New("too few open files")

// contest is servers that are driven by wrk in turn.
type contest struct {
	check       profile.Check // what is requested, unless an entrant has another
	connections int
	rounds      int
	folder      string // what servers of files serve
	cores       []int  // of the servers; nil: that of the bench
	idle        int    // connections that each server holds besides
}

// contest measures servers in turn, within the same rounds. All of them are checked before and after. Series are in the
// order of the entrants.
func (b *Bench) contest(ctx context.Context, r *Result, c contest, all []profile.Entrant) ([]report.Series, error) {
	seats := b.Seats
	if c.cores != nil {
		seats.Server = c.cores
	}
	files := c.connections + len(all)*c.idle + spareFiles
	limit, err := load.RaiseFiles(files)
	if err == nil && limit < files {
		err = fmt.Errorf("%w: %d files are needed, and the limit is %d", errFiles, files, limit)
	}
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Idle = c.idle
	}
	cmp := profile.Compare{Checks: []profile.Check{c.check}, Pace: profile.Pace{Rounds: c.rounds, Seconds: 1}, Folder: c.folder, Seats: seats, Log: b.Log,
		Cold: b.Scale.Short}
	series, err := cmp.Run(ctx, all, c.connections)
	r.Faults = append(r.Faults, cmp.Faults...)
	return series, err
}

// sampled is a profile of a server under the load of wrk, which lasts as long as that takes.
func (b *Bench) sampled(ctx context.Context, e profile.Entrant, c contest) (perf.Profile, error) {
	s, run, err := b.started(ctx, e, c)
	if err != nil {
		return perf.Profile{}, err
	}
	defer s.Stop()
	run.Seconds = 60
	loaded, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() {
		_, err := run.Wrk(loaded)
		ended <- err
	}()
	select { // until wrk has opened its connections
	case <-ctx.Done():
	case <-time.After(500 * time.Millisecond):
	}
	pids, err := measure.Processes(s.PID())
	if err != nil {
		return perf.Profile{}, err
	}
	during := time.Duration(b.Scale.of(2000, 600)) * time.Millisecond
	p, err := perf.Record(ctx, pids, during)
	for try := 0; errors.Is(err, perf.ErrNone) && try < 3; try++ {
		during *= 2 // others had the core meanwhile
		p, err = perf.Record(ctx, pids, during)
	}
	select {
	case e := <-ended: // by itself
		err = errors.Join(err, e)
	default:
		end()
		<-ended
	}
	return p, err
}

// counted is the system calls of a server for each request.
func (b *Bench) counted(ctx context.Context, e profile.Entrant, c contest) (map[string]float64, error) {
	s, run, err := b.started(ctx, e, c)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	run.Patience = 30 // a traced server is slow
	var res load.Result
	pids, err := measure.Processes(s.PID())
	if err != nil {
		return nil, err
	}
	counts, err := perf.Count(ctx, pids, func() error {
		res, err = run.Wrk(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	each := map[string]float64{}
	for name, n := range counts {
		each[name] = float64(n) / float64(max(1, res.Requests))
	}
	return each, nil
}

// started starts a server and says how wrk is to drive it.
func (b *Bench) started(ctx context.Context, e profile.Entrant, c contest) (*rival.Server, load.Run, error) {
	check := c.check
	if e.Check != nil {
		check = *e.Check
	}
	s, err := rival.Start(ctx, e.Spec, rival.Room{Cores: b.Seats.Server, Connections: c.connections, Files: c.folder})
	if err != nil {
		return nil, load.Run{}, err
	}
	return s, load.Run{Addr: s.Addr, Request: check.Request, Connections: c.connections, Seconds: 1, Core: b.Seats.Load}, nil
}

// wide is all cores but the load's, at most four: for servers that are to use several.
func (b *Bench) wide() []int {
	for n := 4; n > 1; n-- {
		if seats, err := profile.Seat(n); err == nil && !slices.Contains(seats.Server, seats.Load) {
			return seats.Server
		}
	}
	return b.Seats.Server
}

// helped reports whether a program is there without which a part is left out; Run has noted it.
func (b *Bench) helped(program string) bool {
	_, err := child.Find(program)
	return err == nil
}

// unsampled notes that perf could not sample, which leaves out a part. Other errors are returned.
func (r *Result) unsampled(err error) error {
	if errors.Is(err, perf.ErrKernel) {
		r.note("The profile was left out: " + err.Error() + ".")
		return nil
	}
	return err
}

// answers checks a server's answer.
func answers(ctx context.Context, s *rival.Server, check profile.Check) error {
	answer, err := exchange.Fetch(ctx, s.Addr, check.Request)
	if err == nil {
		err = answer.Differs(check.Want)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", check.Request.Path, err)
	}
	return nil
}
