package middleware

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
)

// InFlightOptions are the options of InFlight.
type InFlightOptions struct {
	// Max is how many requests run at the same time. Default 1024; negative: no
	// limit.
	Max int
	// Queue is how many more requests may wait until one ends, in their order.
	// Default none; negative: none.
	Queue int
	// Wait is how long they may wait. Default no limit, until their client leaves;
	// negative: no limit.
	Wait time.Duration
	// RetryAfter is told to those that are refused, in whole seconds. Default 1 s;
	// negative: none, the answer has no Retry-After.
	RetryAfter time.Duration
}

type inFlight struct {
	slots   chan struct{}
	queue   int64
	waiting atomic.Int64
	wait    time.Duration
	busy    *direct.Response
}

// InFlight runs at most Max requests at the same time. Those beyond are answered
// 503 with Retry-After, at once or when they have waited. A request counts until
// its handler returns, so one that streams, or has taken its connection, counts
// as long as that lasts.
func InFlight(o *InFlightOptions) func(http.Handler) http.Handler {
	opt := options(o)
	if opt.Max < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	f := &inFlight{slots: make(chan struct{}, or(opt.Max, 1024)), queue: int64(opt.Queue), wait: opt.Wait}
	if after := or(opt.RetryAfter, time.Second); after > 0 {
		seconds := int64((after + time.Second - 1) / time.Second)
		f.busy = statusText(http.StatusServiceUnavailable, "Retry-After", strconv.FormatInt(seconds, 10))
	} else {
		f.busy = statusText(http.StatusServiceUnavailable)
	}
	return filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
		switch {
		case f.try():
		case f.queue <= 0:
			return c.Refuse(f.busy)
		case c.Direct():
			return filter.Later // it may wait there
		case !f.enqueue(c.Context()):
			return c.Refuse(f.busy)
		}
		defer f.release()
		return next.Serve(c)
	})
}

// try takes a free slot. While requests wait, no slot is free: the channel
// passes each on in order.
func (f *inFlight) try() bool {
	select {
	case f.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (f *inFlight) release() { <-f.slots }

// enqueue waits for a slot.
func (f *inFlight) enqueue(ctx context.Context) bool {
	if f.waiting.Add(1) > f.queue {
		f.waiting.Add(-1)
		return false
	}
	defer f.waiting.Add(-1)
	var late <-chan time.Time
	if f.wait > 0 {
		t := time.NewTimer(f.wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case f.slots <- struct{}{}:
		return true
	case <-late:
	case <-ctx.Done():
	}
	return false
}
