//go:build unix

package main

import (
	"errors"
	"syscall"
)

func isAddrInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

func isAddrUnknown(err error) bool { return errors.Is(err, syscall.EADDRNOTAVAIL) }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// isNeverThere reports whether a file of that name cannot exist in the folder. Every refusal of the operating system
// has a number; an error without one is os.Root's own, for a link that leads out.
func isNeverThere(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return true
	}
	switch errno {
	case syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ELOOP, syscall.ENOTDIR:
		return true
	}
	return false
}
