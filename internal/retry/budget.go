package retry

import (
	"sync/atomic"

	"github.com/chert-http/chert/internal/window"
)

const (
	// part is one retry for so many requests: 20 %.
	part = 5
	// always is how many retries a second are allowed to an upstream with few requests.
	always = 3
)

// A Budget bounds the retries of all requests to one upstream: to 20 % of the requests of the last 10 s, plus 30, that
// is 3 a second. Beyond it the failure stands. The zero Budget is ready, and safe for concurrent use; it must not be
// copied after first use.
//
// Each request costs one atomic addition, on a line of memory that all loops share.
type Budget struct {
	requests, retries window.Counter
	refused           atomic.Uint64
}

// Request counts a request, once for all its tries.
func (b *Budget) Request(now int64) { b.requests.Add(now, 1) }

// Withdraw takes a retry from the budget and reports whether there was one. With several callers at the same time fewer
// may be granted than there are, never more.
func (b *Budget) Withdraw(now int64) bool {
	// Added before it is summed: of two callers, the later sum includes both.
	if b.retries.Add(now, 1) {
		if b.retries.Sum(now) <= b.limit(now) {
			return true
		}
		b.retries.Take(now, 1)
	}
	b.refused.Add(1)
	return false
}

func (b *Budget) limit(now int64) uint64 { return b.requests.Sum(now)/part + always*window.Seconds }

// A Balance is the state of a Budget, for the admin page.
type Balance struct {
	Requests, Retries, Limit uint64 // of the last 10 s
	Refused                  uint64 // since the start
}

// Balance returns the state of b.
func (b *Budget) Balance(now int64) Balance {
	n := b.requests.Sum(now)
	return Balance{n, b.retries.Sum(now), n/part + always*window.Seconds, b.refused.Load()}
}
