package perf

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// Count counts the system calls of processes, all threads included, while f runs. It slows them down several times, so
// nothing else may be measured meanwhile; counts for each request hardly change by that.
func Count(ctx context.Context, pids []int, f func() error) (map[string]int64, error) {
	dir, err := os.MkdirTemp("", "chert-lab-strace-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "counts")
	args := []string{"strace", "-f", "-c", "-U", "calls,name", "-o", out}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	tracing, err := child.Start(ctx, child.Command{Args: args})
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if err == nil {
			err = attached(ctx, pid, tracing)
		}
	}
	if err == nil {
		err = f()
	}
	tracing.Stop() // SIGTERM: it lets the process go and writes the table
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	return parseCounts(string(text)), nil
}

// parseCounts reads a table with the columns calls and name.
func parseCounts(text string) map[string]int64 {
	counts := map[string]int64{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || fields[1] == "total" {
			continue
		}
		if n, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
			counts[fields[1]] += n
		}
	}
	return counts
}
