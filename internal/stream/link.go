package stream

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file implements conn.Link.

// Buffered implements conn.Link.
func (c *Conn) Buffered() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.B
}

// Discard implements conn.Link.
func (c *Conn) Discard(n int) {
	if c.in == nil {
		return
	}
	if c.in.B = c.in.B[n:]; len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
}

// Unread implements conn.Link.
func (c *Conn) Unread(p []byte) {
	if len(p) == 0 {
		return
	}
	rest := c.Buffered()
	b := buf.Get(len(p) + len(rest))
	b.B = append(append(b.B, p...), rest...)
	c.Discard(len(rest))
	c.in = b
}

// Fill implements conn.Link.
func (c *Conn) Fill() error {
	return c.readMore(c.receive)
}

// Read implements conn.Link.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.in != nil {
		n := copy(p, c.in.B)
		c.Discard(n)
		return n, nil
	}
	return c.receive(p)
}

// receive is a read of the user code. A deadline that fires too early, because it
// was set for an earlier read, is set again: setting it for each read would cost
// as much as the rest of a read.
func (c *Conn) receive(p []byte) (n int, err error) {
	var stall time.Time
	now := time.Now()
	if d := c.limits.ReadStall; d > 0 {
		stall = now.Add(time.Duration(d))
	}
	for {
		if err := c.beginRead(now, stall); err != nil {
			return 0, err
		}
		n, err = c.read(p)
		if n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if now = time.Now(); !c.tooEarly(now, stall) {
			return 0, err
		}
	}
}

// beginRead ensures that a deadline is set that is no later than the user
// code's, and than stall.
func (c *Conn) beginRead(now, stall time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerErr != nil {
		return c.peerErr
	}
	if until := conn.Sooner(stall, c.readBy); c.armed != until && (conn.Sooner(c.armed, until) == until || !c.armed.After(now)) {
		c.setReadDeadline(until)
	}
	return nil
}

// tooEarly reports whether the deadline that is set has fired, and that of the read
// has not come.
func (c *Conn) tooEarly(now, stall time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := conn.Sooner(stall, c.readBy)
	// One that is still to come did not fire: other code has the net.Conn too.
	return !c.armed.IsZero() && !c.armed.After(now) && (until.IsZero() || until.After(now))
}

// setReadDeadline sets that of nc. Its error, of a closed connection, is left
// to the read to return. mu is held.
func (c *Conn) setReadDeadline(t time.Time) {
	c.armed = t
	c.nc.SetReadDeadline(t)
}

const (
	// pieceSize is the unit of progress, so that a peer that reads a large response
	// slowly but steadily is not stalled. Less than that in the time of
	// Limits.WriteStall is a stall, except on a socket: a net.Conn does not report
	// partial progress.
	pieceSize = 16 << 10
	// checkSize is how much of a file is sent between two of its holder's checks.
	checkSize = 1 << 20
)

// Write implements conn.Link.
func (c *Conn) Write(a, b []byte) error {
	if c.queue.shared {
		return c.queue.write(a, b)
	}
	return c.write(a, b)
}

func (c *Conn) write(a, b []byte) error {
	defer c.stall.done()
	raw, socket := c.socketFor(len(a) + len(b))
	if c.skip.wanted && !socket {
		c.beginSkip(skipAfter) // it cannot be seen whether the write waits
	}
	if !socket && len(a)+len(b) <= pieceSize && len(a) > 0 && len(b) > 0 {
		c.stall.progress()
		bufs := net.Buffers{a, b}
		n, err := bufs.WriteTo(c.nc)
		c.wrote(n)
		c.lost += int64(len(a)+len(b)) - n
		return err
	}
	if socket {
		return c.writeRaw(raw, a, b)
	}
	for p, next := a, b; ; {
		if len(p) == 0 {
			if p, next = next, nil; len(p) == 0 {
				return nil
			}
		}
		c.stall.progress()
		k := min(len(p), pieceSize)
		n, err := c.nc.Write(p[:k])
		if c.wrote(int64(n)); err != nil {
			c.lost += int64(len(p) - n + len(next))
			return err
		}
		p = p[k:]
	}
}

// socketFor returns the socket if n bytes are to be written to it without package net: if
// they are many, or if it matters whether the write waits.
func (c *Conn) socketFor(n int) (raw syscall.RawConn, ok bool) {
	if !sys.HavePoller || n <= pieceSize && !c.skip.wanted {
		return nil, false
	}
	return c.rawConn()
}

