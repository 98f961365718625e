package profile

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/measure"
	"github.com/chert-http/chert/lab/report"
	"github.com/chert-http/chert/lab/rival"
)

// Profile is one measurement.
type Profile struct {
	Name  string
	About string // one line
	// Run takes the rest of the command line. Tables go to out, progress to log.
	Run func(ctx context.Context, args []string, out, log io.Writer) error
}

// All lists the profiles.
func All() []Profile {
	return []Profile{
		{"hello", "\"Hello, World!\" over keep-alive connections: CPU per request, requests per second", runHello},
		{"idle", "idle keep-alive connections: resident bytes and goroutines for each", runIdle},
	}
}

// ErrFaulty means that requests failed: the figures were printed, but they are not to be used.
var ErrFaulty = errors.New("requests failed; the figures above count for nothing")

// common holds the flags that all profiles have.
type common struct {
	server string
	vs     string
	json   string
	core   int
}

func (c *common) register(f *flag.FlagSet, vs string) {
	f.StringVar(&c.server, "server", "chert", "the server to compare with its rivals, one of "+strings.Join(rival.Names(), ", "))
	f.StringVar(&c.vs, "vs", vs, "its rivals, separated by commas; empty for none")
	f.StringVar(&c.json, "json", "", "also write every round to this `file`")
	f.IntVar(&c.core, "server-core", -1, "the core servers run on (-1: the first this process may use)")
}

// names lists the servers to run, the one under test first.
func (c *common) names() []string {
	names := []string{c.server}
	for name := range strings.SplitSeq(c.vs, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// open makes the servers ready to start. The caller removes dir.
func (c *common) open(ctx context.Context) (specs []rival.Spec, dir string, err error) {
	dir, err = os.MkdirTemp("", "chert-lab-")
	if err != nil {
		return nil, "", err
	}
	specs, err = rival.Open(ctx, dir, c.names())
	if err != nil {
		os.RemoveAll(dir)
		return nil, "", err
	}
	return specs, dir, nil
}

// pick chooses the core a flag did not name: number n of those allowed.
func pick(flagged, n int) (int, error) {
	cores, err := measure.Allowed()
	if err != nil {
		return 0, err
	}
	if flagged >= 0 {
		if !slices.Contains(cores, flagged) {
			return 0, fmt.Errorf("core %d is not among those this process may use: %v", flagged, cores)
		}
		return flagged, nil
	}
	if n >= len(cores) {
		return 0, fmt.Errorf("%d cores are needed, this process may use %d", n+1, len(cores))
	}
	return cores[n], nil
}

// finish writes the JSON file, if one is wanted, and turns faults into an error.
func (c *common) finish(f report.File, faults []string, out io.Writer) error {
	f.Errors = append([]string{}, faults...)
	for _, fault := range faults {
		fmt.Fprintln(out, "ERRORS:", fault)
	}
	if c.json != "" {
		if err := f.Write(c.json); err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return ErrFaulty
	}
	return nil
}

// parse reads flags; anything after them is a mistake.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q", f.Name(), f.Arg(0))
	}
	return nil
}

// numbers reads "64,512".
func numbers(list string) ([]int, error) {
	var all []int
	for field := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("list of numbers %q", list)
		}
		all = append(all, n)
	}
	return all, nil
}
