package main

import (
	"errors"
	"io/fs"
	"os/exec"
	"syscall"
)

// The numbers of Winsock. The constants of the same meaning in package syscall are invented; no call returns them.
const (
	wsaeAddrInUse    = syscall.Errno(10048)
	wsaeAddrNotAvail = syscall.Errno(10049)
	wsaeConnRefused  = syscall.Errno(10061)
)

// The numbers of Win32 for names that no file can have.
const (
	errorInvalidName        = syscall.Errno(123)
	errorBadPathname        = syscall.Errno(161)
	errorFilenameExcedRange = syscall.Errno(206)
)

func isAddrInUse(err error) bool { return errors.Is(err, wsaeAddrInUse) }

func isAddrUnknown(err error) bool { return errors.Is(err, wsaeAddrNotAvail) }

func isRefused(err error) bool { return errors.Is(err, wsaeConnRefused) }

// isBadName reports whether err means that no file can have such a name. An error without a number is not the
// system's: the name was refused before the system call.
func isBadName(err error) bool {
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

// groupOf returns -1: files have no group here.
func groupOf(fs.FileInfo) int { return -1 }

// identityOf returns nothing: no socket is inherited here.
func identityOf(fs.FileInfo) string { return "" }

func detach(*exec.Cmd) {}

func systemBrowser() []string { return []string{"rundll32", "url.dll,FileProtocolHandler"} }
