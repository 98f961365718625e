package config

import (
	"time"

	"github.com/chert-http/chert/ratelimit"
)

// RateLimit limits the request rate of each client. The zero value is no limit.
type RateLimit struct {
	Rates     []ratelimit.Rate // all of them must admit
	Store     string           // URL of a shared store; "": the memory of the process
	Failure   string           // the failure policy, as in Checks.RateFailure; "": the default
	Timeout   time.Duration    // for the store; 0: the default
	Instances int              // the number that share the store; 0: 1
}

// rateLimit reads the table of that name. shared: [cluster] has a store for it.
func (l *loader) rateLimit(t *table, shared bool) (r RateLimit) {
	all, ok := t.list("limit")
	for _, it := range all {
		rate, err := ratelimit.ParseRate(it.text)
		if err != nil {
			l.errorf(it.at, "limit: %v", err)
			continue
		}
		r.Rates = append(r.Rates, rate)
	}
	// Sites may have limits, and need a store only.
	if t.m["limit"] == nil && t.m["store"] == nil && !shared ||
		ok && len(all) == 0 && len(t.m["limit"].([]any)) == 0 {
		l.noLimit(t.spot.key)
	}
	if s, at, ok := t.str("store"); ok {
		r.Store = s
		if err := l.checks.RateStore(s); err != nil {
			l.errorf(at, "store: %v", err)
		}
	}
	if s, at, ok := t.str("failure"); ok {
		r.Failure = s
		if err := l.checks.RateFailure(s); err != nil {
			l.errorf(at, "failure: %v", err)
		}
	}
	if d, ok := t.duration("timeout"); ok {
		if r.Timeout = d; d < LeastRateTimeout {
			l.errorf(t.spot.child("timeout").value, "timeout wants %v at least", LeastRateTimeout)
		}
	}
	if n, at, ok := t.number("instances"); ok {
		if r.Instances = int(n); n < 1 || n > MaxInstances {
			l.errorf(at, "instances wants a number from 1 to %d", MaxInstances)
		}
	}
	for _, key := range []string{"failure", "timeout", "instances"} {
		if t.m[key] != nil && t.m["store"] == nil && !shared {
			l.errorf(t.spot.child(key).key, "%s is for a store, and there is none", key)
		}
	}
	t.done()
	return r
}

func (l *loader) noLimit(at Position) {
	l.errorf(at, `[rate_limit] has no limit; want limit = "100/s"`)
}

// Bounds of RateLimit.
const (
	LeastRateTimeout = time.Millisecond
	MaxInstances     = 1 << 20
)
