package sys

import (
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// HaveSplice reports whether a Relay works on this system.
const HaveSplice = true

type pipe struct{ r, w int }

// NoPipe is Take's error when it finds no pipe.
const NoPipe Errno = unix.EMFILE

func newPipe() (pipe, bool) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return pipe{}, false
	}
	// If the kernel refuses, a smaller pipe only costs more calls.
	unix.FcntlInt(uintptr(p[0]), unix.F_SETPIPE_SZ, pipeSize)
	return pipe{p[0], p[1]}, true
}

func (p pipe) close() {
	Close(p.r)
	Close(p.w)
}

func (p pipe) take(src, n int) (int, Errno) {
	n, e := splice(src, p.w, n)
	if e == 0 {
		received(src)
	}
	return n, e
}

func (p pipe) give(dst, n int) (int, Errno) {
	sends()
	n, e := splice(p.r, dst, n)
	if e == 0 && n == 0 {
		return 0, unix.EIO // the pipe is not empty: never observed, and must not loop forever
	}
	spliced.Add(int64(n))
	return n, e
}

// splice goes through the scheduler: it may move a quarter of a megabyte, and
// the source is a socket of the handler, which may have made it blocking.
func splice(from, to, n int) (int, Errno) {
	for {
		r, _, e := syscall.Syscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n),
			unix.SPLICE_F_NONBLOCK|unix.SPLICE_F_MOVE)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

var spliced atomic.Int64

// Spliced returns how many bytes have moved from pipes to sockets, for tests.
func Spliced() int64 { return spliced.Load() }

// CannotSplice reports whether a Take that failed with e did so because the
// kernel does not splice from such a socket, so that the caller must read
// instead.
func CannotSplice(e Errno) bool { return CannotSendfile(e) }
