package load

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/chert-http/chert/lab/child"
)

// Ab is a run of ApacheBench, which speaks HTTP/1.0.
type Ab struct {
	Addr, Path  string
	Requests    int
	Connections int
	Keep        bool // connections: -k
	Core        int
}

// AbResult is what it found.
type AbResult struct {
	PerSecond float64
	Each      float64 // milliseconds, over all connections together
	Failed    int64
}

var (
	abRate   = regexp.MustCompile(`(?m)^Requests per second:\s+([0-9.]+) `)
	abEach   = regexp.MustCompile(`(?m)^Time per request:\s+([0-9.]+) \[ms\] \(mean, across all concurrent requests\)`)
	abFailed = regexp.MustCompile(`(?m)^Failed requests:\s+(\d+)$`)
	abStatus = regexp.MustCompile(`(?m)^Non-2xx responses:\s+(\d+)$`)
	abDone   = regexp.MustCompile(`(?m)^Complete requests:\s+(\d+)$`)
)

// Run runs it to its end.
func (a Ab) Run(ctx context.Context) (AbResult, error) {
	args := []string{"ab", "-q", "-n", strconv.Itoa(a.Requests), "-c", strconv.Itoa(a.Connections)}
	if a.Keep {
		args = append(args, "-k")
	}
	ab, err := child.Run(ctx, child.Command{Args: append(args, "http://"+a.Addr+a.Path), Cores: []int{a.Core}})
	if err != nil {
		return AbResult{}, err
	}
	res, err := parseAb(ab.Stdout, a.Requests)
	if err != nil {
		return res, fmt.Errorf("output of ab: %w\n%s", err, ab.Stdout)
	}
	return res, nil
}

func parseAb(text string, requests int) (AbResult, error) {
	var res AbResult
	var bad error
	find := func(line *regexp.Regexp) float64 {
		m := line.FindStringSubmatch(text)
		if m == nil {
			bad = errors.Join(bad, fmt.Errorf("no line %s", line))
			return 0
		}
		v, err := strconv.ParseFloat(m[1], 64)
		bad = errors.Join(bad, err)
		return v
	}
	res.PerSecond, res.Each, res.Failed = find(abRate), find(abEach), int64(find(abFailed))
	res.Failed += int64(requests) - int64(find(abDone))
	if abStatus.MatchString(text) {
		res.Failed += int64(find(abStatus))
	}
	return res, bad
}
