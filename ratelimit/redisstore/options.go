package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/chert-http/chert/ratelimit"
)

// A Failure is a failure policy: how to decide while Redis is unavailable.
type Failure uint8

const (
	// FailureLocal limits within each process, to its share of the rate.
	FailureLocal Failure = iota
	// FailureOpen admits everything.
	FailureOpen
	// FailureClosed refuses everything.
	FailureClosed
)

var failureNames = [...]string{"local", "open", "closed"}

// ParseFailure parses "local", "open" or "closed".
func ParseFailure(s string) (Failure, error) {
	for i, name := range failureNames {
		if s == name {
			return Failure(i), nil
		}
	}
	return 0, fmt.Errorf("want local, open or closed, not %q", s)
}

// String returns the form that ParseFailure parses.
func (f Failure) String() string { return failureNames[f] }

// Options are the options of a Store. Nil and zero values are the defaults.
type Options struct {
	// Prefix begins the name of every key in Redis. It must be printable ASCII
	// without spaces and braces. Default "chert:rl:".
	Prefix string
	// Timeout limits the time of a whole decision: to wait for a connection, to
	// dial one, and the round trip. Default 100 ms, at least 1 ms; negative: no limit
	// but the client's own, of at least 5 s. A connection that takes longer to dial is
	// made in the background, for up to 5 s.
	Timeout time.Duration
	// Failure is the failure policy. Default FailureLocal.
	Failure Failure
	// Instances is the number of processes that share the limits. With FailureLocal
	// each admits 1/Instances of the rate; what costs more than 1/Instances of the bucket
	// takes all that a process has of it. Default 1: each admits the whole rate while
	// Redis is unavailable. Negative is an error: there are no limits without a
	// process.
	Instances int
	// Memory keeps the buckets for FailureLocal. Default: a new one.
	Memory *ratelimit.Memory
	// Failures is after how many failures in a row Redis is not asked for Pause, then
	// once, and so on until it answers. Default 5; negative: no limit, it is always
	// asked.
	Failures int
	// Pause is how long Redis is not asked after Failures. Default 1 s; negative:
	// none, it is always asked.
	Pause time.Duration
	// Logger receives errors of Redis, at level Error and at most one a second, and
	// that Redis responds again, at level Info. Its handler is called by the goroutine
	// of a decision and should not block. Default slog.Default.
	Logger *slog.Logger
	// Observe receives every decision, for metrics. It is called by the goroutine of
	// the decision, concurrently, and should not block.
	Observe func(Event)
}

// An Event describes a call of Take or Refund.
type Event struct {
	Took    time.Duration
	Claims  int
	Refund  bool
	Allowed bool
	// Time is the time of the decision by the clock of Redis, zero if it did not
	// decide.
	Time time.Time
	// Err is nil if Redis decided, otherwise why the failure policy did: ErrNotAsked, or
	// an error of Redis.
	Err error
	// Policy is the failure policy that decided, if Err is not nil.
	Policy Failure
}

// ErrNotAsked is why the failure policy decided while Redis was not asked: it had failed
// Options.Failures times in a row.
var ErrNotAsked = errors.New("redisstore: Redis is not asked, since it has failed")

func (o *Options) defaults() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	d := *o
	d.Prefix, d.Timeout = cmp.Or(d.Prefix, "chert:rl:"), cmp.Or(d.Timeout, 100*time.Millisecond)
	d.Instances, d.Failures = cmp.Or(d.Instances, 1), cmp.Or(d.Failures, 5)
	if d.Pause < 0 {
		d.Failures = -1
	}
	if d.Pause <= 0 {
		d.Pause = time.Second // also what FailureClosed tells clients to wait
	}
	if d.Memory == nil {
		d.Memory = ratelimit.NewMemory(nil)
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	return d, d.check()
}

func (o *Options) check() error {
	for _, c := range o.Prefix {
		if c <= ' ' || c >= 0x7f || c == '{' || c == '}' {
			return fmt.Errorf("redisstore: Prefix %q: spaces, braces and what is not ASCII cannot be in it", o.Prefix)
		}
	}
	switch {
	case o.Timeout > 0 && o.Timeout < time.Millisecond:
		return fmt.Errorf("redisstore: Timeout %v: want 1 ms at least", o.Timeout)
	case int(o.Failure) >= len(failureNames):
		return fmt.Errorf("redisstore: Failure: there is no policy %d", o.Failure)
	case o.Instances < 1:
		return fmt.Errorf("redisstore: Instances %d: want 1 at least", o.Instances)
	}
	return nil
}
