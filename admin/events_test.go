package admin

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/interval"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// counted counts how often it is asked.
type counted struct {
	asked   atomic.Int64
	started time.Time
}

func (c *counted) Stats() stats.Snapshot {
	n := uint64(c.asked.Add(1))
	return stats.Snapshot{At: time.Now(), Since: c.started, Requests: []stats.Requests{{Class: 2, N: n * 100}},
		Loops: []stats.Loop{{Inline: n}}, Running: int64(n)}
}

func (c *counted) RunningRequests(int) []stats.Request {
	return []stats.Request{{Target: strings.Repeat("x", 10_000), Began: time.Now()}}
}

func (c *counted) OpenConnections(int) []stats.Connection { return nil }

func watched(t *testing.T, every time.Duration) (*counted, *events, string) {
	src := &counted{started: time.Now().Round(0)} // as in JSON, without the monotonic clock
	h := New(src, nil).(*handler)
	h.events.every = every
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	return src, &h.events, ts.URL
}

// next returns the next report, and what it was sent as.
func next(t *testing.T, r *bufio.Reader) (report interval.Report, text string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := json.Unmarshal([]byte(data), &report); err != nil {
				t.Fatal(err)
			}
			return report, data
		}
	}
}

func view(t *testing.T, base string) (io.Closer, *bufio.Reader) {
	t.Helper()
	res, err := http.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res.Body, bufio.NewReader(res.Body)
}

// All viewers get the same reports, and without a viewer nothing is sampled.
func TestOneSampler(t *testing.T) {
	t.Parallel()
	src, e, base := watched(t, time.Millisecond)
	if src.asked.Load() != 0 {
		t.Fatal("a sample without a viewer")
	}
	var seen sync.Map // reports by time
	var viewers sync.WaitGroup
	var bodies []io.Closer
	for range 8 {
		body, r := view(t, base)
		bodies = append(bodies, body)
		viewers.Go(func() {
			for range 20 {
				report, text := next(t, r)
				if other, ok := seen.LoadOrStore(report.At.UnixNano(), text); ok && other != text {
					t.Error("two viewers got different reports of one time")
				}
			}
		})
	}
	viewers.Wait()
	n := 0
	seen.Range(func(any, any) bool { n++; return true })
	if asked := int(src.asked.Load()); n > asked {
		t.Errorf("%d reports of %d samples", n, asked)
	}
	for _, b := range bodies {
		b.Close()
	}
	servertest.Eventually(t, "the sampler has ended", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.stop == nil && e.last == nil
	})
	before := src.asked.Load()
	_, r := view(t, base)
	next(t, r)
	if src.asked.Load() == before {
		t.Error("the next viewer got an old report")
	}
}

// The first report is the average since the start, the others are of the intervals.
func TestReports(t *testing.T) {
	t.Parallel()
	src, _, base := watched(t, time.Hour)
	_, r := view(t, base)
	first, _ := next(t, r)
	if first.Seconds != max(first.At.Sub(src.started).Seconds(), 1e-3) {
		t.Errorf("the first is of %v seconds", first.Seconds)
	}
	_, _, base = watched(t, time.Millisecond)
	_, r = view(t, base)
	first, _ = next(t, r)
	second, text := next(t, r)
	if second.Requests*second.Seconds < 99 || second.At.Sub(first.At) <= 0 {
		t.Errorf("the second has %v requests", second.Requests*second.Seconds)
	}
	if len(text) > 5_000 {
		t.Errorf("a long target makes reports of %d bytes", len(text))
	}
}

// A viewer that does not read gets the latest report, not all of them, and delays none.
func TestSlowViewer(t *testing.T) {
	t.Parallel()
	src, e, _ := watched(t, time.Millisecond)
	slow, ok := e.watch()
	if !ok {
		t.Fatal("no viewer")
	}
	servertest.Eventually(t, "ten samples", func() bool { return src.asked.Load() >= 10 })
	e.mu.Lock()
	last := string(e.last)
	got := string(<-slow)
	e.mu.Unlock()
	if got != last {
		t.Errorf("got %.80s, want %.80s", got, last)
	}
	e.leave(slow)
}
