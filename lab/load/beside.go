package load

import (
	"context"
	"fmt"
	"time"

	"github.com/chert-http/chert/lab/exchange"
)

// Beside requests something fast from one server, first alone, then concurrently with something
// slow.
//
// The fast requests are paced: were each sent as soon as the last was answered, their latency would be the length of
// the queue they themselves make. The slow ones are sent as soon as the last was answered.
type Beside struct {
	Addr        string
	Fast, Slow  string  // paths
	Connections int     // of the fast ones
	Slows       int     // connections of the slow ones; 0 for as many
	PerSecond   float64 // fast requests, over all connections
	// SlowBefore is how many requests a second the slow path gets in the first half, when it is to be fast yet.
	SlowBefore float64
	Turn       string // if not empty, a path to ask for between the halves
	// Spread is the time over which the slow ones begin. If they begin at once and take equally long, they stay in step:
	// what a fast request then waits for is a burst of others.
	Spread  time.Duration
	Seconds float64 // each half
	// Streams: all requests are streams of one connection, over TLS and HTTP/2.
	Streams bool
}

// BesideResult is what came of it.
type BesideResult struct {
	Alone  Timings // fast, first half
	Apart  Timings // fast, between the halves, while the slow ones are streams of another connection; only with Streams
	Beside Timings // fast, second half
	Slow   Timings // slow, second half
	Errors int64   // requests that failed, and all that were then not sent
	Fault  string  // the first error
	// CPU is the processor time of the client program; Child sets it.
	CPU time.Duration `json:"-"`
}

// Run does it in this process.
func (b Beside) Run(ctx context.Context) (BesideResult, error) {
	var res BesideResult
	if b.Slows == 0 {
		b.Slows = b.Connections
	}
	open := openFlow
	var apart *flow // the slow ones on another connection
	if b.Streams {
		t := transportH2()
		defer t.CloseIdleConnections()
		if err := askH2(ctx, t, "https://"+b.Addr+b.Fast); err != nil { // one connection, before there are many streams
			return res, err
		}
		open = func(ctx context.Context, addr, path string, n int) (*flow, error) {
			return streamFlow(ctx, t, addr, path, n), nil
		}
		other := transportH2()
		defer other.CloseIdleConnections()
		if err := askH2(ctx, other, "https://"+b.Addr+b.Fast); err != nil {
			return res, err
		}
		apart = streamFlow(ctx, other, b.Addr, b.Slow, b.Slows)
		apart.spread = b.Spread
	}
	fast, err := open(ctx, b.Addr, b.Fast, b.Connections)
	if err != nil {
		return res, err
	}
	defer fast.close()
	slow, err := open(ctx, b.Addr, b.Slow, b.Slows)
	if err != nil {
		return res, err
	}
	defer slow.close()
	slow.spread = b.Spread

	half := time.Duration(b.Seconds * float64(time.Second))
	var before chan Timings
	if b.SlowBefore > 0 {
		before = slow.start(ctx, b.SlowBefore, half)
	}
	res.Alone = <-fast.start(ctx, b.PerSecond, half)
	if before != nil {
		<-before
	}
	if b.Turn != "" {
		answer, err := exchange.Fetch(ctx, b.Addr, exchange.Get(b.Turn))
		if err == nil && answer.Status != 200 {
			err = fmt.Errorf("status %d", answer.Status)
		}
		if err != nil {
			return res, fmt.Errorf("%s: %w", b.Turn, err)
		}
	}
	flows := []*flow{fast, slow}
	if apart != nil {
		elsewhere := apart.start(ctx, 0, half)
		res.Apart = <-fast.start(ctx, b.PerSecond, half)
		<-elsewhere
		flows = append(flows, apart)
	}
	slowly := slow.start(ctx, 0, half)
	res.Beside = <-fast.start(ctx, b.PerSecond, half)
	res.Slow = <-slowly
	for _, f := range flows {
		for _, err := range f.failed {
			if err != nil {
				res.Errors++
				res.Fault = err.Error()
			}
		}
	}
	return res, ctx.Err()
}

// Child does it in a process on a core of its own. binary is the path of the program built in PaceFolder.
func (b Beside) Child(ctx context.Context, binary string, core int) (BesideResult, error) {
	var res BesideResult
	used, err := inChild(ctx, binary, core, "beside", b, &res)
	res.CPU = used
	return res, err
}
