package redisstore

import (
	"fmt"
	"log"
	"time"

	"github.com/chert-http/chert/ratelimit"
	"github.com/sony/gobreaker/v2"
)

// A Failure is what is decided while Redis is not there.
type Failure uint8

const (
	// Local keeps the limits in this process meanwhile, each with its share of
	// the rate.
	Local Failure = iota
	// Open admits everything.
	Open
	// Closed refuses everything.
	Closed
)

var failureNames = [...]string{"local", "open", "closed"}

// ParseFailure reads "local", "open" or "closed".
func ParseFailure(s string) (Failure, error) {
	for i, name := range failureNames {
		if s == name {
			return Failure(i), nil
		}
	}
	return 0, fmt.Errorf("want local, open or closed, not %q", s)
}

// String is the form that ParseFailure reads.
func (f Failure) String() string { return failureNames[f] }

// Options are the options of a Store; nil or zero is the default.
type Options struct {
	// Prefix is what all keys begin with. Default "chert:rl:". Braces cannot be
	// in it.
	Prefix string
	// Timeout is how long a decision may take in all: waiting for a connection,
	// making one, and the round trip. Default 100 ms. What runs when it is over
	// costs the time that the scheduler needs to see it, on top. A connection
	// that takes longer to be made is made in the background, for up to 5 s.
	Timeout time.Duration
	// Failure is the policy for failures. Default Local.
	Failure Failure
	// Instances is how many processes share the limits, for Local: each has one
	// part of so many. Default 1, and then each admits the whole rate while
	// Redis is away.
	Instances int
	// Memory has the buckets for Local. Default: one of the Store's own.
	Memory *ratelimit.Memory
	// After Failures failures in a row Redis is not asked for Pause, then once,
	// and so on until it answers. Defaults: 5, and 1 s.
	Failures int
	Pause    time.Duration
	// Report is told what is wrong, in one line, at most once a second, and
	// once when Redis answers again. It is called by the goroutine of a
	// decision and should not wait. Default: log.Print.
	Report func(line string)
	// Observe is told of every decision, for metrics; see Report.
	Observe func(Event)
}

// An Event is a call of Take or Refund.
type Event struct {
	Took    time.Duration
	Claims  int
	Refund  bool
	Allowed bool
	// Time is Redis's when it decided; zero if it did not.
	Time time.Time
	// Err is why the policy for failures has decided, nil if it has not. It is
	// gobreaker's ErrOpenState or ErrTooManyRequests if Redis was not asked.
	Err error
	// Policy is what has decided if Err is not nil.
	Policy Failure
	// Breaker is how Redis is asked after this: StateClosed, always; StateOpen,
	// not for now; StateHalfOpen, by the next one.
	Breaker gobreaker.State
}

func (o *Options) defaults() (Options, error) {
	if o == nil {
		o = &Options{}
	}
	d := *o
	if d.Prefix == "" {
		d.Prefix = "chert:rl:"
	}
	if d.Timeout == 0 {
		d.Timeout = 100 * time.Millisecond
	}
	if d.Instances == 0 {
		d.Instances = 1
	}
	if d.Failures == 0 {
		d.Failures = 5
	}
	if d.Pause == 0 {
		d.Pause = time.Second
	}
	if d.Memory == nil {
		d.Memory = ratelimit.NewMemory(nil)
	}
	if d.Report == nil {
		d.Report = func(line string) { log.Print(line) }
	}
	return d, d.check()
}

func (o *Options) check() error {
	for _, c := range o.Prefix {
		if c <= ' ' || c >= 0x7f || c == '{' || c == '}' {
			return fmt.Errorf("redisstore: Prefix %q: spaces, braces and what is not ASCII cannot be in it", o.Prefix)
		}
	}
	switch {
	case o.Timeout < time.Millisecond:
		return fmt.Errorf("redisstore: Timeout %v: want 1 ms at least", o.Timeout)
	case int(o.Failure) >= len(failureNames):
		return fmt.Errorf("redisstore: there is no policy %d for failures", o.Failure)
	case o.Instances < 1:
		return fmt.Errorf("redisstore: Instances %d: want 1 at least", o.Instances)
	case o.Failures < 1 || o.Pause < 0:
		return fmt.Errorf("redisstore: Failures %d and Pause %v: want more", o.Failures, o.Pause)
	}
	return nil
}
