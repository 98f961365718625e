package tally

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/chert-http/chert/stats"
)

// The weights of what is selected add up to all, at distances that differ.
func TestSampler(t *testing.T) {
	t.Parallel()
	var s Sampler
	const n = 1_000_000
	sum, picked, longest, last := uint64(0), 0, 0, -1
	distances := make(map[int]bool)
	for i := range n {
		w := s.Next()
		if w == 0 {
			continue
		}
		if picked++; last >= 0 {
			distances[i-last] = true
			longest = max(longest, i-last)
			if int(w) != i-last {
				t.Fatalf("the weight of %d is %d, after %d", i, w, last)
			}
		} else if i != 0 || w != 1 {
			t.Errorf("the first is %d, with weight %d", i, w)
		}
		last = i
		sum += uint64(w)
	}
	if sum > n || sum < n-2*stats.SampleEvery {
		t.Errorf("the weights are %d", sum)
	}
	if mean := float64(n) / float64(picked); math.Abs(mean-stats.SampleEvery) > 2 {
		t.Errorf("one in %.1f is selected", mean)
	}
	if len(distances) < stats.SampleEvery || longest >= 2*stats.SampleEvery {
		t.Errorf("%d distances, the longest %d", len(distances), longest)
	}
}

// Events that are observed by themselves do not count twice.
func TestSamplerCorrect(t *testing.T) {
	t.Parallel()
	var s Sampler
	const n = 300_000
	sum := uint64(0)
	for i := range n {
		w := s.Next()
		switch {
		case i%1000 < 200: // in long runs, longer than a distance
			s.Correct(w)
			sum++
		default:
			sum += uint64(w)
		}
	}
	if sum > n+200 || sum < n-2*stats.SampleEvery {
		t.Errorf("%d of %d", sum, n)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	seen := make(map[ID]bool)
	for p := range Proto(Protos) {
		for class := range uint8(Classes) {
			for w := range stats.Ways {
				id := AnswerOf(p, class, w)
				if seen[id] || id < Answers || id >= IDs {
					t.Errorf("%v %d %v is %d", p, class, w, id)
				}
				seen[id] = true
			}
		}
	}
	for status, want := range map[int]uint8{0: 0, 99: 0, 101: 1, 200: 2, 599: 5, 600: 0, 999: 0, -1: 0} {
		if got := ClassOf(status); got != want {
			t.Errorf("%d is of class %d", status, got)
		}
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	var n Names
	var a, b Shard
	a.Init(&n)
	b.Init(&n)
	get := AnswerOf(HTTP11, 2, stats.Inline)
	slow := AnswerOf(HTTP2, 5, stats.Pooled)
	for _, driving := range []bool{true, false} {
		a.Add(driving, BytesRead, 10)
		a.Add(driving, Reads, 1)
		a.Add(driving, LateHead, 1)
		a.Answer(driving, get, "", nil, false)
		a.Answer(driving, get, "GET /", &Times{Weight: 64, Total: time.Millisecond, Handler: time.Microsecond}, false)
		b.Answer(driving, slow, "GET /", &Times{Weight: 1, Total: time.Second, Wait: time.Millisecond, Head: time.Minute}, true)
		b.Write(driving, time.Hour)
	}
	a.Turn(time.Millisecond)
	a.GivingWay = true
	a.Late(true, LateIdle)
	a.Late(false, LateIdle)
	var c, both Counts
	c.Read(&a)
	both.Merge(&c)
	c = Counts{}
	c.Read(&b)
	both.Merge(&c)
	var sn stats.Snapshot
	both.Fill(&sn)
	if sn.BytesRead != 20 || stats.Get(sn.Syscalls, "read") != 2 || len(sn.Syscalls) != 1 || stats.Get(sn.Timeouts, "head") != 2 || stats.Get(sn.Timeouts, "idle") != 1 {
		t.Errorf("%+v", sn)
	}
	want := []stats.Requests{{Protocol: "HTTP/1.1", Class: 2, Way: stats.Inline, N: 4}, {Protocol: "HTTP/2.0", Class: 5, Way: stats.Pooled, N: 2}}
	if fmt.Sprint(sn.Requests) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", sn.Requests, want)
	}
	if sn.Total.N() != 130 || sn.Handler.N() != 128 || sn.Wait.N() != 2 || sn.Head.N() != 2 || sn.Write.N() != 2 || both.Turn.N() != 1 {
		t.Errorf("%d %d %d %d %d", sn.Total.N(), sn.Handler.N(), sn.Wait.N(), sn.Head.N(), sn.Write.N())
	}
	if len(sn.Routes) != 2 || sn.Routes[0].Pattern != stats.NoRoute || sn.Routes[0].N() != 2 || sn.Routes[0].Duration.N() != 0 {
		t.Fatalf("%+v", sn.Routes)
	}
	if r := sn.Routes[1]; r.Pattern != "GET /" || r.N() != 4 || r.Classes != [6]uint64{2: 2, 5: 2} || r.Ways != [4]uint64{2, 2} || r.Duration.N() != 130 || r.Handovers != 2 {
		t.Errorf("%+v", r)
	}
}

// Whatever patterns there are: a Shard has a bounded number of routes, and the same in
// all Shards.
func TestRoutesAreBounded(t *testing.T) {
	t.Parallel()
	var n Names
	shards := make([]Shard, 3)
	for i := range shards {
		shards[i].Init(&n)
		for k := range 3 * MaxRoutes {
			k := (k*7 + i*100) % (3 * MaxRoutes)
			shards[i].Answer(k%2 == 0, AnswerOf(HTTP11, 2, stats.Inline), fmt.Sprint("GET /", k), nil, false)
		}
	}
	shards[0].Answer(true, AnswerOf(HTTP11, 2, stats.Inline), strings.Repeat("x", maxName+1), nil, false)
	var c Counts
	for i := range shards {
		c.Read(&shards[i])
	}
	var sn stats.Snapshot
	c.Fill(&sn)
	sum, other := uint64(0), uint64(0)
	for _, r := range sn.Routes {
		if sum += r.N(); r.Pattern == stats.Other {
			other = r.N()
		}
	}
	if len(sn.Routes) != MaxRoutes+1 || sum != 3*3*MaxRoutes+1 || other != 3*2*MaxRoutes+1 {
		t.Errorf("%d routes of %d requests, %d others", len(sn.Routes), sum, other)
	}
}

// A pattern in memory that held another one is not taken for that.
func TestPatternInReusedMemory(t *testing.T) {
	t.Parallel()
	var s Shard
	s.Init(new(Names))
	b := []byte("GET /a")
	pattern := unsafe.String(&b[0], len(b))
	id := AnswerOf(HTTP11, 2, stats.Inline)
	s.Answer(true, id, pattern, nil, false)
	copy(b, "GET /b")
	s.Answer(true, id, pattern, nil, false)
	var c Counts
	c.Read(&s)
	if len(c.routes) != 2 || c.routes["GET /a"].N() != 1 || c.routes["GET /b"].N() != 1 {
		t.Errorf("%v", c.routes)
	}
}

// The driver counts while others do, and while another goroutine reads what is theirs.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var s Shard
	s.Init(new(Names))
	const n = 2000
	id := AnswerOf(HTTP11, 2, stats.Pooled)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for i := range n {
				s.Add(false, BytesRead, 1)
				s.Answer(false, id, fmt.Sprint(i%5), &Times{Weight: 1, Total: 1}, false)
				s.Requests.Correct(1)
			}
		})
	}
	all.Go(func() {
		for range 100 {
			new(Counts).ReadBeside(&s)
		}
	})
	for i := range n {
		s.Requests.Next()
		s.Add(true, BytesRead, 1)
		s.Answer(true, id, fmt.Sprint(i%5), nil, false)
	}
	all.Wait()
	var c Counts
	c.Read(&s)
	if c.Of(BytesRead) != 4*n || c.Way(stats.Pooled) != 4*n || c.times[total].N() != 3*n || len(c.routes) != 5 {
		t.Errorf("%d, %d, %d, %d", c.Of(BytesRead), c.Way(stats.Pooled), c.times[total].N(), len(c.routes))
	}
}

