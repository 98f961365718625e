package main

import (
	"bytes"
	"syscall"

	"github.com/chert-http/chert/lab/stages/socket"
)

// worker is one thread with its connections.
type worker struct {
	inbox
	epoll, listener int
	files           map[string]file
	conns           map[int]*conn
}

// conn is a connection between two events. Its buffer is read into directly: a request is never copied.
type conn struct {
	fd      int
	buf     []byte
	n       int    // bytes of buf
	head    []byte // what is left to be sent of the response's head
	file    int    // what is sent after it; -1: nothing
	offset  int64
	left    int
	corked  bool
	closing bool // after this response
}

func newWorker(listener int, files map[string]file) (*worker, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	w := &worker{epoll: epoll, listener: listener, files: files, conns: map[int]*conn{}}
	w.event = -1
	if listener >= 0 {
		if err := syscall.SetNonblock(listener, true); err != nil {
			return nil, err
		}
		return w, w.watch(listener, syscall.EPOLLIN)
	}
	event, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, errno
	}
	w.event = int(event)
	return w, w.watch(w.event, syscall.EPOLLIN)
}

func (w *worker) watch(fd int, events uint32) error {
	return syscall.EpollCtl(w.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

func (w *worker) run() error {
	var events [256]syscall.EpollEvent
	for {
		n, err := syscall.EpollWait(w.epoll, events[:], -1)
		if err != nil && err != syscall.EINTR {
			return err
		}
		for _, e := range events[:max(0, n)] {
			fd := int(e.Fd)
			switch c := w.conns[fd]; {
			case fd == w.listener:
				err = w.accept()
			case fd == w.event:
				err = w.collect()
			case c == nil: // closed by an event before this one
			case !w.turn(c):
				delete(w.conns, fd)
				syscall.Close(fd)
			}
			if err != nil && err != syscall.EINTR {
				return err
			}
		}
	}
}

func (w *worker) accept() error {
	for {
		fd, _, err := syscall.Accept4(w.listener, syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
		switch err {
		case nil:
		case syscall.EAGAIN:
			return nil
		case syscall.EINTR, syscall.ECONNABORTED:
			continue
		default:
			return err
		}
		if err := w.add(fd); err != nil {
			return err
		}
	}
}

// collect takes what the accepting thread has left.
func (w *worker) collect() error {
	var count [8]byte
	if _, err := syscall.Read(w.event, count[:]); err != nil && err != syscall.EAGAIN {
		return err
	}
	w.mu.Lock()
	fds := w.inbox.conns
	w.inbox.conns = nil
	w.mu.Unlock()
	for _, fd := range fds {
		if err := w.add(fd); err != nil {
			return err
		}
	}
	return nil
}

// edgeTriggered is EPOLLET, which package syscall has as a negative number.
const edgeTriggered = 1 << 31

// add watches for both directions at once, edge-triggered: no call is ever needed to change it.
func (w *worker) add(fd int) error {
	// Or Nagle's algorithm would hold back a small file until the head before it is acknowledged.
	if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1); err != nil {
		return err
	}
	w.conns[fd] = &conn{fd: fd, buf: make([]byte, socket.MaxHead), file: -1}
	return w.watch(fd, syscall.EPOLLIN|syscall.EPOLLOUT|syscall.EPOLLRDHUP|edgeTriggered)
}

// turn goes on until the socket has nothing to read, or no room: an edge is reported once.
func (w *worker) turn(c *conn) bool {
	for {
		sent, ok := w.send(c)
		if !ok || sent && c.closing {
			return false
		}
		if !sent {
			return true
		}
		size, closes := socket.Request(c.buf[:c.n])
		if size > 0 {
			c.closing = closes
			w.respond(c, c.buf[:size])
			c.n = copy(c.buf, c.buf[size:c.n])
			continue
		}
		if c.n == len(c.buf) {
			return false
		}
		n, err := syscall.Read(c.fd, c.buf[c.n:])
		if err == syscall.EAGAIN {
			return true
		}
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return false
		}
		c.n += n
	}
}

// respond prepares the response to a request.
func (w *worker) respond(c *conn, request []byte) {
	f := notFound
	if rest, ok := bytes.CutPrefix(request, []byte("GET ")); ok {
		if end := bytes.IndexByte(rest, ' '); end >= 0 {
			if found, ok := w.files[string(rest[:end])]; ok {
				f = found
			}
		}
	}
	c.head, c.file, c.offset, c.left = f.head, f.fd, 0, f.size
	if c.closing {
		c.head = append(append([]byte(nil), f.head[:bytes.Index(f.head, []byte("\r\n"))+2]...), "Connection: close\r\n"...)
		c.head = append(c.head, f.head[bytes.Index(f.head, []byte("\r\n"))+2:]...)
	}
	if f.fd < 0 {
		return
	}
	if *dup {
		fd, err := syscall.Dup(f.fd)
		if err == nil {
			c.file = fd
		}
	}
	if *cork == "always" || *cork == "large" && f.size > 16<<10 {
		c.corked = syscall.SetsockoptInt(c.fd, syscall.IPPROTO_TCP, syscall.TCP_CORK, 1) == nil
	}
}

// send sends what it can of a response, and reports whether nothing is left, and whether the connection still works.
func (w *worker) send(c *conn) (all, ok bool) {
	for len(c.head) > 0 {
		n, err := syscall.Write(c.fd, c.head)
		if err != nil {
			return false, err == syscall.EAGAIN || err == syscall.EINTR
		}
		c.head = c.head[n:]
	}
	for c.left > 0 {
		n, err := syscall.Sendfile(c.fd, c.file, &c.offset, c.left)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return false, err == syscall.EAGAIN
		}
		c.left -= n
	}
	if c.corked {
		c.corked = false
		if err := syscall.SetsockoptInt(c.fd, syscall.IPPROTO_TCP, syscall.TCP_CORK, 0); err != nil {
			return false, false
		}
	}
	if *dup && c.file >= 0 {
		syscall.Close(c.file)
	}
	c.file = -1
	return true, true
}
