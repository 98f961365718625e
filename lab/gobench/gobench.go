// Package gobench runs Go benchmarks and reads what they print.
package gobench

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/lab/child"
)

// Bench is what one benchmark took for each operation.
type Bench struct {
	Name          string // without "Benchmark", the name of the function and the number of processors
	NS            float64
	Bytes, Allocs float64
}

// Run runs the benchmarks of the package in a folder of the lab, each about as long as each.
func Run(ctx context.Context, folder string, each time.Duration, cores []int) ([]Bench, error) {
	lab, err := child.Lab(ctx)
	if err != nil {
		return nil, err
	}
	run, err := child.Run(ctx, child.Command{Args: []string{"go", "test", "-C", lab, "-run", "^$", "-bench", ".", "-benchmem",
		"-benchtime", each.String(), "./" + folder}, Cores: cores})
	if err != nil {
		return nil, err
	}
	all, err := parse(run.Stdout)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no benchmarks in %s:\n%s", folder, run.Stdout)
	}
	return all, err
}

// line is that of a benchmark. The number of processors is left out if it is one.
var line = regexp.MustCompile(`^Benchmark[^/\s]*/?(\S*?)(?:-\d+)?\s+\d+\s+([0-9.]+) ns/op(?:\s+([0-9.]+) B/op\s+([0-9.]+) allocs/op)?`)

func parse(text string) ([]Bench, error) {
	var all []Bench
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		b := Bench{Name: m[1]}
		for i, to := range []*float64{&b.NS, &b.Bytes, &b.Allocs} {
			if m[2+i] == "" {
				continue
			}
			var err error
			if *to, err = strconv.ParseFloat(m[2+i], 64); err != nil {
				return nil, err
			}
		}
		all = append(all, b)
	}
	return all, nil
}
