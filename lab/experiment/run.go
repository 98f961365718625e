package experiment

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
	"github.com/chert-http/chert/lab/profile"
)

// ErrFaulty means that requests failed: the pages say so, and their figures are not for use.
var ErrFaulty = errors.New("requests failed; figures of these experiments count for nothing")

// Main runs experiments by name, "all" for each of them; "pages" makes the pages again from what was measured. args is the rest of the command line, tables go to out and
// progress to log.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return fmt.Errorf("experiment wants a name: all, pages, %s", strings.Join(Names(), ", "))
	}
	var scale Scale
	f := flag.NewFlagSet("experiment "+args[0], flag.ContinueOnError)
	f.SetOutput(log)
	dir := f.String("out", "", "the `folder` for pages, plots and JSON; by default record/experiments, and with --short none")
	f.BoolVar(&scale.Short, "short", false, "everything once and small, to see that it works: the figures say nothing")
	f.IntVar(&scale.Rounds, "rounds", 1, "how many times the usual number of rounds")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.NArg() > 0 || scale.Rounds < 1 {
		return fmt.Errorf("experiment takes one name, and at least one round: %q, %d", f.Args(), scale.Rounds)
	}
	if *dir == "" && !scale.Short {
		lab, err := child.Lab(ctx)
		if err != nil {
			return err
		}
		*dir = filepath.Join(lab, "record", "experiments")
	}
	wanted := All()
	switch args[0] {
	case "all":
	case "pages":
		return pages(*dir)
	default:
		e, ok := Find(args[0])
		if !ok {
			return fmt.Errorf("no experiment %q; there are all, pages, %s", args[0], strings.Join(Names(), ", "))
		}
		wanted = []Experiment{e}
	}
	return runAll(ctx, wanted, scale, *dir, out, log)
}

// runAll runs experiments one after the other. One that fails does not keep the others from running.
func runAll(ctx context.Context, wanted []Experiment, scale Scale, dir string, out, log io.Writer) error {
	seats, err := profile.Seat(1)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "chert-lab-experiment-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	begin := time.Now()
	var failed error
	for i, e := range wanted {
		fmt.Fprintf(log, "\n=== %s, experiment %d of %d; %v so far\n", e.Name, i+1, len(wanted), time.Since(begin).Round(time.Second))
		progress := &prefixed{w: log, prefix: e.Name + ": "}
		record, result, err := Run(ctx, e, &Bench{Scale: scale, Seats: seats, Dir: tmp, Log: progress})
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", e.Name, err))
			if ctx.Err() != nil {
				return failed
			}
			continue
		}
		record.text(out)
		if len(record.Faults) > 0 {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", e.Name, ErrFaulty))
		}
		if dir != "" {
			if err := record.save(dir, result.Plots); err != nil {
				return err
			}
		}
	}
	if dir != "" {
		failed = errors.Join(failed, Story(dir))
	}
	fmt.Fprintf(log, "\n=== done after %v\n", time.Since(begin).Round(time.Second))
	return failed
}

// Run runs one experiment, if what it needs is installed.
func Run(ctx context.Context, e Experiment, b *Bench) (Record, Result, error) {
	for _, program := range append([]string{"taskset"}, e.Needs...) {
		if _, err := child.Find(program); err != nil {
			return Record{}, Result{}, err
		}
	}
	r := Result{Values: Values{}}
	for _, program := range e.Helps {
		if _, err := child.Find(program); err != nil {
			r.note(fmt.Sprintf("A part was left out: %v.", err))
		}
	}
	begin := time.Now()
	if err := e.Run(ctx, b, &r); err != nil {
		return Record{}, r, err
	}
	return e.record(r, b, time.Since(begin)), r, nil
}

// prefixed writes a name before each line.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p *prefixed) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if _, err := io.WriteString(p.w, p.prefix+line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
