//go:build linux || darwin

package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FileLimits are the limits of open descriptors that this process has; 0 where a limit is
// unknown.
type FileLimits struct {
	// Soft and Hard are RLIMIT_NOFILE. The process may raise the first to the second.
	Soft, Hard int
	// NROpen bounds what RLIMIT_NOFILE may be set to, FileMax the descriptors of all processes
	// together. Linux only.
	NROpen, FileMax int
}

// Limits returns the limits of now.
func Limits() FileLimits {
	l := FileLimits{NROpen: sysctl("fs/nr_open"), FileMax: sysctl("fs/file-max")}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		l.Soft, l.Hard = int(min(r.Cur, noLimit)), int(min(r.Max, noLimit))
	}
	return l
}

// RaiseFiles raises the soft limit of open descriptors to the hard one. The Go runtime has
// already tried to, on most systems.
func RaiseFiles() error {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || r.Cur == r.Max {
		return err
	}
	r.Cur = r.Max
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &r)
}

const noLimit = 1 << 30

// MaxFiles returns how many descriptors this process may have.
func MaxFiles() int { return Limits().Files() }

// Files returns how many descriptors the process may have.
func (l FileLimits) Files() int {
	n := noLimit
	for _, limit := range []int{l.Soft, l.FileMax} {
		if limit > 0 {
			n = min(n, limit)
		}
	}
	return n
}

// String names the limit that applies, and the one that bounds it, if there is one.
func (l FileLimits) String() string {
	switch n := l.Files(); {
	case n == noLimit:
		return "no limit of open files"
	case n == l.FileMax:
		return fmt.Sprintf("fs.file-max of %d", n)
	case l.Soft < l.Hard:
		return fmt.Sprintf("RLIMIT_NOFILE of %d, the soft limit; the hard one is %d", n, l.Hard)
	case n == l.NROpen:
		return fmt.Sprintf("RLIMIT_NOFILE of %d, which fs.nr_open bounds", n)
	}
	return fmt.Sprintf("RLIMIT_NOFILE of %d", l.Soft)
}
