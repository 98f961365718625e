package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Kevent is struct kevent.
type Kevent = unix.Kevent_t

// The filters and flags of a Kevent that chert uses.
const (
	EVFILT_READ  = unix.EVFILT_READ
	EVFILT_WRITE = unix.EVFILT_WRITE
	EV_EOF       = unix.EV_EOF
	EV_ERROR     = unix.EV_ERROR
)

// Kqueue makes a non-blocking, close-on-exec kernel queue.
func Kqueue() (int, error) {
	fd, err := unix.Kqueue()
	if err != nil {
		return -1, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(fd)
	unix.SetNonblock(fd, true)
	return fd, nil
}

// KqueueAdd watches fd for reading and writing, edge-triggered.
func KqueueAdd(kq, fd int) error {
	var ev [2]Kevent
	unix.SetKevent(&ev[0], fd, unix.EVFILT_READ, unix.EV_ADD|unix.EV_CLEAR)
	unix.SetKevent(&ev[1], fd, unix.EVFILT_WRITE, unix.EV_ADD|unix.EV_CLEAR)
	_, err := unix.Kevent(kq, ev[:], nil, nil)
	return os.NewSyscallError("kevent", err)
}

// KqueueDel stops watching fd.
func KqueueDel(kq, fd int) {
	var ev [2]Kevent
	unix.SetKevent(&ev[0], fd, unix.EVFILT_READ, unix.EV_DELETE)
	unix.SetKevent(&ev[1], fd, unix.EVFILT_WRITE, unix.EV_DELETE)
	unix.Kevent(kq, ev[:], nil, nil)
}

// KqueuePoll fetches what is ready without waiting.
func KqueuePoll(kq int, events []Kevent) (int, Errno) {
	var zero unix.Timespec
	for {
		n, err := unix.Kevent(kq, nil, events, &zero)
		if err == nil {
			return n, 0
		}
		if err != unix.EINTR {
			return 0, errnoOf(err)
		}
	}
}

// Pipe makes a non-blocking pipe whose reading end wakes a poller.
func Pipe() (r, w int, err error) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return -1, -1, os.NewSyscallError("pipe", err)
	}
	for _, fd := range p {
		unix.CloseOnExec(fd)
		unix.SetNonblock(fd, true)
	}
	return p[0], p[1], nil
}
