package redisstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/redisconn"
	"github.com/chert-http/chert/ratelimit"
)

// fail decides by the failure policy, and reports why.
func (s *Store) fail(claims []ratelimit.Claim, err error) {
	s.report(err)
	if s.o.Failure == FailureLocal {
		stand := s.standIns(claims)
		s.o.Memory.Take(context.Background(), stand)
		for i := range claims {
			claims[i].Decision, claims[i].At = stand[i].Decision, stand[i].At
			claims[i].Decision.Failed = true
		}
		return
	}
	for i := range claims {
		c := &claims[i]
		c.Decision = ratelimit.Decision{Allowed: true, Failed: true, Limit: c.Limit.Rate().Burst,
			Remaining: c.Limit.Rate().Burst}
		if s.o.Failure == FailureClosed {
			c.Decision.Allowed, c.Decision.Remaining, c.Decision.RetryAfter = false, 0, s.o.Pause
		}
	}
}

// standIns returns the claims for the memory of this process. It makes limits each time:
// Memory forgets those that nothing uses any more, and a Store that kept them could not.
func (s *Store) standIns(claims []ratelimit.Claim) []ratelimit.Claim {
	stand := slices.Clone(claims)
	for i := range stand {
		c := &stand[i]
		share, err := ratelimit.NewLimit(c.Limit.Name(), c.Limit.Rate().Share(s.o.Instances), s.o.Memory)
		if err != nil {
			continue // cannot happen: NewLimit accepts what Share returns
		}
		// What costs more than the share holds takes all of it: there would never be enough.
		if c.Cost <= c.Limit.Rate().Burst {
			c.Cost = min(c.Cost, share.Rate().Burst)
		}
		c.Limit = share
	}
	return stand
}

var start = time.Now()

// report reports err, at most once a second. While Redis is not asked it
// repeats the previous error.
func (s *Store) report(err error) {
	r := &s.reports
	if !errors.Is(err, ErrNotAsked) {
		why := s.explain(err)
		r.why.Store(&why)
	}
	why := r.why.Load()
	if why == nil || !r.turn() {
		return
	}
	r.down.Store(true)
	s.o.Logger.Error([...]string{
		FailureLocal:  "rate limits: Redis fails, each process limits by itself",
		FailureOpen:   "rate limits: Redis fails, everything is admitted",
		FailureClosed: "rate limits: Redis fails, everything is refused",
	}[s.o.Failure], "error", *why)
}

// turn reports whether it is time for a line.
func (r *reports) turn() bool {
	now := max(1, int64(time.Since(start)))
	last := r.last.Load()
	return (last == 0 || now-last >= int64(time.Second)) && r.last.CompareAndSwap(last, now)
}

// answered reports that Redis responds again, if an error was reported before.
func (s *Store) answered() {
	if s.reports.down.Load() && s.reports.turn() && s.reports.down.CompareAndSwap(true, false) {
		s.o.Logger.Info("rate limits: Redis responds again", "redis", s.where)
	}
}

// explain puts an error into one line for operators. It wraps err.
func (s *Store) explain(err error) error { return redisconn.Explain(err, s.where, s.o.Timeout) }