// writeRaw is write to a socket: as much per call as the socket accepts, any
// amount of which is progress.
func (c *Conn) writeRaw(raw syscall.RawConn, a, b []byte) error {
	var e syscall.Errno
	give := func(fd uintptr) bool {
		for len(a)+len(b) > 0 {
			c.stall.progress()
			var n int
			n, e = sys.Write2(int(fd), a, b[:min(len(b), checkSize)])
			if c.called(tally.Writes, n); e != 0 {
				if sys.Again(e) {
					c.beginSkip(0)
					return false
				}
				return true
			}
			k := min(n, len(a))
			a, b = a[k:], b[n-k:]
		}
		return true
	}
	err := raw.Write(give)
	if err == nil && e != 0 {
		err = os.NewSyscallError("write", e)
	}
	if err != nil {
		c.lost += int64(len(a) + len(b))
		return c.writeError(err)
	}
	return nil
}

// Send implements conn.Link: package net waits for the socket.
func (c *Conn) Send(w *conn.Write) error {
	if c.queue.shared {
		return c.queue.put(w)
	}
	return c.send(w)
}

func (c *Conn) send(w *conn.Write) error {
	if w.Holder != nil {
		defer w.Holder.Release()
	}
	if w.Deadline != 0 {
		defer c.limitWrite(w.Deadline)()
	}
	off, end := w.Offset, w.Offset+w.Len
	defer func() { c.lost += end - off }()
	if err := c.write(w.A, w.B); err != nil {
		return err
	}
	for off < end {
		if off > w.Offset {
			if err := w.Holder.Check(); err != nil {
				return err
			}
		}
		n, err := c.sendPart(w.File, off, min(end-off, checkSize))
		if off += n; err != nil {
			return err
		}
	}
	return nil
}

// limitWrite sets a deadline of sys.Nanotime for one write, unless the user code's
// is sooner. restore restores the latter.
func (c *Conn) limitWrite(ns int64) (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc.SetWriteDeadline(conn.Sooner(c.writeBy, time.Now().Add(time.Duration(ns-sys.Nanotime()))))
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.nc.SetWriteDeadline(c.writeBy)
	}
}

// abort closes the connection after an error that the owner has not seen.
func (c *Conn) abort() { guard(c.nc, c.below().Close) }

// below is the socket below a TLS connection, or base. A Close of TLS would send an alert first,
// but what it has sent last may have come in part, or not at all: the alert would be a bad
// MAC to the peer.
func (c *Conn) below() net.Conn {
	if t, ok := c.base.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return c.base
}

// writeError wraps err like the errors of the net.Conn's own Write.
func (c *Conn) writeError(err error) error {
	if oe, ok := err.(*net.OpError); ok {
		err = oe.Err
	}
	return &net.OpError{Op: "write", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// SetReadDeadline implements conn.Link.
func (c *Conn) SetReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readBy = t; c.serving && !c.watching {
		c.setReadDeadline(conn.Sooner(after(c.limits.ReadStall), t))
	}
}

// SetWriteDeadline implements conn.Link.
func (c *Conn) SetWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeBy = t; c.serving {
		c.nc.SetWriteDeadline(t)
	}
}

// Now implements conn.Link.
func (c *Conn) Now() int64 { return sys.Nanotime() }

// Stalled implements conn.Link: Send has waited.
func (c *Conn) Stalled() bool { return false }

// SetPeer sets what Peer returns. It is called before Run.
func (c *Conn) SetPeer(peer string) { c.peer.Store(&peer) }

// Peer implements conn.Link. Safe for concurrent use.
func (c *Conn) Peer() string {
	if p := c.peer.Load(); p != nil {
		return *p
	}
	return ""
}

// LocalAddr and RemoteAddr implement conn.Link.
func (c *Conn) LocalAddr() net.Addr { return c.base.LocalAddr() }

func (c *Conn) RemoteAddr() net.Addr { return c.base.RemoteAddr() }

// NetConn implements conn.Link.
func (c *Conn) NetConn() net.Conn { return c.base }

// Switch implements conn.Link.
func (c *Conn) Switch(s conn.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

// SetLayer implements conn.Link.
func (c *Conn) SetLayer(l conn.Layer) error {
	c.queue.wait()
	raw := append([]byte(nil), c.Buffered()...)
	c.Discard(len(raw))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.raw = l.Conn(c.nc, raw), nil
	return nil
}
