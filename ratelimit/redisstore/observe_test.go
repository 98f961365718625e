package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/ratelimit"
	"github.com/redis/go-redis/v9"
)

// Observe receives the result of each call, what has decided, and whether Redis was asked.
func TestObserve(t *testing.T) {
	t.Parallel()
	srv := server(t)
	var mu sync.Mutex
	var events []Event
	s := open(t, srv.URL(), Options{
		Failure: FailureClosed, Failures: 2, Pause: time.Hour, Logger: slog.New(slog.DiscardHandler),
		Observe: func(e Event) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, e)
		},
	})
	l := limit(t, "l", "1/h burst 2", s)
	claims := []ratelimit.Claim{{Limit: l, Key: []byte("k"), Cost: 1}, {Limit: l, Key: []byte("k2"), Cost: 1}}
	begin := time.Now()
	s.Take(t.Context(), claims)
	s.Refund(t.Context(), claims)
	l.Allow(t.Context(), "k", 2)
	l.Allow(t.Context(), "k", 1)
	srv.Kill()
	for range 3 {
		l.Allow(t.Context(), "k", 1)
	}
	took := time.Since(begin)
	const no, yes = false, true
	sum := time.Duration(0)
	for i, want := range []struct {
		claims          int
		refund, allowed bool
		failed, asked   bool
	}{
		{2, no, yes, no, yes},
		{2, yes, yes, no, yes},
		{1, no, yes, no, yes},
		{1, no, no, no, yes},
		{1, no, no, yes, yes},
		{1, no, no, yes, yes},
		{1, no, no, yes, no},
	} {
		if i >= len(events) {
			t.Fatalf("%d events", len(events))
		}
		e := events[i]
		asked := !errors.Is(e.Err, ErrNotAsked)
		if e.Claims != want.claims || e.Refund != want.refund || e.Allowed != want.allowed || (e.Err != nil) != want.failed ||
			asked != want.asked || e.Policy != FailureClosed {
			t.Errorf("event %d: %+v, want %+v", i, e, want)
		}
		if (e.Time.IsZero()) != (want.failed || want.refund) || e.Took <= 0 {
			t.Errorf("event %d: at %v, took %v", i, e.Time, e.Took)
		}
		sum += e.Took
	}
	if len(events) != 7 || sum > took {
		t.Errorf("%d events that took %v of %v", len(events), sum, took)
	}
}

// deadlines is a hook of the client that records the deadlines of commands.
type deadlines struct {
	mu  sync.Mutex
	all []time.Time // of scripts
}

func (d *deadlines) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (d *deadlines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *deadlines) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "evalsha" || name == "eval" {
			end, _ := ctx.Deadline()
			d.mu.Lock()
			d.all = append(d.all, end)
			d.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// All scripts of a decision end within its Timeout, however many they are, and
// whatever deadline the caller has.
func TestDeadline(t *testing.T) {
	t.Parallel()
	srv := server(t)
	s := open(t, srv.URL(), Options{})
	s.split = true // as in a cluster: a script for each key
	var d deadlines
	s.client.AddHook(&d)
	l := limit(t, "l", "1/h", s)
	for _, own := range []time.Duration{time.Millisecond, 24 * time.Hour} {
		ctx, cancel := context.WithTimeout(t.Context(), own)
		defer cancel()
		d.all = nil
		claims := []ratelimit.Claim{{Limit: l, Key: []byte(own.String()), Cost: 1}, {Limit: l, Key: []byte("k2"), Cost: 0}, {Limit: l, Key: []byte(own.String()), Cost: 1}}
		begin := time.Now()
		err := s.Take(ctx, claims)
		end := time.Now()
		if err != nil || allowed(claims) {
			t.Errorf("%+v, %v", claims, err)
		}
		slices.SortFunc(d.all, time.Time.Compare)
		if n := len(d.all); n < 4 || d.all[0].Before(begin.Add(slow)) || d.all[n-1].After(end.Add(slow)) || !d.all[0].Equal(d.all[n-1]) {
			t.Errorf("%d scripts end %v; the decision began %v and ended %v", n, d.all, begin, end)
		}
	}
}
