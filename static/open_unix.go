//go:build unix

package static

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"
)

// openFlags keep open from blocking on a pipe or making a terminal the
// controlling one.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY

// localName reports whether a clean name is valid on this system: any bytes but
// NUL. filepath.Localize rejects names that are not UTF-8.
func localName(name string) bool { return strings.IndexByte(name, 0) < 0 }

// isGone reports whether err means that the name does not or cannot exist.
func isGone(err error) bool {
	if errors.Is(err, fs.ErrNotExist) || leadsOut(err) || errors.Is(err, errOdd) {
		return true
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return errors.Is(err, fs.ErrInvalid)
	}
	switch errno {
	case syscall.ENAMETOOLONG, syscall.EINVAL, syscall.ELOOP, syscall.ENOTDIR, syscall.ENXIO:
		return true
	}
	return false
}

// isFull reports whether err means that there are no descriptors left.
func isFull(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// isOut reports whether e means that a link leads out of the folder.
func isOut(e syscall.Errno) bool { return e == syscall.EXDEV }
