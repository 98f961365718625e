package redisstore

import (
	"fmt"
	"log"
	"time"

	"github.com/chert-http/chert/ratelimit"
	"github.com/sony/gobreaker/v2"
)

// A Failure is a failure policy: how to decide while Redis is unavailable.
type Failure uint8

const (
	// Local limits within each process, to its share of the rate.
	Local Failure = iota
	// Open admits everything.
	Open
	// Closed refuses everything.
	Closed
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
	// dial one, and the round trip. Default 100 ms, at least 1 ms. A connection
	// that takes longer to dial is made in the background, for up to 5 s.
	Timeout time.Duration
	// Failure is the failure policy. Default Local.
	Failure Failure
	// Instances is the number of processes that share the limits. With Local each
	// admits 1/Instances of the rate. Default 1: each admits the whole rate while
	// Redis is unavailable.
	Instances int
	// Memory keeps the buckets for Local. Default: a new one.
	Memory *ratelimit.Memory
	// After Failures failures in a row Redis is not asked for Pause, then once,
	// and so on until it responds. Defaults: 5, and 1 s.
	Failures int
	Pause    time.Duration
	// Report receives errors of Redis, as one line and at most once a second,
	// and a line when Redis responds again. It is called on the goroutine of a
	// decision, concurrently, and should not block. Default: log.Print.
	Report func(line string)
	// Observe receives every decision, for metrics. It is called like Report.
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
	// Err is nil if Redis decided, otherwise why the failure policy did. It is
	// gobreaker's ErrOpenState or ErrTooManyRequests if Redis was not asked.
	Err error
	// Policy is the failure policy that decided, if Err is not nil.
	Policy Failure
	// Breaker is the state of the circuit breaker after the call: with StateClosed
	// Redis is asked, with StateOpen it is not, with StateHalfOpen by one request.
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
