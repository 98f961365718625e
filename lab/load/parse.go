package load

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Result is what wrk found.
type Result struct {
	Requests  int64   // answers read in full
	PerSecond float64 // by wrk's own clock, which runs slightly longer than requested
	Bytes     float64 // of answers, also of those not read in full; wrk prints three digits or more
	Latency   Latency
	Errors    Errors
	Fault     string        // the first error, where it is known
	CPU       time.Duration // what wrk itself used; not part of its output
}

// Latency is the distribution wrk prints. Under full load it says how long the queue is, not how quick the server.
type Latency struct {
	Mean               time.Duration
	P50, P75, P90, P99 time.Duration
}

// Errors counts what went wrong. Status counts answers with a status above 399.
type Errors struct {
	Connect, Read, Write, Timeout, Status int64
}

// Sum is the number of errors of all kinds.
func (e Errors) Sum() int64 { return e.Connect + e.Read + e.Write + e.Timeout + e.Status }

func (e Errors) String() string {
	return fmt.Sprintf("connect %d, read %d, write %d, timeout %d, status %d", e.Connect, e.Read, e.Write, e.Timeout, e.Status)
}

// The lines of wrk 4's output that are parsed. Lines about errors are only printed if there were any.
var (
	requestsLine = regexp.MustCompile(`(?m)^\s+(\d+) requests in \S+, ([0-9.]+)([KMGTP]?)B read$`)
	perSecLine   = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)
	meanLine     = regexp.MustCompile(`(?m)^\s+Latency\s+([0-9.]+)(us|ms|s|m|h)\s`)
	latencyLine  = regexp.MustCompile(`(?m)^\s+(50|75|90|99)%\s+([0-9.]+)(us|ms|s|m|h)$`)
	socketLine   = regexp.MustCompile(`(?m)^\s+Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`)
	statusLine   = regexp.MustCompile(`(?m)^\s+Non-2xx or 3xx responses: (\d+)$`)
)

// binaryUnits is what wrk means by its units.
var binaryUnits = map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}

// Parse reads the text wrk prints. A line of errors in an unknown form is an error: it must not pass for none.
func Parse(out string) (Result, error) {
	var r Result
	requests := requestsLine.FindStringSubmatch(out)
	perSec := perSecLine.FindStringSubmatch(out)
	if requests == nil || perSec == nil {
		return r, errors.New("no count of requests")
	}
	var bad error
	count := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	r.Requests = count(requests[1])
	number := func(s string) float64 {
		n, err := strconv.ParseFloat(s, 64)
		bad = errors.Join(bad, err)
		return n
	}
	r.PerSecond = number(perSec[1])
	r.Bytes = number(requests[2]) * binaryUnits[requests[3]]
	if m := socketLine.FindStringSubmatch(out); m != nil {
		r.Errors.Connect, r.Errors.Read, r.Errors.Write, r.Errors.Timeout = count(m[1]), count(m[2]), count(m[3]), count(m[4])
	} else if strings.Contains(out, "Socket errors") {
		bad = errors.Join(bad, errors.New("unknown form of socket errors"))
	}
	if m := statusLine.FindStringSubmatch(out); m != nil {
		r.Errors.Status = count(m[1])
	} else if strings.Contains(out, "Non-2xx") {
		bad = errors.Join(bad, errors.New("unknown form of response errors"))
	}
	var err error
	r.Latency, err = parseLatency(out)
	return r, errors.Join(bad, err)
}

// ByBytes counts as requests what the bytes make up, if an answer has size.
func (r Result) ByBytes(size int) Result {
	if r.Requests == 0 || size == 0 {
		return r
	}
	whole := r.Bytes / float64(size)
	r.PerSecond *= whole / float64(r.Requests)
	r.Requests = int64(math.Round(whole))
	return r
}

func parseLatency(out string) (Latency, error) {
	var l Latency
	if m := meanLine.FindStringSubmatch(out); m != nil {
		var err error
		if l.Mean, err = time.ParseDuration(m[1] + m[2]); err != nil {
			return l, err
		}
	}
	for _, m := range latencyLine.FindAllStringSubmatch(out, -1) {
		d, err := time.ParseDuration(m[2] + m[3])
		if err != nil {
			return l, err
		}
		switch m[1] {
		case "50":
			l.P50 = d
		case "75":
			l.P75 = d
		case "90":
			l.P90 = d
		case "99":
			l.P99 = d
		}
	}
	return l, nil
}
