//go:build !unix

package static

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
)

const openFlags = 0

// localName reports whether a clean name is valid on this system. Windows has
// reserved names, such as NUL and COM1, and others that mean a stream or a
// drive.
func localName(name string) bool {
	_, err := filepath.Localize(name)
	return err == nil
}

// Win32's numbers for names that no file can have.
const (
	errorInvalidName        = syscall.Errno(123)
	errorBadPathname        = syscall.Errno(161)
	errorFilenameExcedRange = syscall.Errno(206)
)

// isGone reports whether err means that the name does not or cannot exist.
func isGone(err error) bool {
	if errors.Is(err, fs.ErrNotExist) || leadsOut(err) || errors.Is(err, errOdd) {
		return true
	}
	if errors.Is(err, fs.ErrInvalid) {
		return true
	}
	for _, e := range []error{errorInvalidName, errorBadPathname, errorFilenameExcedRange} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func isFull(error) bool { return false }

func isOut(syscall.Errno) bool { return false }
