package middleware

import (
	"cmp"
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
	// PerClient is how many requests of one client there are at the same time: of an
	// IPv4 address, or of a /64 of IPv6. Clients without an address, such as the peers
	// of unix sockets, are one. Default no limit, as a negative value.
	PerClient int
	// Queue is how many more requests may wait until one ends, in their order.
	// Default none; negative: none.
	Queue int
	// QueueTimeout is how long they may wait. Default no limit, until their client leaves;
	// negative: no limit.
	QueueTimeout time.Duration
	// RetryAfter is sent with refusals, in whole seconds. Default 1 s; negative:
	// none, they have no Retry-After.
	RetryAfter time.Duration
}

// InFlight runs at most Max requests at the same time. Others get 503 with
// Retry-After, at once or after they have waited. A request counts until its
// handler returns, so for as long as that streams. The handlers of packages
// eventstream and websocket return when a stream or a connection has begun, which
// then does not count: PerClient bounds those, and eventstream.Options.MaxStreams.
//
// PerClient is independent of Max: requests beyond it get 429 with Retry-After at
// once and do not wait. For it a request counts until its handler has returned and
// its response has been sent, or the client has left. On servers other than chert,
// and after Hijack, that is until the handler returns. Behind proxies it belongs
// inside of RealIP. What is kept is an entry for each client that has a request.
func InFlight(o *InFlightOptions) func(http.Handler) http.Handler {
	opt := options(o)
	var after []string
	if d := cmp.Or(opt.RetryAfter, time.Second); d > 0 {
		after = []string{"Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)}
	}
	total, client := inFlight(opt, after), perClient(opt, after)
	return func(next http.Handler) http.Handler { return client(total(next)) }
}

// inFlight implements Max. after is the Retry-After of refusals.
func inFlight(opt InFlightOptions, after []string) func(http.Handler) http.Handler {
	if opt.Max < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	slots := wrap.NewSlots(cmp.Or(opt.Max, 1024), opt.Queue, opt.QueueTimeout)
	busy := wrap.Refusal(http.StatusServiceUnavailable, after...)
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
