package conn

import (
	"math"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// LongAgo is a deadline that ends a Read or a Write immediately.
var LongAgo = time.Unix(1, 0)

// After is the deadline in d nanoseconds; none if d is not positive.
func After(d int64) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(d))
}

// Nanotime returns what sys.Nanotime will be at t, at least 1; 0 if t is zero, which is never.
func Nanotime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	now := sys.Nanotime()
	return max(now+min(int64(time.Until(t)), math.MaxInt64-now), 1)
}

// TimeAt returns the time at which sys.Nanotime is ns; zero, which is never, if ns is 0.
func TimeAt(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ns - sys.Nanotime()))
}

// Earlier returns the earlier of two deadlines of sys.Nanotime; 0 means never, and so does a sum that has
// overflown.
func Earlier(a, b int64) int64 {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Sooner is Earlier for times.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
