package load

import (
	"context"
	"fmt"
	"strconv"

	"github.com/chert-http/chert/lab/child"
)

// Run is one run of wrk.
type Run struct {
	URL         string
	Connections int // kept alive, each with one request under way
	Seconds     int
	Core        int // the one core wrk's one thread runs on
}

// Wrk runs wrk to its end. Failed requests are no error here: they are counted in the result.
func (r Run) Wrk(ctx context.Context) (Result, error) {
	wrk, err := child.Run(ctx, child.Command{
		Args: []string{"wrk", "--latency", "-t", "1", "-c", strconv.Itoa(r.Connections), "-d", strconv.Itoa(r.Seconds) + "s", r.URL},
		Core: r.Core,
	})
	if err != nil {
		return Result{}, err
	}
	res, err := Parse(wrk.Stdout)
	if err != nil {
		return Result{}, fmt.Errorf("output of wrk: %w\n%s", err, wrk.Stdout)
	}
	res.CPU = wrk.CPU
	return res, nil
}
