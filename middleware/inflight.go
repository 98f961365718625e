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
	// Queue is how many more requests may wait, in order of arrival, until one
	// ends.
	Queue int
	// Wait is how long they wait; 0: until their client leaves.
	Wait time.Duration
	// RetryAfter is sent with refusals, in whole seconds; 0: 1 s.
	RetryAfter time.Duration
}

type inFlight struct {
	slots   chan struct{}
	queue   int64
	waiting atomic.Int64
	wait    time.Duration
	busy    *direct.Response
}

// InFlight runs at most max requests at the same time. Others get 503 with
// Retry-After, at once or after they have waited. A request counts until its
// handler returns, so one that streams or has taken over its connection counts
// as long as that lasts. InFlight panics if max is not positive.
func InFlight(max int, o *InFlightOptions) func(http.Handler) http.Handler {
	if max <= 0 {
		panic("middleware: InFlight: max is not positive")
	}
	opt := options(o)
	seconds := int64((or(opt.RetryAfter, time.Second) + time.Second - 1) / time.Second)
	f := &inFlight{
		slots: make(chan struct{}, max), queue: int64(opt.Queue), wait: opt.Wait,
		busy: statusText(http.StatusServiceUnavailable, "Retry-After", strconv.FormatInt(seconds, 10)),
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
