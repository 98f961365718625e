package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// exact is cpu to the nanosecond.
func (all servers) exact() (d time.Duration) {
	for _, s := range all {
		var t unix.Timespec
		// The clock of a process, of clock_getcpuclockid(3).
		if unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &t) == nil {
			d += time.Duration(t.Nano())
		}
	}
	return d
}
