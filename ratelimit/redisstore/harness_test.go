package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
)

// slow is a Timeout that only a missing Redis exceeds, also on a busy machine.
const slow = 20 * time.Second

// open makes a Store that is closed at the end. Records fail the test unless o
// has a Logger for them.
func open(t testing.TB, url string, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = slow
	}
	if o.Logger == nil {
		o.Logger = slog.New(says(func(line string) { t.Error(line) }))
	}
	s, err := OpenURL(url, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// says is a slog.Handler that is called with each record as a line.
type says func(line string)

func (says) Enabled(context.Context, slog.Level) bool { return true }
func (f says) WithAttrs([]slog.Attr) slog.Handler     { return f }
func (f says) WithGroup(string) slog.Handler          { return f }
func (f says) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	f(line)
	return nil
}

func limit(t testing.TB, name, rate string, s ratelimit.Store) *ratelimit.Limit {
	t.Helper()
	r, err := ratelimit.ParseRate(rate)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ratelimit.NewLimit(name, r, s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// model is a textbook bucket, in nanoseconds of Redis's clock.
type model struct{ interval, window, level, last int64 }

func newModel(l *ratelimit.Limit) *model {
	w := int64(l.Window())
	return &model{interval: int64(l.Interval()), window: w, level: w}
}

func (m *model) pass(now int64) {
	if m.last != 0 {
		m.level = min(m.window, m.level+now-m.last)
	}
	m.last = now
}

func (m *model) take(cost int64) bool {
	if m.level < cost*m.interval {
		return false
	}
	m.level -= cost * m.interval
	return true
}

// An event is a decision on one token of one bucket.
type event struct {
	at      int64 // Redis's
	allowed bool
}

// replay returns how many of the decisions the model would have admitted,
// moment by moment. Redis decides one after the other; those of one microsecond
// are equal, so that their order makes no difference.
func replay(l *ratelimit.Limit, events []event) error {
	slices.SortFunc(events, func(a, b event) int { return int(a.at - b.at) })
	m := newModel(l)
	for len(events) > 0 {
		at := events[0].at
		m.pass(at)
		want, got, n := 0, 0, 0
		for n = 0; n < len(events) && events[n].at == at; n++ {
			if m.take(1) {
				want++
			}
			if events[n].allowed {
				got++
			}
		}
		if want != got {
			return fmt.Errorf("at %d %d were admitted of %d, want %d", at, got, n, want)
		}
		events = events[n:]
	}
	return nil
}

// load is a number of goroutines that take tokens of one key until they are stopped.
type load struct {
	stop      chan struct{}
	all       sync.WaitGroup
	asked     atomic.Int64
	admitted  atomic.Int64
	failed    atomic.Int64 // decided by the policy
	failedYes atomic.Int64 // and admitted
	longest   atomic.Int64 // nanoseconds
	inRow     atomic.Int64 // decided by Redis, since the last failure
}

func startLoad(l *ratelimit.Limit, askers int) *load {
	ld := &load{stop: make(chan struct{})}
	for range askers {
		ld.all.Go(func() {
			for {
				select {
				case <-ld.stop:
					return
				case <-time.After(time.Millisecond): // requests, not a flood
				}
				ld.ask(l)
			}
		})
	}
	return ld
}

func (ld *load) ask(l *ratelimit.Limit) {
	begin := time.Now()
	d, _ := l.Allow(context.Background(), "k", 1)
	took := int64(time.Since(begin))
	for old := ld.longest.Load(); took > old && !ld.longest.CompareAndSwap(old, took); old = ld.longest.Load() {
	}
	if d.Allowed {
		ld.admitted.Add(1)
	}
	if d.Failed {
		ld.failed.Add(1)
		ld.inRow.Store(0)
		if d.Allowed {
			ld.failedYes.Add(1)
		}
	} else {
		ld.inRow.Add(1)
	}
	ld.asked.Add(1)
}

func (ld *load) end() {
	close(ld.stop)
	ld.all.Wait()
}

// await polls until the condition holds.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: ", what)
		}
	}
}

var _ ratelimit.Store = (*Store)(nil)

func server(t testing.TB, args ...string) *redistest.Server { return redistest.Start(t, args...) }
