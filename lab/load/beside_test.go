package load

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counts is a server that counts requests.
type counts struct {
	fast, slow, turned, slowBeforeTurn atomic.Int64
}

func (c *counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/fast":
		c.fast.Add(1)
	case "/slow":
		if c.turned.Load() == 0 {
			c.slowBeforeTurn.Add(1)
		}
		c.slow.Add(1)
	case "/turn":
		c.turned.Add(1)
	default:
		http.NotFound(w, r)
	}
}

func TestBeside(t *testing.T) {
	tests := []struct {
		name   string
		before float64
	}{
		{"slow only in the second half", 0},
		{"fast at first", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c counts
			s := httptest.NewServer(&c)
			defer s.Close()
			b := Beside{Addr: s.Listener.Addr().String(), Fast: "/fast", Slow: "/slow", Connections: 4, PerSecond: 400,
				SlowBefore: tt.before, Turn: "/turn", Seconds: 0.2}
			res, err := b.Run(t.Context())
			if err != nil || res.Errors != 0 {
				t.Fatalf("%+v, %v", res, err)
			}
			if c.turned.Load() != 1 {
				t.Errorf("turned %d times", c.turned.Load())
			}
			if before := c.slowBeforeTurn.Load(); (before > 0) != (tt.before > 0) {
				t.Errorf("%d slow requests before the turn", before)
			}
			if n := res.Alone.Requests + res.Beside.Requests; n != c.fast.Load() || res.Alone.Requests == 0 || res.Beside.Requests == 0 {
				t.Errorf("%+v, the server counted %d", res, c.fast.Load())
			}
			// Paced: no more than one request for each connection and period has its place in the time.
			if most := int64(2 * (400*0.2 + 4)); c.fast.Load() > most {
				t.Errorf("%d fast requests, at most %d were due", c.fast.Load(), most)
			}
			if n := c.slow.Load() - c.slowBeforeTurn.Load(); res.Slow.Requests != n || n == 0 {
				t.Errorf("%d slow requests told, the server counted %d", res.Slow.Requests, n)
			}
		})
	}
}

func TestBesideFails(t *testing.T) {
	s := httptest.NewServer(&counts{})
	defer s.Close()
	b := Beside{Addr: s.Listener.Addr().String(), Fast: "/fast", Slow: "/missing", Connections: 2, PerSecond: 100, Seconds: 0.1}
	res, err := b.Run(t.Context())
	if err != nil || res.Errors != 2 || res.Slow.Requests != 0 || !strings.Contains(res.Fault, "404") {
		t.Errorf("slow path missing: %+v, %v", res, err)
	}
	b.Turn = "/missing"
	if _, err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("turn missing: %v", err)
	}
	s.Close()
	if _, err := b.Run(t.Context()); err == nil {
		t.Error("no error without a server")
	}
}

func TestSummarise(t *testing.T) {
	var took []time.Duration
	for i := range 101 {
		took = append(took, time.Duration(i))
	}
	slices.Reverse(took)
	if got, want := summarise(took), (Timings{Requests: 101, P50: 50, P99: 99, Max: 100}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := summarise(nil); got != (Timings{}) {
		t.Errorf("of none: %+v", got)
	}
}
