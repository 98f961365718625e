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

// Sooner returns the earlier of two deadlines; zero means never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
