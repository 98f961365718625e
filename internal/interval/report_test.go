package interval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/stats"
)

var (
	begin = time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)
	then  = begin.Add(time.Hour)
)

// sample makes one at a second after then, of a server that began at begin.
func sample(second int, fill func(*Sample)) *Sample {
	s := &Sample{Snapshot: stats.Snapshot{At: then.Add(time.Duration(second) * time.Second), Since: begin}}
	if fill != nil {
		fill(s)
	}
	return s
}

// observe makes a histogram of n times d.
func observe(d time.Duration, n uint64) (h stats.Histogram) {
	h.Observe(d, n)
	return h
}

func TestBetween(t *testing.T) {
	t.Parallel()
	state := func(k uint64) func(*Sample) { // after k times what happens in two seconds
		return func(s *Sample) {
			s.Requests = []stats.Requests{{Protocol: "HTTP/1.1", Class: 2, Way: stats.Way(0), N: 200 * k}, {Protocol: "HTTP/1.1", Class: 5, Way: stats.Way(1), N: 20 * k}}
			s.BytesRead, s.BytesWritten = 2000*k, 4000*k
			s.Syscalls = []stats.Count{{Name: "write", N: 110 * k}, {Name: "read", N: 220 * k}, {Name: "close", N: 5}}
			s.Timeouts = []stats.Count{{Name: "idle", N: 3 * k}, {Name: "read", N: 7}}
			s.Connections = stats.Connections{Open: 9, Accepted: 8 * k}
			s.Total = observe(time.Millisecond, 220*k)
			s.Routes = []stats.Route{
				{Pattern: "GET /a", Classes: [6]uint64{2: 200 * k}, Ways: [stats.Ways]uint64{200 * k}, Duration: observe(time.Millisecond, 200*k), Handler: observe(time.Millisecond, 200*k)},
				{Pattern: "GET /b", Classes: [6]uint64{5: 20 * k}, Ways: [stats.Ways]uint64{10 * k, 10 * k}, Handler: observe(30*time.Millisecond, 20*k), Handovers: k},
				{Pattern: "GET /quiet", Classes: [6]uint64{2: 1000}},
			}
			s.Loops = []stats.Loop{{Inline: 200 * k, Pooled: 20 * k, Handovers: 2 * k, Turn: observe(time.Millisecond, 10*k)}}
			s.Runtime = Runtime{Goroutines: 5, GCSeconds: 0.1 * float64(k), CPUSeconds: float64(k), LockSeconds: float64(k)}
			s.TLS = stats.TLS{Versions: []stats.Count{{Name: "1.3", N: 20 * k}}, Resumed: 5 * k, EarlyRequests: 3 * k}
		}
	}
	r := Between(sample(0, state(10)), sample(2, state(11)))
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"seconds", r.Seconds, 2.0},
		{"average", r.Average, false},
		{"average since the start", Average(sample(0, state(10))).Average, true},
		{"totals", r.Totals, [6]uint64{2: 2200, 5: 220}},
		{"requests", r.Requests, 110.0},
		{"2xx", r.Classes[2], 100.0},
		{"5xx", r.Classes[5], 10.0},
		{"inline", r.Ways[0], Rate{"inline", 100}},
		{"in", r.Read, 1000.0},
		{"system calls, the most frequent first", fmt.Sprint(r.Syscalls), "[{read 1} {write 0.5}]"},
		{"troubles of this interval", fmt.Sprint(r.Troubles), "[{timeout: idle 3}]"},
		{"accepted", r.Conns.Accepted, 4.0},
		{"total", r.Stages[0].Rate, 110.0},
		{"total's mean", r.Stages[0].Mean, time.Millisecond},
		{"routes with requests", len(r.Routes), 2},
		{"first the route that takes most time", r.Routes[0].Pattern, "GET /b"},
		{"its share", r.Routes[0].Share, 0.75},
		{"its errors", r.Routes[0].Errors, 10.0},
		{"its placement", fmt.Sprint(r.Routes[0].Ways), "[{inline 0.5} {pooled 0.5}]"},
		{"its hand-overs", r.Routes[0].Handovers, 1.0},
		{"loop", r.Loops[0].Inline, 100.0},
		{"busy, of samples", r.Loops[0].Busy, 0.32},
		{"collector", r.Runtime.GC, 0.1},
		{"locks", r.Runtime.Locks, 0.5},
		{"resumed", r.TLS.Resumed, 0.25},
		{"early", r.TLS.Early, 1.5},
	} {
		if fmt.Sprintf("%.6v", c.got) != fmt.Sprintf("%.6v", c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if avg := Average(sample(0, state(10))); avg.Seconds != 3600 || avg.Requests != 2200.0/3600 {
		t.Errorf("the average is of %v s, %v", avg.Seconds, avg.Requests)
	}
	again := sample(3, state(1))
	again.Since = then.Add(2500 * time.Millisecond)
	if r := Between(sample(2, state(11)), again); r.Seconds != 0.5 || r.Requests != 440 {
		t.Errorf("after a restart: %v s, %v", r.Seconds, r.Requests)
	}
}

// No counter that runs backwards makes a huge rate: a loop that has not answered may be
// missing in a snapshot.
func TestBackwards(t *testing.T) {
	t.Parallel()
	r := Between(sample(0, func(s *Sample) {
		s.Requests = []stats.Requests{{N: 100}}
		s.BytesRead = 1000
		s.Total = observe(time.Second, 50)
		s.Loops = []stats.Loop{{Inline: 10, Turn: observe(time.Second, 1)}}
		s.Routes = []stats.Route{{Pattern: "a", Classes: [6]uint64{9}, Handler: observe(time.Second, 1)}}
	}), sample(1, func(s *Sample) { s.Loops = make([]stats.Loop, 2) }))
	if r.Requests != 0 || r.Read != 0 || r.Stages[0].Rate != 0 || r.Loops[0].Inline != 0 || r.Loops[0].Busy != 0 || len(r.Routes) != 0 {
		t.Errorf("%+v", r)
	}
}

// A clock that is set back between two samples makes no huge rate either.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	at := func(second int, n uint64) *Sample {
		return sample(second, func(s *Sample) { s.Requests = []stats.Requests{{Class: 2, N: n}} })
	}
	if r := Between(at(0, 36_000), at(-5, 36_100)); !r.Average || r.Requests > 11 {
		t.Errorf("average: %t, %v requests", r.Average, r.Requests)
	}
	if r := Between(at(0, 100), at(-7200, 200)); !r.Average { // before the server began
		t.Error("not an average")
	}
}

