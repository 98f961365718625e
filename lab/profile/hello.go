package profile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/load"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// helloAnswer is what every server must answer to GET /.
var helloAnswer = rival.Answer{Status: 200, Type: "text/plain", Length: 13, Body: "Hello, World!"}

func runHello(ctx context.Context, args []string, out, log io.Writer) error {
	var c common
	f := flag.NewFlagSet("hello", flag.ContinueOnError)
	c.register(f, "nethttp,nginx")
	rounds := f.Int("rounds", 7, "how many turns each server has")
	seconds := f.Int("seconds", 2, "how long a turn is")
	connections := f.String("connections", "64,512", "numbers of connections; a table for each")
	loadCore := f.Int("load-core", -1, "the core wrk runs on (-1: the second this process may use)")
	if err := parse(f, args); err != nil {
		return err
	}
	counts, err := numbers(*connections)
	if err != nil {
		return err
	}
	if *rounds < 1 || *seconds < 1 {
		return fmt.Errorf("%d rounds of %d s: neither may be less than 1", *rounds, *seconds)
	}
	for _, program := range []string{"wrk", "taskset"} {
		if _, err := child.Find(program); err != nil {
			return err
		}
	}
	cmp := Compare{Path: "/", Want: helloAnswer, Rounds: *rounds, Seconds: *seconds, Log: log}
	if cmp.ServerCore, err = pick(c.core, 0); err != nil {
		return err
	}
	if cmp.LoadCore, err = pick(*loadCore, 1); err != nil {
		return err
	}
	if cmp.ServerCore == cmp.LoadCore {
		fmt.Fprintf(log, "server and wrk share core %d: requests per second will say little\n", cmp.ServerCore)
	}
	specs, dir, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := load.RaiseFiles(); err != nil {
		return err
	}
	file := report.File{Profile: "hello"}
	for _, n := range counts {
		cmp.Title = fmt.Sprintf("hello, %d keep-alive connections: %d rounds of %d s, server on core %d, wrk on core %d",
			n, *rounds, *seconds, cmp.ServerCore, cmp.LoadCore)
		table, err := cmp.Run(ctx, specs, n)
		if err != nil {
			return err
		}
		table.Text(out)
		fmt.Fprintln(out)
		file.Comparisons = append(file.Comparisons, table)
	}
	return c.finish(file, cmp.Faults, out)
}
