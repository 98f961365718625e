//go:build linux

package sim

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sched"
	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/race"
)

var (
	firstSeed = flag.Uint64("sim.seed", 0, "the seed to run, or the first of several")
	seeds     = flag.Int("sim.seeds", 20, "how many seeds to run with each model")
	trace     = flag.String("sim.trace", "", "a file for the choices of a run")
	period    = flag.Duration("sim.for", 0, "how long to begin new seeds; 0: all of them")
	requests  = flag.Int("sim.requests", 3000, "requests, or messages, in each run")
	modelName = flag.String("sim.model", "", "what clients speak; empty: each model runs each seed")
)

// A model is a client, which knows what it must receive.
type model interface {
	sim.Actor
	base() *peer
	state() string // what it waits for
}

// models are those that -sim.model names. handler makes what the server runs, client one of
// its clients; server, if not nil, sets what else the server needs.
var models = []struct {
	name    string
	handler func(v *served) http.Handler
	client  func(p peer) model
	server  func(v *served)
	crowd   bool // hundreds of them may come at once: none has what others send
	// secure: one run in so many is over TLS; 0: none. Where handshakes would cost most of the
	// time they are fewer.
	secure int
}{
	{"h1", newH1, func(p peer) model { return newClient(p) }, nil, true, 0}, // that is the model tls
	{"h2", newH1, newH2Client, speakH2, true, 3},
	{"tls", newH1, func(p peer) model { return &tlsClient{client: newClient(p)} }, nil, true, 1},
	{"file", newFiles, newFileClient, failFiles, false, 6},
	{"reload", newH1, func(p peer) model { return newClient(p) }, startFleet, true, 8},
	{"ws", newWS, func(p peer) model { return &wsClient{peer: p} }, nil, false, 3},
	{"hijack", newHijack, func(p peer) model { return &hijackClient{peer: p} }, nil, false, 12},
	{"sse", newSSE, func(p peer) model { return &sseClient{peer: p} }, nil, false, 6},
	{"proxy", newProxy, newProxyClient, startOrigins, false, 0},
}

// cutsAllowed reports whether the server's setup may end connections that wait.
func (v *served) cutsAllowed() bool { return v.MaxConns > 0 || v.inside.Ending() || v.tight }

func (v *served) mayRefuse() bool { return v.MaxHandlers > 0 || v.MaxConns > 0 || v.tight }

type result struct {
	done     int // requests or messages
	denied   int // those of them that the server has refused, as it may
	steps    uint64
	happened [13]uint64
	files    uint64 // calls of Sendfile
	err      error
	// simulated is how long the run took by its own clock.
	simulated time.Duration
}

// run runs one seed, with clients of a model. It must be called in a bubble.
func run(seed uint64, n, which int) (r result) {
	if *trace == "" {
		return runTraced(seed, n, which, nil, nil)
	}
	f, err := os.Create(*trace)
	if err != nil {
		return result{err: err}
	}
	defer f.Close()
	return runTraced(seed, n, which, f, nil)
}

// runTraced is run with a writer for the choices, and with a function that is called before the calls of the server; nil:
// none.
func runTraced(seed uint64, n, which int, to io.Writer, stir func()) (r result) {
	d := sim.NewDice(seed, sim.Faults{})
	s, calm := choose(d)
	s.secure = d.OneIn(models[which].secure)
	d.Faults(s.faults)
	k := sim.NewKernel(d, s.limit)
	var failing sync.Mutex
	fail := func(err error) {
		failing.Lock()
		defer failing.Unlock()
		if r.err == nil {
			r.err = fmt.Errorf("seed %d (%+v): %w", seed, s, err)
		}
	}
	k.Violated = func(f string, a ...any) { fail(fmt.Errorf(f, a...)) }
	w := sim.NewWorld(k, d)
	w.Trace, k.Trace, k.Stir = to, to, stir
	sched.Set(w.Point)
	defer func() {
		sched.Set(nil)
		w.End()
	}()
	v, err := serve(s, d, w, models[which].handler, models[which].server, fail)
	if err != nil {
		return result{err: err}
	}
	v.tight = s.limit < 1<<20 || s.faults[sim.NoDescriptor] > 0 || s.faults[sim.NoMemory] > 0 || s.faults[sim.Aborted] > 0
	v.calm = calm
	w.Check = func() {
		if err := v.holds(); err != nil {
			fail(err)
		}
	}
	buffers := buf.Live()
	synctest.Wait()
	var clients []*peer
	count := 1 + d.IntN(40)
	if models[which].crowd && d.OneIn(20) {
		count = 100 + d.IntN(200) // more at once than a loop accepts in a turn
	}
	for i := range count {
		c := models[which].client(peer{v: v, d: d, no: i + 1, left: max(n/count, 1), calm: calm, stays: count >= 100, failed: fail})
		clients = append(clients, c.base())
		w.Add(c)
	}
	if v.fleet != nil {
		w.Add(v.fleet)
	}
	sum := func() (done int) {
		for _, c := range clients {
			done += c.done
		}
		return done
	}
	over := func() bool {
		if r.err != nil {
			return true
		}
		for _, c := range clients {
			if !c.over {
				return false
			}
		}
		return true
	}
	// Some servers stop while their clients are at work.
	stopAt := math.MaxInt
	if d.OneIn(4) {
		stopAt = d.IntN(n)
	}
	stuck := w.Run(func() bool { return over() || stopAt < math.MaxInt && sum() >= stopAt }, 10*time.Minute)
	stopped := make(chan error, 1)
	if v.fleet != nil {
		v.fleet.over = true
	}
	go func() {
		w.Point(0)
		// Longer than any timeout of the server.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		err := v.stop(ctx)
		if err != nil {
			err = fmt.Errorf("%w: %s", err, v.conns())
			v.Close()
		}
		stopped <- err
	}()
	returned := 0
	var shut error
	stuck = stuck || w.Run(func() bool {
		select {
		case shut = <-stopped:
			returned++
		case <-v.ended:
			returned++
		default:
		}
		return returned == 2 && over()
	}, time.Hour)
	if stuck {
		for _, c := range w.Actors() {
			if m, ok := c.(model); ok && !m.base().over {
				p := m.base()
				fail(fmt.Errorf("client %d waits for ever: %s, %d bytes to send, excused %q%s",
					p.no, m.state(), len(p.out), p.excused, p.history()))
			}
		}
		fail(fmt.Errorf("Shutdown or Serve does not return"))
	}
	if shut != nil && r.err == nil {
		fail(fmt.Errorf("Shutdown: %w", shut))
	}
	v.finished.Store(true)
	w.Run(func() bool {
		return k.Pollers() == 0 && w.Parked() == 0 && k.Calls() == 0 && !v.busy()
	}, time.Minute)
	if err := v.left(); err != nil {
		fail(err)
	}
	if n := buf.Live() - buffers; n != 0 {
		fail(fmt.Errorf("%d buffers are held at the end", n))
	}
	r.steps, r.happened, r.files = w.Steps, d.Happened, k.Sendfiles()
	for _, c := range clients {
		if t, ok := c.s.(*secure); ok {
			t.leave() // of a run that has failed: what waits in a handshake would hide why
		}
		r.done += c.done + c.denied
		r.denied += c.denied
	}
	return r
}

