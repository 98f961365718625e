package middleware

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// InFlightOptions are the options of InFlight.
type InFlightOptions struct {
	// Queue is how many more requests may wait until one ends, in their order.
	Queue int
	// Wait is how long; 0: until their client leaves.
	Wait time.Duration
	// RetryAfter is told to those that are refused, in whole seconds; 0: 1 s.
	RetryAfter time.Duration
}

type inFlight struct {
	slots   chan struct{}
	queue   int64
	waiting atomic.Int64
	wait    time.Duration
	busy    *direct.Response
}

// InFlight runs at most max requests at the same time. Those beyond are answered
// 503 with Retry-After, at once or when they have waited. A request counts until
// its handler returns, so one that streams, or has taken its connection, counts
// as long as that lasts. It panics if max is not positive.
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
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				if !f.try() && !f.enqueue(r) {
					refusal.Plain(w, r, f.busy)
					return
				}
				defer f.release()
				next.ServeHTTP(w, r)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				if f.try() {
					defer f.release()
					return next.ServeDirect(x)
				}
				if f.queue > 0 {
					return false // it may wait there
				}
				refusal.Direct(x, f.busy)
				return true
			})
	}
}

// try takes a slot that is free. One that is not free while others wait goes to
// them: a channel serves in order.
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
func (f *inFlight) enqueue(r *http.Request) bool {
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
	case <-r.Context().Done():
	}
	return false
}
