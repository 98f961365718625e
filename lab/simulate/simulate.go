package simulate

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// models are those of test/sim.
var models = []string{"h1", "h2", "tls", "file", "reload", "ws", "hijack", "sse", "proxy"}

// Main is the command "sim" of the lab: new seeds for a while, each of which decides the faults and the order of a run.
func Main(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("sim", flag.ContinueOnError)
	flags.SetOutput(out)
	seed := flags.Uint64("seed", 0, "the first `seed`; 0: one that the clock decides")
	count := flags.Int("seeds", 1<<30, "how many seeds at most")
	period := flags.Duration("for", time.Minute, "how long new seeds are begun, by all models together")
	model := flags.String("model", "", "what clients speak: "+strings.Join(models, ", ")+"; empty: each in turn")
	requests := flags.Int("requests", 10_000, "requests or messages of each seed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("sim takes no argument %q", flags.Arg(0))
	}
	if *model != "" && !slices.Contains(models, *model) {
		return fmt.Errorf("--model: no model %q; want one of %s", *model, strings.Join(models, ", "))
	}
	if *count < 1 || *requests < 1 || *period <= 0 {
		return errors.New("--seeds, --requests and --for want more than 0")
	}
	if *seed == 0 {
		*seed = uint64(time.Now().Unix()) << 20
	}
	lab, err := child.Lab(ctx)
	if err != nil {
		return err
	}
	test := []string{"test", "./test/sim", "-run", "^TestSeeds$", "-v", "-count=1", "-timeout", "0",
		"-sim.seed", strconv.FormatUint(*seed, 10), "-sim.seeds", strconv.Itoa(*count), "-sim.for", period.String(),
		"-sim.model=" + *model, "-sim.requests", strconv.Itoa(*requests)}
	fmt.Fprintln(log, "go", strings.Join(test, " "))
	cmd := exec.CommandContext(ctx, "go", test...)
	child.Group(cmd)
	cmd.Dir, cmd.Stderr = filepath.Dir(lab), log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "=== RUN") {
			fmt.Fprintln(out, line)
		}
	}
	if err := cmd.Wait(); err != nil {
		return errors.New("a seed has failed, or the simulation could not run: see above")
	}
	return nil
}
