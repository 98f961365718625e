package load

import "syscall"

// RaiseFiles raises the limit of open files to what the system allows this process, and returns it. Children inherit
// it. want is how many are needed: with the right to, as root has, the hard limit is raised as far.
func RaiseFiles(want int) (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if need := uint64(want); l.Max < need {
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: need, Max: need}) == nil {
			return want, nil
		}
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	return int(min(l.Max, 1<<30)), nil // no limit is a number too large for an int
}
