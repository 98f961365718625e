package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/chert-http/chert/ratelimit"
	"github.com/sony/gobreaker/v2"
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

// standIns returns the claims for the memory of this process.
func (s *Store) standIns(claims []ratelimit.Claim) []ratelimit.Claim {
	stand := make([]ratelimit.Claim, len(claims))
	for i, c := range claims {
		l, ok := s.shares.Load(c.Limit)
		if !ok {
			share, err := ratelimit.NewLimit(c.Limit.Name(), c.Limit.Rate().Share(s.o.Instances), s.o.Memory)
			if err != nil {
				share = c.Limit // cannot happen: NewLimit accepts what Share returns
			}
			l, _ = s.shares.LoadOrStore(c.Limit, share)
		}
		c.Limit = l.(*ratelimit.Limit)
		stand[i] = c
	}
	return stand
}

var start = time.Now()

// report reports err, at most once a second. While Redis is not asked it
// repeats the previous error.
func (s *Store) report(err error) {
	r := &s.reports
	if !errors.Is(err, gobreaker.ErrOpenState) && !errors.Is(err, gobreaker.ErrTooManyRequests) {
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
func (s *Store) explain(err error) error {
	text, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	say := func(what string) error { return &problem{"redis at " + s.where + " " + what, err} }
	var op *net.OpError
	switch {
	case has("WRONGPASS", "invalid password", "invalid username"):
		return say("refuses the user or password")
	case has("NOAUTH"):
		return say("requires a password")
	case has("AUTH <password> called without any password"):
		return say("has no password, but one was given")
	case has("NOPERM"):
		return say("does not let this user do that: " + text)
	case has("READONLY"):
		return say("is a read-only replica; want its primary")
	case has("MOVED ", "CROSSSLOT"):
		return say("is a node of a cluster; want redis+cluster://")
	case has("CLUSTERDOWN"):
		return say("is a cluster that is not complete")
	case has("cluster support disabled"):
		return say("is not a cluster; want redis://")
	case has("not allowed after non deterministic"):
		return say("is too old; want Redis 5 or later")
	case has("LOADING "):
		return say("is reading its data and does not respond yet")
	case has("MISCONF", "OOM "):
		return say("cannot write: " + text)
	case errors.As(err, &op) && op.Op == "dial" && !op.Timeout():
		return say("cannot be reached: " + op.Err.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		if s.o.Timeout < 0 {
			return say("does not respond in time")
		}
		return say(fmt.Sprintf("does not respond within %v", s.o.Timeout))
	}
	return say("failed: " + text)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || strings.Contains(err.Error(), "pool timeout")
}

// problem is a line for operators and the error that it explains.
type problem struct {
	line string
	err  error
}

func (p *problem) Error() string { return p.line }
func (p *problem) Unwrap() error { return p.err }
