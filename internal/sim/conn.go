//go:build linux

package sim

import (
	"cmp"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// A Conn is a connection as package net has them: what it cannot do at once waits, until
// the World lets it go on. Its methods are safe for concurrent use.
type Conn struct {
	k  *Kernel
	fd int
	s  *Socket

	// Guarded by the kernel's lock. The deadlines are of sys.Nanotime; 0 means none.
	closed          bool
	readBy, writeBy int64
}

// A call is one of a Conn that waits.
type call struct {
	c     *Conn
	write bool
	free  chan struct{} // capacity 1
}

// Conn implements poll.Ops.
func (p *Poller) Conn(fd int) (net.Conn, error) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	s := p.k.socket(fd, "dup")
	nfd, e := p.k.add(s)
	if e != 0 {
		return nil, os.NewSyscallError("fcntl", e)
	}
	s.refs++
	return &Conn{k: p.k, fd: nfd, s: s}, nil
}

// by is the call's deadline.
func (l *call) by() int64 {
	if l.write {
		return l.c.writeBy
	}
	return l.c.readBy
}

// due reports whether the call has something to do. The kernel's lock is held.
func (l *call) due(now int64) bool {
	s := l.c.s
	if by := l.by(); l.c.closed || by != 0 && now >= by || s.err != 0 {
		return true
	}
	if l.write {
		return s.out.len() < s.room || s.outEnd || s.clientGone
	}
	return s.arrived > 0 || s.finSeen || s.shut
}

// wait waits until the call is due. The kernel's lock is held, and released meanwhile.
func (c *Conn) wait(write bool) {
	l := &call{c, write, make(chan struct{}, 1)}
	// In the order of descriptors, not in that of the Go scheduler.
	i, _ := slices.BinarySearchFunc(c.k.calls, l, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.c.fd, b.c.fd), cmp.Compare(btoi(a.write), btoi(b.write)))
	})
	c.k.calls = slices.Insert(c.k.calls, i, l)
	c.k.mu.Unlock()
	<-l.free
	c.k.mu.Lock()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// again calls f until it does not return EAGAIN, or cannot be called any more.
func (c *Conn) again(op string, write bool, f func() (int, sys.Errno)) (n int, err error) {
	c.k.enter()
	defer c.k.mu.Unlock()
	for {
		by := c.readBy
		if write {
			by = c.writeBy
		}
		var e sys.Errno
		switch {
		case c.closed:
			err = net.ErrClosed
		case by != 0 && sys.Nanotime() >= by:
			err = os.ErrDeadlineExceeded
		default:
			if n, e = f(); e == syscall.EAGAIN {
				c.wait(write)
				continue
			} else if e != 0 {
				err = os.NewSyscallError(op, e)
			}
		}
		if err != nil {
			return 0, &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
		}
		return n, nil
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.again("read", false, func() (int, sys.Errno) { return c.s.read(p) })
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (n int, err error) {
	for len(p) > 0 && err == nil {
		var m int
		m, err = c.again("write", true, func() (int, sys.Errno) { return c.s.write(p, nil) })
		n += m
		p = p[m:]
	}
	return n, err
}

var errClosed = &net.OpError{Op: "use", Net: "tcp", Err: net.ErrClosed}

// do calls f with the kernel's lock held, unless c is closed.
func (c *Conn) do(f func()) error {
	c.k.enter()
	defer c.k.mu.Unlock()
	if c.closed {
		return errClosed
	}
	f()
	return nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	return c.do(func() {
		c.closed = true
		c.k.close(c.fd)
	})
}

// CloseWrite is that of net.TCPConn.
func (c *Conn) CloseWrite() error {
	return c.do(func() { c.s.outEnd = true })
}

// SetLinger is that of net.TCPConn.
func (c *Conn) SetLinger(sec int) error {
	return c.do(func() { c.s.linger0 = sec == 0 })
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr {
	ap, err := netip.ParseAddrPort(c.s.peer)
	if err != nil {
		panic(errors.New("sim: a client's address is " + c.s.peer))
	}
	return net.TCPAddrFromAddrPort(ap)
}

func deadline(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	now := sys.Nanotime()
	return max(now+min(int64(time.Until(t)), math.MaxInt64-now), 1)
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return c.do(func() { c.readBy, c.writeBy = deadline(t), deadline(t) })
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return c.do(func() { c.readBy = deadline(t) })
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.do(func() { c.writeBy = deadline(t) })
}
