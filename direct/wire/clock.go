package wire

import "time"

var clockStart = time.Now()

// Clock reads a clock that is never set, in the time since some moment of the
// process. A reading costs some tens of nanoseconds: see Exchange.Now.
func Clock() time.Duration { return time.Since(clockStart) }

// ClockAt is what Clock is at t, which must be of this process and have the
// reading of the monotonic clock that time.Now gives. For servers.
func ClockAt(t time.Time) time.Duration { return t.Sub(clockStart) }

// Now is when the request came, by Clock: the server's Time, which costs
// nothing, or if it has not said, when Now was first called. It stays the same
// until the exchange ends, so that all who ask mean the same moment.
func (x *Exchange) Now() time.Duration {
	if x.req.Time == 0 {
		x.req.Time = Clock()
	}
	return x.req.Time
}
