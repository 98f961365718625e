package chert

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// This file logs handlers that run for long.

const (
	// slowAgain is for how long a route that was logged is not logged again.
	slowAgain = time.Minute
	// slowLook is how many requests of each loop are looked at, the longest first.
	slowLook = 32
	// The stacks of all goroutines are taken at most every stacksEvery, and not of more
	// than maxStacks goroutines, since the program stands still meanwhile: about 5 us for
	// each. maxStacksSize bounds their text, maxStackSize that of one in the log.
	stacksEvery   = time.Second
	maxStacks     = 5000
	maxStacksSize = 16 << 20
	maxStackSize  = 8 << 10
)

// slow is which handlers were logged.
type slow struct {
	mu      sync.Mutex
	timer   *time.Timer // while the server serves
	said    map[string]time.Time
	stacked time.Time
}

// watchHandlers begins to look for handlers that take longer than SlowHandler. The lock
// is held.
func (s *Server) watchHandlers() {
	if s.SlowHandler > 0 && s.slow.timer == nil {
		s.slow.timer = time.AfterFunc(s.slowEvery(), s.seekSlow)
	}
}

// slowEvery is how often they are looked for.
func (s *Server) slowEvery() time.Duration {
	return min(max(s.SlowHandler/4, 10*time.Millisecond), time.Second)
}

// seekSlow looks once, and again later while the server serves.
func (s *Server) seekSlow() {
	s.lock()
	ended := len(s.serving)+len(s.sets)+len(s.streams) == 0
	if ended {
		s.slow.timer = nil
	}
	s.mu.Unlock()
	if ended {
		return
	}
	s.logSlow(time.Now())
	s.lock()
	s.slow.timer.Reset(s.slowEvery())
	s.mu.Unlock()
}

func (s *Server) logSlow(now time.Time) {
	var late []stats.Request
	for _, r := range s.RunningRequests(slowLook) {
		if r.Stage != "waiting" && now.Sub(r.Began) > s.SlowHandler && s.slow.begin(routeOf(&r), now) {
			late = append(late, r)
		}
	}
	if len(late) == 0 {
		return
	}
	stacks := s.slow.stacks(now)
	for _, r := range late {
		stack := stackOf(stacks, r.ID)
		if stack == "" {
			stack = "no stack: it has returned, or there are too many goroutines"
		}
		s.logf("chert: %s %s from %s has been running for %v (%s, %s):\n%s", r.Method, strconv.Quote(r.Target), r.Peer,
			now.Sub(r.Began).Round(time.Millisecond), r.Way, r.Stage, stack)
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

// stacks returns those of all goroutines, if they may be taken now.
func (s *slow) stacks(now time.Time) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.stacked) < stacksEvery || runtime.NumGoroutine() > maxStacks {
		return nil
	}
	s.stacked = now
	for size := 1 << 20; ; size *= 4 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size || size >= maxStacksSize {
			return b[:n]
		}
	}
}

// stackOf finds the goroutine that runs the handler of a request. A request is known by
// the address of its exchange, which is an argument of the functions that call the
// handler, and arguments are in the text: so nothing need be kept for each request.
func stackOf(stacks []byte, id uint64) string {
	for one := range bytes.SplitSeq(stacks, []byte("\n\n")) {
		for line := range bytes.Lines(one) {
			name, args, ok := bytes.Cut(line, []byte("("))
			if !ok || !bytes.Contains(name, []byte("chert/internal/bridge")) && !bytes.Contains(line, []byte("chert/internal/bridge")) {
				continue
			}
			if at := bytes.LastIndexByte(line, '('); at >= 0 {
				args = line[at+1:]
			}
			for arg := range bytes.FieldsFuncSeq(args, func(r rune) bool { return strings.ContainsRune(", ?){}\n", r) }) {
				v, err := strconv.ParseUint(string(arg), 0, 64)
				if err == nil && bridge.Identity(v) == id {
					return strings.ToValidUTF8(string(one[:min(len(one), maxStackSize)]), "")
				}
			}
		}
	}
	return ""
}
