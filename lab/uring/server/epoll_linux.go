package main

import (
	"runtime"
	"syscall"
	"unsafe"
)

type epollLoop struct {
	epoll, listener, tick int
	conns                 map[int]*conn
	buf                   [16 << 10]byte
}

func onEpoll(listener int) error {
	runtime.LockOSThread()
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	l := &epollLoop{epoll: epoll, listener: listener, tick: -1, conns: map[int]*conn{}}
	if err := syscall.SetNonblock(listener, true); err != nil {
		return err
	}
	if err := l.watch(listener, syscall.EPOLLIN); err != nil {
		return err
	}
	if *held {
		if l.tick, err = ticker(); err != nil {
			return err
		}
		if err := l.watch(l.tick, syscall.EPOLLIN); err != nil {
			return err
		}
	}
	var events [256]syscall.EpollEvent
	for {
		n, err := l.wait(events[:])
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			if err := l.event(int(e.Fd), e.Events); err != nil {
				return err
			}
		}
	}
}

func (l *epollLoop) watch(fd int, events uint32) error {
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// wait waits as the scheduler wants it, or keeps the processor.
func (l *epollLoop) wait(events []syscall.EpollEvent) (int, error) {
	call := syscall.Syscall6
	if *held {
		call = syscall.RawSyscall6
	}
	forever := -1
	n, _, errno := call(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(forever), 0, 0)
	if errno == syscall.EINTR {
		return 0, nil
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (l *epollLoop) event(fd int, events uint32) error {
	switch c := l.conns[fd]; {
	case fd == l.listener:
		return l.accept()
	case fd == l.tick:
		ticked(fd)
	case c != nil && !l.turn(c, events):
		delete(l.conns, fd)
		rawClose(fd)
	}
	return nil
}

func (l *epollLoop) accept() error {
	for {
		fd, _, errno := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(l.listener), 0, 0, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0, 0)
		switch errno {
		case 0:
		case syscall.EAGAIN:
			return nil
		case syscall.EINTR, syscall.ECONNABORTED:
			continue
		default:
			return errno
		}
		l.conns[int(fd)] = &conn{fd: int(fd)}
		if err := l.watch(int(fd), syscall.EPOLLIN); err != nil {
			return err
		}
	}
}

// turn reads and writes once. The calls cannot block, so the scheduler need not know of them.
func (l *epollLoop) turn(c *conn, events uint32) bool {
	if events&syscall.EPOLLOUT == 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&l.buf)), uintptr(len(l.buf)))
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			return true
		}
		if errno != 0 || n == 0 {
			return false
		}
		c.take(l.buf[:n])
		if len(c.out) == 0 {
			return true
		}
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&c.out[0])), uintptr(len(c.out)))
	if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
		return false
	}
	full := events&syscall.EPOLLOUT != 0
	if errno == 0 && int(n) == len(c.out) {
		c.out = c.out[:0]
		if full {
			return !c.closing && l.change(c.fd, syscall.EPOLLIN)
		}
		return !c.closing
	}
	if errno == 0 {
		c.out = append(c.out[:0], c.out[n:]...)
	}
	return full || l.change(c.fd, syscall.EPOLLOUT)
}

func (l *epollLoop) change(fd int, events uint32) bool {
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_MOD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)}) == nil
}

func rawClose(fd int) { syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }
