package conn

import (
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// This file is Conn as a Transport: what a running handler may do with it.

var _ Transport = (*Conn)(nil)

// Buffered implements Transport.
func (c *Conn) Buffered() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.B
}

// Discard implements Transport.
func (c *Conn) Discard(n int) {
	if c.in == nil {
		return
	}
	if c.in.B = c.in.B[n:]; len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
}

// Unread implements Transport.
func (c *Conn) Unread(b []byte) {
	if n := int(c.whole); n > 0 {
		c.whole = 0
		c.Discard(n - len(b))
		return
	}
	if len(b) == 0 {
		return
	}
	in := buf.Get(len(b) + len(c.Buffered()))
	in.B = append(append(in.B, b...), c.Buffered()...)
	c.Discard(len(c.Buffered()))
	c.in = in
}

// Fill implements Transport.
func (c *Conn) Fill() error {
	if c.in == nil {
		c.in = buf.Get(readSize)
	}
	c.in = c.in.Grow(readSize)
	have := len(c.in.B)
	n, err := c.readSocket(c.in.B[have:cap(c.in.B)])
	c.in.B = c.in.B[:have+n]
	if len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
	return err
}

// Read implements Transport.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.in != nil {
		n := copy(p, c.in.B)
		c.Discard(n)
		return n, nil
	}
	return c.readSocket(p)
}

func (c *Conn) readSocket(p []byte) (int, error) {
	for {
		// Cleared before the try: an event that comes after it sets it again.
		s := c.state.And(^readable)
		if s&shut != 0 {
			return 0, c.failed("read", net.ErrClosed)
		}
		if c.act.read.over() {
			c.state.Or(s & readable)
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		}
		if s&readable != 0 {
			n, e := c.loop.Poller().Read(int(c.fd), p)
			switch {
			case e == 0 && n == 0:
				c.state.Or(readable) // the end stays to be seen by next
				return 0, io.EOF
			case e == 0:
				c.noteRead(n, len(p))
				return n, nil
			case !sys.Again(e):
				c.state.Or(readable)
				return 0, c.opError("read", e)
			}
		}
		if err := c.sleep(&c.act.read, waitRead, readable, c.shared.Limits.ReadStall); err != nil {
			return 0, c.failed("read", err)
		}
	}
}

// write2 writes a and then b whole, behind all that was held.
func (c *Conn) write2(a, b []byte) error {
	for len(a)+len(b) > 0 {
		if c.state.Load()&shut != 0 {
			return c.failed("write", net.ErrClosed)
		}
		if c.act.write.over() {
			return c.failed("write", os.ErrDeadlineExceeded)
		}
		n, e := c.loop.Poller().Write2(int(c.fd), a, b)
		if e != 0 && !sys.Again(e) {
			return c.opError("write", e)
		}
		if n >= len(a) {
			a, b = b[n-len(a):], nil
		} else {
			a = a[n:]
		}
		if len(a)+len(b) == 0 {
			return nil
		}
		if err := c.awaitWritable(e); err != nil {
			return err
		}
	}
	return nil
}

// awaitWritable waits after a write that took less than it was given. e is
// that write's error.
func (c *Conn) awaitWritable(e sys.Errno) error {
	if !sys.Again(e) {
		return nil // a partial write; the next will say EAGAIN if it must
	}
	// The bit may stand from long ago, when nobody waited for it. After this
	// it is set only by an event that is newer than the EAGAIN, or by one just
	// before, which costs one more EAGAIN.
	if c.state.And(^writable)&writable != 0 {
		return nil
	}
	for {
		before := sys.Queued(int(c.fd))
		err := c.sleep(&c.act.write, waitWrite, writable, c.shared.Limits.WriteStall)
		if err == nil {
			return nil
		}
		// A socket becomes writable when a third of its buffer is free, which
		// may be megabytes. A client that has taken less than that, but
		// something, has not stalled.
		if !c.act.write.over() && sys.Queued(int(c.fd)) < before {
			continue
		}
		return c.failed("write", err)
	}
}