// Who reads while goroutines answer requests of a route sees each as one of that route.
func TestNoRouteNeverGoesBack(t *testing.T) {
	t.Parallel()
	var s Shard
	s.Init(new(Names))
	id := AnswerOf(HTTP11, 2, stats.Pooled)
	s.Answer(false, id, "", nil, false)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 20_000 {
				s.Answer(false, id, "GET /", nil, false)
			}
		})
	}
	for range 5000 {
		var c Counts
		c.ReadBeside(&s)
		var sn stats.Snapshot
		c.Fill(&sn)
		if r := sn.Routes[0]; r.Pattern != stats.NoRoute || r.N() != 1 {
			t.Errorf("%d requests of %q, want 1 without a route", r.N(), r.Pattern)
			break
		}
	}
	all.Wait()
}

func TestAllocations(t *testing.T) {
	var s Shard
	s.Init(new(Names))
	id := AnswerOf(HTTP11, 2, stats.Inline)
	for _, driving := range []bool{true, false} {
		if n := testing.AllocsPerRun(100, func() {
			s.Add(driving, BytesRead, 1)
			s.Requests.Next()
			s.Answer(driving, id, "GET /users/{id}", &Times{Weight: 64, Total: 1, Handler: 1}, false)
		}); n != 0 {
			t.Errorf("driving %v: %v allocations", driving, n)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	id := AnswerOf(HTTP11, 2, stats.Inline)
	for _, driving := range []bool{true, false} {
		for _, pattern := range []string{"", "GET /users/{id}"} {
			b.Run(fmt.Sprintf("driving=%v/%s", driving, pattern), func(b *testing.B) {
				var s Shard
				s.Init(new(Names))
				for b.Loop() {
					s.Requests.Next()
					s.Answer(driving, id, pattern, nil, false)
				}
			})
		}
	}
}
