package metrics

import (
	"encoding/hex"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chert-http/chert/stats"
)

const (
	// maxPatterns is how many routes an Exemplars knows, as many as a server does;
	// further ones share one entry. With the 4.5 KB of each that is the bound of its
	// memory.
	maxPatterns = 256
	// maxExemplarAge is how long a trace is shown: tracing systems keep traces for
	// days, but one of yesterday says little about a rate of today.
	maxExemplarAge = 15 * time.Minute
)

// Exemplars has the latest trace for each route and each bucket of latency, to be
// shown as exemplars of http_server_request_duration_seconds: from a slow bucket of a
// chart, one click leads to the trace of a request that was that slow. Middleware for
// tracing, such as middleware/tracing, calls Observe for the requests that it has
// recorded. The zero value is empty and ready for use. Safe for concurrent use.
type Exemplars struct {
	mu     sync.Mutex
	routes map[string]*traces // by pattern
}

// traces are the latest of each bucket.
type traces [stats.Buckets]exemplar

type exemplar struct {
	at    int64 // of time.Time.UnixNano; 0 for none
	d     time.Duration
	trace [16]byte
	span  [8]byte
}

// Observe notes that a request of the route with this pattern, "" for none, took d and
// that it was recorded as that span of that trace.
func (e *Exemplars) Observe(pattern string, d time.Duration, trace [16]byte, span [8]byte) {
	at := time.Now().UnixNano()
	var one stats.Histogram // finds the bucket
	one.Observe(d, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.routes == nil {
		e.routes = make(map[string]*traces)
	}
	all := e.routes[pattern]
	if all == nil {
		if len(e.routes) >= maxPatterns {
			pattern = stats.Other
		}
		if all = e.routes[pattern]; all == nil {
			all = new(traces)
			e.routes[pattern] = all
		}
	}
	for i, n := range one.Counts {
		if n != 0 {
			all[i] = exemplar{at, d, trace, span}
			return
		}
	}
}

// by returns the traces by the series that key says a pattern belongs to.
func (e *Exemplars) by(key func(pattern string) routeKey) map[routeKey]*traces {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	series := make(map[routeKey]*traces, len(e.routes))
	for pattern, all := range e.routes {
		k := key(pattern)
		s := series[k]
		if s == nil {
			series[k] = new(*all)
			continue
		}
		for i := range all {
			if all[i].at > s[i].at {
				s[i] = all[i]
			}
		}
	}
	return series
}

// of returns the exemplars for the classic buckets of h that have counted something, of
// each the latest.
func (t *traces) of(h *stats.Histogram, classic []int) (found []prometheus.Exemplar) {
	if t == nil {
		return nil
	}
	oldest := time.Now().Add(-maxExemplarAge).UnixNano()
	next := 0
	for c := range len(classic) + 1 {
		end := stats.Buckets
		if c < len(classic) {
			end = classic[c] + 1
		}
		latest, counted := exemplar{at: oldest}, uint64(0)
		for ; next < end; next++ {
			counted += h.Counts[next]
			if t[next].at > latest.at {
				latest = t[next]
			}
		}
		// The server times only some of the quick requests, so it may not have counted
		// this one. An exemplar of an empty bucket would be one of nothing.
		if counted > 0 && latest.at != oldest {
			found = append(found, latest.export())
		}
	}
	return found
}

func (x *exemplar) export() prometheus.Exemplar {
	return prometheus.Exemplar{
		Value: x.d.Seconds(), Timestamp: time.Unix(0, x.at),
		Labels: prometheus.Labels{"trace_id": hex.EncodeToString(x.trace[:]), "span_id": hex.EncodeToString(x.span[:])},
	}
}