// ballast is memory that is never touched. The runtime returns to the system what it has
// beyond a tenth more than was in use at the last collection: most of what a seed takes,
// which would have to be taken again for the next one, a sixth of all the time. With the race
// detector it would be touched.
var ballast []byte

// single has the test run on one processor, and collect garbage between seeds only: a
// goroutine that waits for that is interrupted, and others go on before it.
func single(t testing.TB) {
	procs, percent := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(2 << 30)
	if ballast == nil && !race.Enabled {
		ballast = make([]byte, 256<<20)
	}
	t.Cleanup(func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// TestSeeds runs as many seeds as it has time for, each in a bubble of its own.
func TestSeeds(t *testing.T) {
	single(t)
	if testing.Short() && *period == 0 {
		*seeds = min(*seeds, 5) // with the race detector
	}
	known := 0
	for _, m := range models {
		if *modelName == "" || *modelName == m.name {
			known++
		}
	}
	if known == 0 {
		t.Fatalf("there is no model %q", *modelName)
	}
	for i, m := range models {
		if *modelName == "" || *modelName == m.name {
			t.Run(m.name, func(t *testing.T) { runSeeds(t, i, *period/time.Duration(known)) })
		}
	}
}

// runSeeds runs the seeds of a model.
func runSeeds(t *testing.T, which int, period time.Duration) {
	begun, used := time.Now(), processorTime()
	var sum result
	n := 0
	defer func() { // also when a seed has failed: what the others did counts
		real := time.Since(begun).Seconds()
		t.Logf("%d seeds, %d requests or messages (%d refused) in %d steps: %.0f a second, %.0f a second of processor time, %.0f simulated seconds a second; faults: %s",
			n, sum.done, sum.denied, sum.steps, float64(sum.done)/real, float64(sum.done)/(processorTime()-used).Seconds(), sum.simulated.Seconds()/real,
			sim.Report(sum.happened))
	}()
	for n == 0 || n < *seeds && (period == 0 || time.Since(begun) < period) {
		seed := *firstSeed + uint64(n)
		n++
		replay := fmt.Sprintf("replay: go test ./test/sim -run TestSeeds"+
			" -sim.model %s -sim.seed %d -sim.seeds 1 -sim.requests %d",
			models[which].name, seed, *requests)
		r := inBubble(t, replay, seed, func() result { return run(seed, *requests, which) })
		sum.done += r.done
		sum.denied += r.denied
		sum.steps += r.steps
		sum.files += r.files
		sum.happened = sim.Sum(sum.happened, r.happened)
		sum.simulated += r.simulated
		if r.err != nil {
			t.Fatalf("%v\n%s", r.err, replay)
		}
	}
	if models[which].name == "file" && n > 4 && sum.files == 0 { // some runs are over TLS
		t.Error("no file was sent by sendfile")
	}
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// stuckAfter is how long a seed may take. A goroutine that waits for a lock which is never
// released stops the bubble's clock, and with it the simulation.
const stuckAfter = 2 * time.Minute

// inBubble runs f in a bubble. If it gets stuck, or leaves goroutines, that is a panic, and
// replay is written before it.
func inBubble(t *testing.T, replay string, seed uint64, f func() result) (r result) {
	// What earlier seeds have left in pools, such as buffers of other sizes, is gone after the second.
	runtime.GC()
	runtime.GC()
	watch := time.AfterFunc(stuckAfter, func() { panic("the simulation is stuck; a loop may wait for a lock\n" + replay) })
	defer watch.Stop()
	ended := false
	defer func() {
		if !ended {
			fmt.Fprintln(os.Stderr, replay)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		at := time.Now()
		sys.SetEpoch(at)
		r = f()
		r.simulated = time.Since(at)
	})
	ended = true
	return r
}
