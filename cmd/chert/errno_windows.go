package main

import (
	"errors"
	"syscall"
)

// Winsock's numbers. The constants of the same meaning in package syscall are inventions that no call returns.
const (
	wsaeAddrInUse    = syscall.Errno(10048)
	wsaeAddrNotAvail = syscall.Errno(10049)
	wsaeConnRefused  = syscall.Errno(10061)
)

// Win32's numbers for names that no file can have.
const (
	errorInvalidName        = syscall.Errno(123)
	errorBadPathname        = syscall.Errno(161)
	errorFilenameExcedRange = syscall.Errno(206)
)

func isAddrInUse(err error) bool { return errors.Is(err, wsaeAddrInUse) }

func isAddrUnknown(err error) bool { return errors.Is(err, wsaeAddrNotAvail) }

func isRefused(err error) bool { return errors.Is(err, wsaeConnRefused) }

// isNeverThere reports whether a file of that name cannot exist in the folder. Every refusal of the operating system
// has a number; an error without one is os.Root's own, for a link that leads out.
func isNeverThere(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return true
	}
	switch errno {
	case errorInvalidName, errorBadPathname, errorFilenameExcedRange:
		return true
	}
	return false
}