// Of many routes one that fails is among those that are shown, though it takes little time.
func TestFailingRouteIsShown(t *testing.T) {
	t.Parallel()
	now := sample(1, func(s *Sample) {
		s.Requests = []stats.Requests{{Class: 2, N: 2000}, {Class: 5, N: 300}}
		for i := range 200 {
			s.Routes = append(s.Routes, stats.Route{Pattern: fmt.Sprintf("GET /%d", i), Classes: [6]uint64{2: 10},
				Duration: observe(time.Duration(i+2)*time.Millisecond, 10), Handler: observe(time.Duration(i+2)*time.Millisecond, 10)})
		}
		s.Routes = append(s.Routes, stats.Route{Pattern: "GET /fails", Classes: [6]uint64{5: 300},
			Duration: observe(time.Microsecond, 300), Handler: observe(time.Microsecond, 300)})
	})
	r := Between(sample(0, nil), now)
	if len(r.Routes) != MaxRoutes || !slices.ContainsFunc(r.Routes, func(r Route) bool { return r.Pattern == "GET /fails" }) {
		t.Errorf("%d routes, without the one that fails: %v", len(r.Routes), r.Routes)
	}
	if len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Text, "mostly by GET /fails") {
		t.Errorf("%v", r.Findings)
	}
}

// However many loops and routes there are, and however long their names, a report is
// bounded.
func TestBound(t *testing.T) {
	t.Parallel()
	now := sample(1, func(s *Sample) {
		s.Loops = make([]stats.Loop, 1000)
		for i := range 2000 {
			s.Routes = append(s.Routes, stats.Route{Pattern: fmt.Sprint(i), Classes: [6]uint64{2: 1}, Duration: observe(time.Duration(2000-i)*time.Millisecond, 1), Handler: observe(time.Duration(i), 1)})
			s.Timeouts = append(s.Timeouts, stats.Count{Name: fmt.Sprint(i), N: 1})
			s.Placement.Recent = append(s.Placement.Recent, stats.PlacementEvent{Kind: fmt.Sprint(i)})
		}
	})
	now.Longest = Take(busy{}).Longest
	r := Between(sample(0, nil), now)
	b, err := json.Marshal(r)
	if err != nil || len(b) > 40_000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if r.AllLoops != 1000 || len(r.Loops) != MaxLoops {
		t.Errorf("%d loops of %d", len(r.Loops), r.AllLoops)
	}
	if len(r.Longest) != MaxRunning || r.Longest[0].Age < 999*time.Second {
		t.Errorf("not the longest requests: %v", r.Longest)
	}
	if r.Recent[0].Kind != "1999" {
		t.Errorf("the latest event is not the first: %v", r.Recent[0])
	}
	// The slowest are there beside those that take most of the time.
	if !slices.ContainsFunc(r.Routes, func(r Route) bool { return r.Pattern == "0" }) || r.Routes[0].Pattern != "1999" {
		t.Errorf("%v", r.Routes)
	}
}

