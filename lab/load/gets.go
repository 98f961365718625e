package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/lab/measure"
)

// Gets sends GETs over HTTP/3, or over TLS and HTTP/2: on each connection so many at a time, each as soon as one was
// answered. What has begun when the time is over is finished. The two are the same program and cost the client about as
// little as is possible, so that servers see the same load.
type Gets struct {
	Addr        string
	H3          bool
	Path        string
	Length      int64 // of every answer's body; the status must be 200
	Connections int
	Streams     int
	Seconds     float64 // in which requests begin, at least one on each stream
	Patience    float64 // seconds that the last answers may take; 0: half a minute
	// Server is the process whose processor time is taken, with its children's: without what it takes to open the
	// connections, which a busy machine would make the larger part.
	Server int
}

// GetsResult is what came of it.
type GetsResult struct {
	Requests       int64 // answered in full
	Elapsed        time.Duration
	Mean, P50, P99 time.Duration
	Errors         int64  // connections that failed
	Fault          string // the first error
	Server         measure.CPU
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder. Server is the
// server's processor time.
func (g Gets) Child(ctx context.Context, binary string, core int) (res Result, server measure.CPU, err error) {
	var got GetsResult
	used, err := inChild(ctx, binary, core, "gets", g, &got)
	return Result{
		Requests:  got.Requests,
		PerSecond: float64(got.Requests) / max(got.Elapsed.Seconds(), 1e-9),
		Bytes:     float64(got.Requests) * float64(g.Length),
		Latency:   Latency{Mean: got.Mean, P50: got.P50, P99: got.P99},
		Errors:    Errors{Read: got.Errors},
		Fault:     got.Fault,
		CPU:       used,
	}, got.Server, err
}

// getter is an open connection.
type getter interface {
	// converse sends requests until the time is over, and returns how long each took that was answered.
	converse(ctx context.Context, g Gets, end time.Time) (took []time.Duration, err error)
	close()
}

// Run does it in this process.
func (g Gets) Run(ctx context.Context) (GetsResult, error) {
	var res GetsResult
	if g.Connections < 1 || g.Streams < 1 || g.Seconds <= 0 {
		return res, fmt.Errorf("%d connections of %d streams for %v s", g.Connections, g.Streams, g.Seconds)
	}
	conns, err := g.open(ctx)
	defer func() {
		for _, c := range conns {
			c.close()
		}
	}()
	if err != nil {
		return res, err
	}
	before, err := measure.Tree(g.Server)
	if err != nil {
		return res, err
	}
	took := g.drive(ctx, conns, &res)
	after, err := measure.Tree(g.Server)
	res.Server = after.Sub(before)
	if len(took) == 0 || err != nil {
		return res, err
	}
	var total time.Duration
	for _, d := range took {
		total += d
	}
	slices.Sort(took)
	at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100] }
	res.Mean, res.P50, res.P99 = total/time.Duration(len(took)), at(50), at(99)
	return res, nil
}

func (g Gets) open(ctx context.Context) (conns []getter, err error) {
	open := openGetterH2
	if g.H3 {
		open = openGetterH3
	}
	for range g.Connections {
		c, err := open(ctx, g.Addr, g.Path)
		if err != nil {
			return conns, fmt.Errorf("connection %d of %d: %w", len(conns)+1, g.Connections, err)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// drive uses all connections at the same time. One that stalls fails some time after the end.
func (g Gets) drive(ctx context.Context, conns []getter, res *GetsResult) (took []time.Duration) {
	begin := time.Now()
	end := begin.Add(time.Duration(g.Seconds * float64(time.Second)))
	patience := time.Duration(cmp.Or(g.Patience, 30) * float64(time.Second))
	ctx, cancel := context.WithDeadline(ctx, end.Add(patience))
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() {
			defer context.AfterFunc(ctx, c.close)()
			own, err := c.converse(ctx, g, end)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
			if err != nil {
				res.Errors++
				res.Fault = err.Error()
			}
		})
	}
	all.Wait()
	res.Elapsed, res.Requests = time.Since(begin), int64(len(took))
	return took
}

// checkLength compares an answer's length with what is wanted.
func (g Gets) checkLength(n int64) error {
	if n != g.Length {
		return fmt.Errorf("an answer of %d bytes, not %d", n, g.Length)
	}
	return nil
}
