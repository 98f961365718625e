package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/chert-http/chert/lab/child"
)

// H2load runs h2load, over TLS and with so many streams on each connection. Failed requests are counted in the result;
// that another protocol than HTTP/2 was negotiated is an error.
func (r Run) H2load(ctx context.Context, streams int) (Result, error) {
	args := []string{"h2load", "-t", "1", "-c", strconv.Itoa(r.Connections), "-m", strconv.Itoa(streams), "-D", strconv.Itoa(r.Seconds)}
	if r.Request.Body != "" {
		dir, err := os.MkdirTemp("", "chert-lab-h2load-")
		if err != nil {
			return Result{}, err
		}
		defer os.RemoveAll(dir)
		body := filepath.Join(dir, "body")
		if err := os.WriteFile(body, []byte(r.Request.Body), 0o600); err != nil {
			return Result{}, err
		}
		args = append(args, "-d", body)
	}
	if r.Request.Type != "" {
		args = append(args, "-H", "content-type: "+r.Request.Type)
	}
	args = append(args, "https://"+r.Addr+r.Request.Path)
	h2load, err := child.Run(ctx, child.Command{Args: args, Cores: []int{r.Core}})
	if err != nil {
		return Result{}, err
	}
	res, err := parseH2load(h2load.Stdout)
	if err != nil {
		return Result{}, fmt.Errorf("output of h2load: %w\n%s", err, h2load.Stdout)
	}
	res.CPU = h2load.CPU
	return res, nil
}

// The lines of h2load 1.52's output that are parsed.
var (
	h2Protocol = regexp.MustCompile(`(?m)^Application protocol: (\S+)$`)
	h2Rate     = regexp.MustCompile(`(?m)^finished in \S+, ([0-9.]+) req/s, `)
	h2Requests = regexp.MustCompile(`(?m)^requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout$`)
	h2Statuses = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`)
	h2Traffic  = regexp.MustCompile(`(?m)^traffic: \S+ \((\d+)\) total`)
)

// parseH2load reads the text h2load prints.
func parseH2load(out string) (Result, error) {
	var r Result
	if m := h2Protocol.FindStringSubmatch(out); m == nil || m[1] != "h2" {
		return r, fmt.Errorf("not over HTTP/2: %q", strings.Join(m, " "))
	}
	rate, requests := h2Rate.FindStringSubmatch(out), h2Requests.FindStringSubmatch(out)
	statuses, traffic := h2Statuses.FindStringSubmatch(out), h2Traffic.FindStringSubmatch(out)
	if rate == nil || requests == nil || statuses == nil || traffic == nil {
		return r, errors.New("no count of requests")
	}
	var bad error
	count := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	r.Requests = count(requests[2])
	// Requests that failed are those of the statuses 4xx and 5xx, too.
	r.Errors.Status = count(statuses[2]) + count(statuses[3]) + count(statuses[4])
	r.Errors.Read = max(0, count(requests[3])-count(statuses[3])-count(statuses[4]))
	r.Errors.Timeout = count(requests[5])
	r.Bytes = float64(count(traffic[1]))
	var err error
	r.PerSecond, err = strconv.ParseFloat(rate[1], 64)
	return r, errors.Join(bad, err)
}