// busy is a server with long requests.
type busy struct{ stats.Source }

func (busy) Stats() stats.Snapshot { return stats.Snapshot{} }

func (busy) RunningRequests(int) (all []stats.Request) {
	for i := range 1000 {
		all = append(all, stats.Request{Target: strings.Repeat("x", 60_000), Began: then.Add(-time.Duration(i) * time.Second)})
	}
	return all
}

// The JSON that the handler sends is what "chert top" reads.
func TestSampleJSON(t *testing.T) {
	t.Parallel()
	in := sample(0, func(s *Sample) {
		s.Total = observe(time.Millisecond, 3)
		s.Runtime = readRuntime()
	})
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out := new(Sample)
	if err := json.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	if out.Total != in.Total || !out.Since.Equal(in.Since) || out.Runtime != in.Runtime || out.Runtime.Goroutines == 0 {
		t.Errorf("%+v", out.Runtime)
	}
}

// What an operator reads of errors and refusals.
func TestFindingsText(t *testing.T) {
	t.Parallel()
	r := Between(sample(0, nil), sample(1, func(s *Sample) {
		s.Requests = []stats.Requests{{Class: 2, N: 890}, {Class: 5, N: 110}}
		s.Routes = []stats.Route{{Pattern: "GET /ok", Classes: [6]uint64{2: 780}}, {Pattern: "GET /bad", Classes: [6]uint64{2: 110, 5: 110}}}
		s.Malformed = []stats.Count{{Name: "no Host field", N: 60}}
		s.Connections.Refused = []stats.Count{{Name: "too many connections", N: 40}}
	}))
	want := []string{
		"11 % of requests are answered with 5xx, mostly by GET /bad, 50 % of whose requests fail: see the program's log",
		"100 requests or connections were refused in 1 s, mostly: request: no Host field",
	}
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	r = Between(sample(0, nil), sample(1, func(s *Sample) {
		s.Requests = []stats.Requests{{Class: 2, N: 500}, {Class: 5, N: 500}}
		s.Malformed = []stats.Count{{Name: "too many requests wait for a handler", N: 490}}
	}))
	if len(r.Findings) != 2 || r.Findings[0].Text != "50 % of requests are answered with 5xx, mostly by the server, because all slots for handlers are taken" || r.Findings[1].Kind != "refusals" {
		t.Errorf("%+v", r.Findings)
	}
	for part, want := range map[float64]string{1: "100 %", 0.996: "100 %", 0.114: "11 %", 0.0996: "10.0 %", 0.012: "1.2 %"} {
		if got := percent(part); got != want {
			t.Errorf("%g: %s, want %s", part, got, want)
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		fill func(*Sample)
		want string // kinds
	}{
		{"idle", nil, ""},
		{"slots", func(s *Sample) { s.Waiting, s.Wait = 9, observe(80*time.Millisecond, 100) }, "slots"},
		{"waits that are over", func(s *Sample) { s.Wait = observe(80*time.Millisecond, 100) }, ""},
		{"a burst", func(s *Sample) { s.Waiting, s.Wait = 9, observe(80*time.Microsecond, 100) }, ""},
		{"clients", func(s *Sample) { s.Write = observe(5*time.Second, 10) }, "clients"},
		{"a handler waits for its client", func(s *Sample) {
			s.Longest = []stats.Request{{Began: s.At.Add(-3 * time.Second), Stage: "write", Target: "/export"}}
		}, "clients"},
		{"a client that has just begun", func(s *Sample) {
			s.Longest = []stats.Request{{Began: s.At.Add(-30 * time.Millisecond), Stage: "write"}, {Began: s.At.Add(-time.Minute), Stage: "handler"}}
		}, ""},
		{"large responses", func(s *Sample) { s.Write = observe(50*time.Millisecond, 10) }, ""},
		{"errors", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 980}, {Class: 5, N: 20}}
		}, "errors"},
		{"few requests, and many of them fail", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 24}, {Class: 5, N: 3}}
		}, "errors"},
		{"few errors", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 100}, {Class: 5, N: 2}, {Class: 4, N: 50}, {Class: 0, N: 50}}
		}, ""},
		{"rare errors", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 10000}, {Class: 5, N: 20}}
		}, ""},
		{"refused requests", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 50}, {Class: 4, N: 10}}
			s.Malformed = []stats.Count{{Name: "no Host field", N: 6}, {Name: "bad chunk", N: 4}}
		}, "refusals"},
		{"refused connections", func(s *Sample) {
			s.Connections.Refused = []stats.Count{{Name: "too many connections", N: 5}}
		}, "refusals"},
		{"the server is full", func(s *Sample) {
			s.Requests = []stats.Requests{{Class: 2, N: 500}, {Class: 5, N: 50}}
			s.Malformed = []stats.Count{{Name: "too many requests wait for a handler", N: 50}}
		}, "errors refusals"},
		{"timeouts are no refusals", func(s *Sample) {
			s.Timeouts = []stats.Count{{Name: "idle", N: 500}}
		}, ""},
		{"lock", func(s *Sample) { s.Runtime.LockSeconds = 3 }, "lock"},
		{"collector", func(s *Sample) { s.Runtime.GCSeconds, s.Runtime.CPUSeconds = 1, 4 }, "collector"},
		{"route", func(s *Sample) {
			s.Routes = []stats.Route{{Pattern: "a", Classes: [6]uint64{2: 1000}, Handler: observe(time.Microsecond, 1000)},
				{Pattern: "b", Classes: [6]uint64{2: 9}, Handler: observe(300*time.Millisecond, 9)}}
		}, "route"},
		{"a server of one route", func(s *Sample) {
			s.Routes = []stats.Route{{Pattern: "b", Classes: [6]uint64{2: 9}, Handler: observe(300*time.Millisecond, 9)}}
		}, ""},
		{"loop", func(s *Sample) { s.Loops = []stats.Loop{{}, {Lag: 60 * time.Millisecond}} }, "loop"},
		{"stale loop", func(s *Sample) { s.Loops = []stats.Loop{{Stale: true}} }, "loop"},
	} {
		var kinds []string
		for _, f := range Between(sample(0, nil), sample(1, tt.fill)).Findings {
			kinds = append(kinds, f.Kind)
			if f.Text == "" || f.Look == "" && f.Kind != "errors" && f.Kind != "refusals" {
				t.Errorf("%s: %+v", tt.name, f)
			}
		}
		if got := strings.Join(kinds, " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Short(0): "0 ns", Short(999): "999 ns", Short(1500): "1.5 µs", Short(40 * time.Millisecond): "40 ms", Short(90 * time.Second): "90 s",
		Bytes(0): "0 B", Bytes(1023): "1023 B", Bytes(1536): "1.5 KiB", Bytes(3 << 50): "3072 TiB",
		Number(0): "0", Number(4): "4", Number(1.25): "1.2", Number(9999): "9999", Number(12_345): "12k", Number(2.5e6): "2.5M",
		Printable("GET /\u00e9"): "GET /\u00e9", Printable("a\x1b[2J\"\u202e"): `a\x1b[2J"\u202e`, Printable("\xff"): `\xff`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What a second costs a server that is watched, beside its own snapshot: 256 routes on
// 64 loops.
func BenchmarkReport(b *testing.B) {
	fill := func(k uint64) func(*Sample) {
		return func(s *Sample) {
			for i := range 256 {
				s.Routes = append(s.Routes, stats.Route{Pattern: fmt.Sprint("GET /route/", i), Classes: [6]uint64{2: k},
					Duration: observe(time.Duration(i)*time.Millisecond, k), Handler: observe(time.Duration(i)*time.Millisecond, k)})
			}
			s.Loops = make([]stats.Loop, 64)
		}
	}
	before, now := sample(0, fill(1)), sample(1, fill(1000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(Between(before, now)); err != nil {
			b.Fatal(err)
		}
	}
}
