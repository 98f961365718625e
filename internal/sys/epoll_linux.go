package sys

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EpollEvent is struct epoll_event; its 64 bits of user data are read with Key.
type EpollEvent unix.EpollEvent

// The bits of EpollEvent.Events that chert uses.
const (
	EPOLLIN      = unix.EPOLLIN
	EPOLLOUT     = unix.EPOLLOUT
	EPOLLRDHUP   = unix.EPOLLRDHUP
	EPOLLHUP     = unix.EPOLLHUP
	EPOLLERR     = unix.EPOLLERR
	EPOLLET      = unix.EPOLLET
	EPOLLONESHOT = unix.EPOLLONESHOT
)

// EpollCreate makes a non-blocking, close-on-exec epoll instance.
func EpollCreate() (int, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("epoll_create1", err)
	}
	// Non-blocking tells os.NewFile that the runtime's poller may watch it.
	if err := unix.SetNonblock(fd, true); err != nil {
		Close(fd)
		return -1, os.NewSyscallError("fcntl", err)
	}
	return fd, nil
}

// EpollAdd watches fd for the given events until it is closed or removed.
func EpollAdd(ep, fd int, events uint32, data uint64) error {
	return epollCtl(ep, unix.EPOLL_CTL_ADD, fd, events, data)
}

// EpollMod changes what EpollAdd was told.
func EpollMod(ep, fd int, events uint32, data uint64) error {
	return epollCtl(ep, unix.EPOLL_CTL_MOD, fd, events, data)
}

func epollCtl(ep int, op uintptr, fd int, events uint32, data uint64) error {
	ev := EpollEvent{Events: events, Fd: int32(data), Pad: int32(data >> 32)}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), op, uintptr(fd),
		uintptr(unsafe.Pointer(&ev)), 0, 0)
	if e != 0 {
		return os.NewSyscallError("epoll_ctl", e)
	}
	return nil
}

// EpollDel stops watching fd.
func EpollDel(ep, fd int) {
	var ev EpollEvent
	syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(ep), unix.EPOLL_CTL_DEL, uintptr(fd), uintptr(unsafe.Pointer(&ev)),
		0, 0)
}

// EpollPoll fetches what is ready without waiting.
func EpollPoll(ep int, events []EpollEvent) (int, Errno) {
	for {
		r, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&events[0])),
			uintptr(len(events)), 0, 0, 0)
		if e == 0 {
			return int(r), 0
		}
		if e != unix.EINTR {
			return 0, e
		}
	}
}

// EpollWait fetches what is ready, and waits up to ms milliseconds, with -1
// forever. It goes through the scheduler, which takes the processor from a long
// wait. It may return 0 events early.
func EpollWait(ep int, events []EpollEvent, ms int) (int, Errno) {
	r, _, e := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(ms), 0, 0)
	switch e {
	case 0:
		return int(r), 0
	case unix.EINTR:
		return 0, 0
	}
	return 0, e
}

// EpollWaitKeeping is EpollWait without the scheduler: the processor is kept, and
// the caller must not ask for more than a millisecond or so. The runtime ends the
// wait early, by a signal, to stop the world, and its monitor does after 10 ms.
func EpollWaitKeeping(ep int, events []EpollEvent, ms int) (int, Errno) {
	r, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(ep), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(ms), 0, 0)
	switch e {
	case 0:
		return int(r), 0
	case unix.EINTR:
		return 0, 0
	}
	return 0, e
}

// Key returns the number passed to EpollAdd.
func (ev *EpollEvent) Key() uint64 {
	return uint64(uint32(ev.Fd)) | uint64(uint32(ev.Pad))<<32
}

// Eventfd makes a counter that wakes a poller.
func Eventfd() (int, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	return fd, os.NewSyscallError("eventfd", err)
}

// EventfdSignal makes fd readable.
func EventfdSignal(fd int) {
	one := uint64(1)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), 8)
}
