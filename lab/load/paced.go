package load

import (
	"context"
	"time"
)

// Paced sends requests at a rate that a server can easily serve, so that a response waits for no other request: its latency is
// then the server's.
type Paced struct {
	Addr, Path  string
	Connections int
	PerSecond   float64 // over all connections
	Seconds     float64
}

// PacedResult is what came of it.
type PacedResult struct {
	Timings
	Errors int64  // connections that failed, and all that were then not sent
	Fault  string // the last error
}

// Run does it in this process.
func (p Paced) Run(ctx context.Context) (res PacedResult, err error) {
	f, err := openFlow(ctx, p.Addr, p.Path, p.Connections)
	if err != nil {
		return res, err
	}
	defer f.close()
	res.Timings = <-f.start(ctx, p.PerSecond, time.Duration(p.Seconds*float64(time.Second)))
	for _, err := range f.failed {
		if err != nil {
			res.Errors++
			res.Fault = err.Error()
		}
	}
	return res, ctx.Err()
}

// Child does it in a process on a core of its own, whose processor time is used. binary is the path of the program built in
// PaceFolder.
func (p Paced) Child(ctx context.Context, binary string, core int) (res PacedResult, used time.Duration, err error) {
	used, err = inChild(ctx, binary, core, "paced", p, &res)
	return res, used, err
}