// SendFile implements Transport.
func (c *Conn) SendFile(f File, offset, n int64) (sent int64, ok bool, err error) {
	if !sys.HaveSendfile {
		return 0, false, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false, nil
	}
	if err := c.flushHeld(); err != nil {
		return 0, true, err
	}
	for sent < n {
		if c.act.write.over() {
			return sent, true, c.failed("write", os.ErrDeadlineExceeded)
		}
		var m int
		var e sys.Errno
		ctl := raw.Control(func(fd uintptr) {
			m, e = sys.Sendfile(int(c.fd), int(fd), offset, int(min(n-sent, sendfileMax)))
		})
		switch {
		case ctl != nil:
			return sent, sent > 0, ctl
		case e == 0 && m == 0:
			return sent, true, nil // the file's end
		case e == 0:
			sent += int64(m)
			if offset >= 0 {
				offset += int64(m)
			}
			continue
		case !sys.Again(e):
			if sent == 0 && sys.CannotSendfile(e) {
				return 0, false, nil
			}
			return sent, true, c.opError("sendfile", e)
		}
		if err := c.awaitWritable(e); err != nil {
			return sent, true, err
		}
		if c.state.Load()&shut != 0 {
			return sent, true, c.failed("write", net.ErrClosed)
		}
	}
	return sent, true, nil
}

// sendfileMax bounds one sendfile call, so that a deadline or a shutdown is
// seen while a large file goes to a quick reader.
const sendfileMax = 4 << 20

// CanRelay implements Transport.
func (c *Conn) CanRelay() bool { return sys.HaveSplice }

// SendRelay implements Transport.
func (c *Conn) SendRelay(r *Relay) (sent int, err error) {
	if err := c.flushHeld(); err != nil {
		return 0, err
	}
	for r.Held() > 0 {
		if c.state.Load()&shut != 0 {
			return sent, c.failed("write", net.ErrClosed)
		}
		if c.act.write.over() {
			return sent, c.failed("write", os.ErrDeadlineExceeded)
		}
		n, e := r.Give(int(c.fd))
		sent += n
		if e != 0 && !sys.Again(e) {
			return sent, c.opError("splice", e)
		}
		if err := c.awaitWritable(e); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// sleep waits until an event sets ready, the side's deadline passes, or stall
// nanoseconds go by.
func (c *Conn) sleep(s *side, wait, ready uint32, stall int64) error {
	if s.ch == nil {
		s.ch = make(chan struct{}, 1)
	}
	for {
		old := c.state.Load()
		if old&(ready|shut) != 0 {
			return nil
		}
		if c.state.CompareAndSwap(old, old|wait) {
			break
		}
	}
	c.letGo()
	// Behind the wait bit: a deadline that was set before it is seen here, one
	// that is set after it finds the bit and ends this sleep.
	until := int64(0)
	if stall > 0 {
		until = sys.Nanotime() + stall
	}
	if dl := s.deadline.Load(); dl != 0 && (until == 0 || dl < until) {
		until = dl
	}
	if until == 0 {
		<-s.ch
		return nil
	}
	d := time.Duration(until - sys.Nanotime())
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-s.ch:
		return nil
	case <-t.C:
	}
	if !c.claim(wait) {
		<-s.ch // somebody cleared the bit first and is about to send
		return nil
	}
	// The deadline may have been moved while this slept; then the wake-up
	// was sent by SetDeadline. Here it is really over.
	return os.ErrDeadlineExceeded
}

// SetReadDeadline implements Transport.
func (c *Conn) SetReadDeadline(t time.Time) { c.setDeadline(&c.act.read, waitRead, t) }

// SetWriteDeadline implements Transport.
func (c *Conn) SetWriteDeadline(t time.Time) { c.setDeadline(&c.act.write, waitWrite, t) }

func (c *Conn) setDeadline(s *side, wait uint32, t time.Time) {
	var when int64
	if !t.IsZero() {
		// At least 1: 0 means none.
		when = max(sys.Nanotime()+int64(time.Until(t)), 1)
	}
	s.deadline.Store(when)
	c.wake(wait) // a sleeper looks at the new deadline
}

// WatchPeer implements Transport. The loop watches all the time; what is left
// is an end that came while the request's body was still unread.
func (c *Conn) WatchPeer() {
	if c.state.Load()&(owned|hijacked) == owned && c.peerDone() {
		c.proto.PeerGone(false)
	}
}

// Peer implements Transport.
func (c *Conn) Peer() string { return c.peer }

// LocalAddr implements Transport. It may be called after the end too.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements Transport. It may be called after the end too.
func (c *Conn) RemoteAddr() net.Addr {
	if ap, err := netip.ParseAddrPort(c.peer); err == nil {
		return net.TCPAddrFromAddrPort(ap)
	}
	return &net.UnixAddr{Name: c.peer, Net: "unix"}
}

func (c *Conn) opError(op string, e sys.Errno) error {
	return c.failed(op, os.NewSyscallError(op, e))
}

// failed dresses an error as package net does.
func (c *Conn) failed(op string, err error) error {
	network := "tcp"
	if c.local != nil {
		network = c.local.Network()
	}
	return &net.OpError{Op: op, Net: network, Source: c.local, Addr: c.RemoteAddr(), Err: err}
}
