package wire

import "time"

var clockStart = time.Now()

// Clock returns the time since a fixed moment of the process, by the monotonic
// clock. A reading costs some tens of nanoseconds: see Exchange.Now.
func Clock() time.Duration { return time.Since(clockStart) }

// ClockAt returns what Clock returned at t, a time.Now of this process with its
// monotonic reading. For servers.
func ClockAt(t time.Time) time.Duration { return t.Sub(clockStart) }

// Now returns when the request arrived, by Clock: the server's Time, which
// costs nothing, or, if the server has set none, the time of the first call of
// Now. It stays the same until the exchange ends, so all callers agree on one
// moment.
func (x *Exchange) Now() time.Duration {
	if x.req.Time == 0 {
		x.req.Time = Clock()
	}
	return x.req.Time
}
