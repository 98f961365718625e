package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Rate is how fast a bucket is refilled, and how many tokens it holds. It is at
// most 10,000,000 tokens per second, and an empty bucket is full after at most 90
// days.
type Rate struct {
	Count int64         // tokens that come back
	Per   time.Duration // in this time, evenly
	Burst int64         // tokens that the bucket holds; 0: Count
}

// Limits of a Rate. Times up to maxWindow, and 1 % more, are exact in a float64, which
// Redis's scripts calculate with.
const (
	minInterval = 100 * time.Nanosecond // between two tokens
	maxWindow   = 90 * 24 * time.Hour   // to fill an empty bucket
)

// units are the units of time that ParseRate knows. A day is 24 hours.
var units = map[string]time.Duration{
	"ms": time.Millisecond,
	"s":  time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

const rateForm = `want a rate such as "100/s", "30/m" or "1000/h burst 50"`

// ParseRate parses a rate such as "100/s" or "1000/h burst 50". The unit of time is
// ms, s, m, h, d, a word such as "minute", or a duration as in "5/10s".
func ParseRate(s string) (Rate, error) {
	fail := func(format string, args ...any) (Rate, error) {
		return Rate{}, fmt.Errorf("rate %q: %s", s, fmt.Sprintf(format, args...))
	}
	f := strings.Fields(s)
	if len(f) != 1 && (len(f) != 3 || f[1] != "burst") {
		return fail("%s", rateForm)
	}
	count, per, ok := strings.Cut(f[0], "/")
	if !ok {
		return fail("%s", rateForm)
	}
	r := Rate{}
	var err error
	if r.Count, err = parseCount(count); err != nil {
		return fail("%q is not %v", count, err)
	}
	if r.Per, ok = units[per]; !ok {
		if r.Per, err = time.ParseDuration(per); err != nil || r.Per <= 0 {
			return fail(`there is no unit %q; want s, m, h or d, or a time as in "5/10s"`, per)
		}
	}
	if r.Burst = r.Count; len(f) == 3 {
		if r.Burst, err = parseCount(f[2]); err != nil {
			return fail("burst %q is not %v", f[2], err)
		}
	}
	if err := r.check(); err != nil {
		return fail("%v", err)
	}
	return r, nil
}

var errCount = errors.New("a whole number from 1 on")

func parseCount(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || s[0] == '+' {
		return 0, errCount
	}
	return n, nil
}

func (r Rate) check() error {
	switch {
	case r.Count < 1 || r.Burst < 0 || r.Per <= 0:
		return errors.New("count and time must be more than 0, and burst not less")
	case int64(r.Per)/r.Count < int64(minInterval):
		return errors.New("more than 10,000,000 a second")
	case r.burst() > int64(maxWindow)/(int64(r.Per)/r.Count): // without what interval rounds, 1 % at most
		return errors.New("an empty bucket would take more than 90 days to fill")
	}
	return nil
}

func (r Rate) burst() int64 {
	if r.Burst == 0 {
		return r.Count
	}
	return r.Burst
}

// interval is the time between two tokens in nanoseconds, rounded up: the rate is
// never exceeded, and at a million per second missed by at most 1 in 1000.
func (r Rate) interval() int64 { return (int64(r.Per)-1)/r.Count + 1 }

// String returns the rate in the form that ParseRate parses.
func (r Rate) String() string {
	per := r.Per.String()
	for _, unit := range []string{"d", "h", "m", "s", "ms"} {
		if units[unit] == r.Per {
			per = unit
		}
	}
	s := strconv.FormatInt(r.Count, 10) + "/" + per
	if r.burst() != r.Count {
		s += " burst " + strconv.FormatInt(r.Burst, 10)
	}
	return s
}

// Share returns 1/n of r, for n instances that limit without a shared store. The
// bucket holds at least one token, and at least one comes back in 90 days.
func (r Rate) Share(n int) Rate {
	if n <= 1 {
		return r
	}
	per := int64(r.Per)
	if per > math.MaxInt64/int64(n) {
		per = math.MaxInt64 / int64(n)
	}
	share := Rate{Count: r.Count, Per: time.Duration(per * int64(n)), Burst: max(1, r.burst()/int64(n))}
	// Lengthening the time keeps the rate exact. Only for a bucket of one token it may get too long.
	if share.check() != nil {
		return Rate{Count: 1, Per: maxWindow, Burst: 1}
	}
	return share
}
