package conn

import "time"

// LongAgo is a deadline that ends a Read or a Write immediately.
var LongAgo = time.Unix(1, 0)

// After is the deadline in d nanoseconds; none if d is not positive.
func After(d int64) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(d))
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
