package load

import "syscall"

// RaiseFiles raises the limit of open files to what the system allows this process, and returns it. Children inherit
// it.
func RaiseFiles() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	return int(min(l.Max, 1<<30)), nil // no limit is a number too large for an int
}
