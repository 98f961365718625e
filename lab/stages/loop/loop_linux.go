// Package loop is the event loop of the third stage, of which the fourth has several.
package loop

import (
	"syscall"

	"github.com/chert-http/chert/lab/stages/socket"
)

// Loop serves all the connections it has accepted, in one thread. It never sleeps but in epoll_wait.
type Loop struct {
	epoll, listener int
	conns           map[int]*conn
	buf             [16 << 10]byte // what was read last; a connection keeps only what is left over
}

// conn is what a loop must remember between two turns of a connection: what a thread had on its stack.
type conn struct {
	in      []byte // the beginning of a request whose end has not come
	out     []byte // answers that the socket had no room for
	full    bool   // epoll is to report room in the socket, and nothing else
	closing bool   // when out is sent
}

// New makes a loop for a listening socket.
func New(listener int) (*Loop, error) {
	if err := syscall.SetNonblock(listener, true); err != nil {
		return nil, err
	}
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &Loop{epoll: epoll, listener: listener, conns: map[int]*conn{}}
	return l, l.watch(syscall.EPOLL_CTL_ADD, listener, syscall.EPOLLIN)
}

func (l *Loop) watch(how, fd int, events uint32) error {
	return syscall.EpollCtl(l.epoll, how, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// Run serves until something fails that is no client's fault.
func (l *Loop) Run() error {
	var events [256]syscall.EpollEvent
	for {
		// The only place to sleep: until any of thousands of connections has something.
		n, err := syscall.EpollWait(l.epoll, events[:], -1)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			fd := int(e.Fd)
			if fd == l.listener {
				if err := l.accept(); err != nil {
					return err
				}
				continue
			}
			if c := l.conns[fd]; !l.turn(fd, c, e.Events) {
				delete(l.conns, fd)
				syscall.Close(fd) // which also ends the watching
			}
		}
	}
}

// accept takes all connections that are there.
func (l *Loop) accept() error {
	for {
		fd, _, err := syscall.Accept4(l.listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
		switch err {
		case nil:
		case syscall.EAGAIN:
			return nil
		case syscall.EINTR, syscall.ECONNABORTED:
			continue
		default:
			return err
		}
		l.conns[fd] = &conn{}
		if err := l.watch(syscall.EPOLL_CTL_ADD, fd, syscall.EPOLLIN); err != nil {
			return err
		}
	}
}

// turn does for a connection what can be done without waiting, and reports whether it stays open.
func (l *Loop) turn(fd int, c *conn, events uint32) bool {
	if events&syscall.EPOLLOUT != 0 {
		return l.flush(fd, c)
	}
	n, err := syscall.Read(fd, l.buf[:])
	if err == syscall.EAGAIN || err == syscall.EINTR {
		return true // it will be reported again
	}
	if err != nil || n == 0 {
		return false
	}
	in := l.buf[:n]
	if len(c.in) > 0 {
		in = append(c.in, in...)
	}
	for !c.closing { // a client may have sent several requests at once
		size, closes := socket.Request(in)
		if size == 0 {
			break
		}
		in = in[size:]
		answer := socket.Kept
		if closes {
			c.closing, answer = true, socket.Closing
		}
		c.out = append(c.out, answer...)
	}
	if len(in) >= socket.MaxHead {
		c.closing, c.out = true, append(c.out, socket.Refused...)
	}
	c.in = append(c.in[:0], in...)
	return l.flush(fd, c)
}

// flush sends what it can. What the socket has no room for waits until epoll says that there is room again, and no more
// requests are read until then: a client that reads no answers must not fill our memory with them.
func (l *Loop) flush(fd int, c *conn) bool {
	if len(c.out) == 0 {
		return true
	}
	n, err := syscall.Write(fd, c.out)
	if err != nil && err != syscall.EAGAIN && err != syscall.EINTR {
		return false
	}
	c.out = append(c.out[:0], c.out[max(0, n):]...)
	full := len(c.out) > 0
	if !full && c.closing {
		return false
	}
	if cap(c.out) > socket.MaxHead {
		c.out = append([]byte(nil), c.out...)
	}
	if full == c.full {
		return true // the usual way: no third system call
	}
	c.full = full
	if full {
		return l.watch(syscall.EPOLL_CTL_MOD, fd, syscall.EPOLLOUT) == nil
	}
	return l.watch(syscall.EPOLL_CTL_MOD, fd, syscall.EPOLLIN) == nil
}
