package observe

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file logs handlers that run for long.

const (
	// slowAgain is for how long a route that was logged is not logged again.
	slowAgain = time.Minute
	// slowLook is how many requests of each loop are looked at, the longest first.
	slowLook = 32
)

// slow is which handlers were logged.
type slow struct {
	mu    sync.Mutex
	timer *time.Timer // while the server serves
	said  map[string]time.Time
}

// WatchHandlers looks for handlers that take longer than SlowAfter, while the server serves.
// It is called after each begin of Serve, without the lock that Serves takes.
func (o *Server) WatchHandlers() {
	if *o.SlowAfter <= 0 {
		return
	}
	o.slow.mu.Lock()
	defer o.slow.mu.Unlock()
	if o.slow.timer == nil {
		o.slow.timer = time.AfterFunc(o.slowEvery(), o.seekSlow)
	}
}

// slowEvery is how often they are looked for.
func (o *Server) slowEvery() time.Duration {
	return min(max(*o.SlowAfter/4, 10*time.Millisecond), time.Second)
}

// seekSlow looks once, and again later while the server serves.
func (o *Server) seekSlow() {
	o.slow.mu.Lock()
	serves := o.Serves()
	if !serves {
		o.slow.timer = nil // WatchHandlers begins again
	}
	o.slow.mu.Unlock()
	if !serves {
		return
	}
	o.logSlow(time.Now())
	o.slow.mu.Lock()
	defer o.slow.mu.Unlock()
	o.slow.timer.Reset(o.slowEvery())
}

func (o *Server) logSlow(now time.Time) {
	for _, r := range o.RunningRequests(slowLook) {
		if r.Stage == "waiting" || now.Sub(r.Began) <= *o.SlowAfter || !o.slow.begin(routeOf(&r), now) {
			continue
		}
		route := ""
		if r.Route != "" {
			route = ", route " + strconv.Quote(r.Route)
		}
		o.LogSoon("chert: %s %s from %s has been running for %v (%s, %s%s)", r.Method, strconv.Quote(r.Target), r.Peer,
			now.Sub(r.Began).Round(time.Millisecond), r.Way, r.Stage, route)
	}
}

// routeOf is what requests have in common of which one is logged.
func routeOf(r *stats.Request) string {
	if r.Route != "" {
		return r.Route
	}
	path, _, _ := strings.Cut(r.Target, "?")
	return r.Method + " " + path[:min(len(path), maxEventTarget)]
}

// begin reports whether a route is to be logged now.
func (s *slow) begin(route string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.said[route]) < slowAgain {
		return false
	}
	if len(s.said) >= tally.MaxRoutes { // clients may invent paths
		for r, at := range s.said {
			if now.Sub(at) >= slowAgain {
				delete(s.said, r)
			}
		}
		if len(s.said) >= tally.MaxRoutes {
			return false
		}
	}
	if s.said == nil {
		s.said = make(map[string]time.Time)
	}
	s.said[route] = now
	return true
}
