package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// late is how long an echo may take. Waiting connections are looked after every tick.
const (
	late = 5 * time.Second
	tick = 100 * time.Millisecond
)

// drive keeps one burst under way on each connection until the time is over, and waits for the last ones.
func (s Sockets) drive(ctx context.Context, socks []socket) (SocketsResult, error) {
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return SocketsResult{}, os.NewSyscallError("epoll_create1", err)
	}
	defer syscall.Close(poll)
	conns := make([]net.Conn, len(socks))
	for i := range socks {
		conns[i] = socks[i].conn
	}
	fds, err := unpolled(conns)
	defer closeAll(fds)
	if err != nil {
		return SocketsResult{}, err
	}
	for i, fd := range fds {
		socks[i].fd = fd
		event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)}
		if err := syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
			return SocketsResult{}, os.NewSyscallError("epoll_ctl", err)
		}
	}
	l := echoes{poll: poll, socks: socks, took: make([]time.Duration, 0, 1<<20)}
	begin := time.Now()
	l.end = begin.Add(time.Duration(s.Seconds * float64(time.Second)))
	for i := range socks {
		l.send(i, begin)
	}
	err = l.loop(ctx)
	return s.summary(l.took, time.Since(begin), l.failed), err
}

// echoes is the state of a drive.
type echoes struct {
	poll   int
	socks  []socket
	end    time.Time
	busy   int // connections with a burst under way
	took   []time.Duration
	failed []error
}

func (l *echoes) loop(ctx context.Context) error {
	events := make([]syscall.EpollEvent, len(l.socks))
	checked := time.Now()
	for l.busy > 0 {
		n, err := syscall.EpollWait(l.poll, events, int(tick/time.Millisecond))
		if err != nil && err != syscall.EINTR {
			return os.NewSyscallError("epoll_wait", err)
		}
		now := time.Now()
		if now.Sub(checked) > tick {
			if checked = now; ctx.Err() != nil {
				return ctx.Err()
			}
			l.giveUp(now)
		}
		for _, event := range events[:max(0, n)] {
			if l.socks[event.Fd].fd >= 0 { // else given up in this very round
				l.receive(int(event.Fd))
			}
		}
	}
	return nil
}

// giveUp fails the connections whose echo is late.
func (l *echoes) giveUp(now time.Time) {
	for i := range l.socks {
		if k := &l.socks[i]; k.fd >= 0 && now.Sub(k.sent) > late {
			l.fail(i, fmt.Errorf("no echo in %v", late))
		}
	}
}

// receive reads once. A server that writes every message by itself needs as many reads as it made writes.
func (l *echoes) receive(i int) {
	k := &l.socks[i]
	n, err := transfer(syscall.SYS_READ, k.fd, k.in[k.have:])
	switch {
	case err == syscall.EAGAIN:
		return
	case err == nil && n == 0:
		l.fail(i, io.ErrUnexpectedEOF)
		return
	case err != nil:
		l.fail(i, os.NewSyscallError("read", err))
		return
	}
	complete, err := k.came(n)
	if err != nil {
		l.fail(i, err)
		return
	}
	if !complete {
		return
	}
	now := time.Now()
	l.took = append(l.took, now.Sub(k.sent))
	l.busy--
	if now.Before(l.end) {
		l.send(i, now)
	} else {
		l.leave(i)
	}
}

// send writes a burst, which a socket's buffer has room for as nothing else is under way.
func (l *echoes) send(i int, now time.Time) {
	k := &l.socks[i]
	l.busy++
	k.sent = now
	n, err := transfer(syscall.SYS_WRITE, k.fd, k.out)
	if err == nil && n < len(k.out) {
		err = errors.New("the burst does not fit into the socket's buffer")
	}
	if err != nil {
		l.fail(i, fmt.Errorf("write: %w", err))
	}
}

func (l *echoes) fail(i int, err error) {
	l.busy--
	l.failed = append(l.failed, err)
	l.leave(i)
}

func (l *echoes) leave(i int) {
	syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_DEL, l.socks[i].fd, nil)
	l.socks[i].fd = -1
}

// transfer is a system call that does not block, and which the runtime therefore need not hear of.
func transfer(call uintptr, fd int, p []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
