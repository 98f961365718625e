package middleware

import (
	"net/http"
	"strconv"
	"time"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
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
	// RetryAfter is sent with refusals, in whole seconds. Default 1 s; negative:
	// none, they have no Retry-After.
	RetryAfter time.Duration
}

// InFlight runs at most Max requests at the same time. Others get 503 with
// Retry-After, at once or after they have waited. A request counts until its
// handler returns, so one that streams, or has taken over its connection, counts
// as long as that lasts.
func InFlight(o *InFlightOptions) func(http.Handler) http.Handler {
	opt := options(o)
	if opt.Max < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	slots := wrap.NewSlots(or(opt.Max, 1024), opt.Queue, opt.Wait)
	busy := wrap.Refusal(http.StatusServiceUnavailable)
	if after := or(opt.RetryAfter, time.Second); after > 0 {
		seconds := int64((after + time.Second - 1) / time.Second)
		busy = wrap.Refusal(http.StatusServiceUnavailable, "Retry-After", strconv.FormatInt(seconds, 10))
	}
	return filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
		switch {
		case slots.Try():
		case c.Direct() && slots.Queues():
			return filter.OnPlain // it may wait there
		case c.Direct() || !slots.Enter(c.Context()):
			return c.Refuse(busy)
		}
		defer slots.Leave()
		return next.Serve(c)
	})
}
