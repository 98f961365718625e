package stream

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is what a connection sends. The owner writes by itself, and waits for the peer,
// until the link is shared. From then on everything is queued, and while something is, a
// goroutine of its own sends it.

// carrier is a Conn as the Sink of its queue.
type carrier Conn

var _ outbox.FileSink = (*carrier)(nil)

func (s *carrier) Wake() { go (*Conn)(s).carry() }

// carry sends what is queued until there is nothing left.
func (c *Conn) carry() {
	c.point(1)
	defer func() { // also if a Holder's Check has ended its goroutine
		if c.out.Err() != nil {
			c.abort()
		}
	}()
	for again := true; again; {
		again = c.out.Carry()
		// Also in the end: a Follower may have ended the goroutine before this one.
		c.announce()
	}
}

// announce has Writable called if there is room again.
func (c *Conn) announce() {
	c.room.Lock()
	defer c.room.Unlock()
	if c.out.HasRoom() {
		c.Post(func() conn.Next { return c.session.Writable() })
	}
}

const (
	// pieceSize is the unit of progress, so that a peer that reads a large response
	// slowly but steadily is not stalled. Less than that in the time of
	// Limits.WriteStall is a stall, except on a socket: a net.Conn does not report
	// partial progress.
	pieceSize = 16 << 10
	// turnSize is the most that is passed to a socket at once.
	turnSize = 1 << 20
)

func (s *carrier) Push(p, q []byte, _ bool) (n int, err error) {
	c := (*Conn)(s)
	size := len(p) + len(q)
	if size == 0 {
		return 0, nil
	}
	defer c.clock.Done()
	c.clock.Progress()
	// Without package net if they are many, or if it matters whether the write waits.
	if sys.HavePoller && (size > pieceSize || c.skip.wanted) {
		if raw, socket := c.rawConn(); socket {
			return c.writeRaw(raw, p, q[:min(len(q), turnSize)])
		}
	}
	if c.skip.wanted {
		c.beginSkip(skipAfter) // it cannot be seen whether the write waits
	}
	if size <= pieceSize && len(p) > 0 && len(q) > 0 {
		return c.writeBoth(p, q)
	}
	if len(p) == 0 {
		p = q
	}
	n, err = c.nc.Write(p[:min(len(p), pieceSize)])
	c.wrote(int64(n))
	return n, err
}

// writeBoth is apart from Push because of its frame: without it, a goroutine that carries a small write does not
// have to grow its stack, which takes as long as a good part of the write. BenchmarkNetHTTP of websocket shows it.
func (c *Conn) writeBoth(p, q []byte) (int, error) {
	bufs := net.Buffers{p, q}
	n, err := bufs.WriteTo(c.nc)
	c.wrote(n)
	return int(n), err
}

// writeRaw is a write to a socket: as much as that accepts, any amount of which is
// progress.
func (c *Conn) writeRaw(raw syscall.RawConn, p, q []byte) (n int, err error) {
	var e syscall.Errno
	err = raw.Write(func(fd uintptr) bool {
		n, e = sys.Write2(int(fd), p, q)
		c.called(tally.Writes, n)
		if sys.Again(e) {
			c.beginSkip(0)
			return false
		}
		return true
	})
	if err == nil && e != 0 {
		err = os.NewSyscallError("write", e)
	}
	if err != nil {
		err = c.writeError(err)
	}
	return n, err
}

// PushFile implements outbox.FileSink. It waits for the peer at most once, since the file
// may be written to meanwhile. It does not use ReadFrom of package net, which would use and
// move the file's own offset.
func (s *carrier) PushFile(f *os.File, offset, n int64) (sent int64, err error) {
	c := (*Conn)(s)
	raw, ok := c.rawConn()
	if !ok || !sys.HaveSendfile {
		return 0, outbox.ErrCopy
	}
	src := int(f.Fd())
	var m int
	var e syscall.Errno
	waited := false
	give := func(fd uintptr) bool {
		if waited {
			return true
		}
		m, e = sys.Sendfile(int(fd), src, offset+sent, int(min(n-sent, 4*pieceSize)))
		c.called(tally.Sendfiles, m)
		waited = e == syscall.EAGAIN
		return !waited
	}
	defer c.clock.Done()
	for sent < n {
		c.clock.Progress()
		switch err := raw.Write(give); {
		case err != nil:
			return sent, c.writeError(err)
		case waited:
			return sent, outbox.ErrYield
		case e != 0 && sent == 0 && sys.CannotSendfile(e):
			return 0, outbox.ErrCopy
		case e != 0:
			return sent, c.writeError(os.NewSyscallError("sendfile", e))
		case m == 0:
			return sent, io.ErrUnexpectedEOF
		}
		sent += int64(m)
	}
	return sent, nil
}

// Share implements conn.Link.
func (c *Conn) Share() {
	c.mu.Lock() // Spare looks
	defer c.mu.Unlock()
	c.out.Share()
}

// Out implements conn.Link. Nothing waits in it on a link that is not shared: Send has waited.
func (c *Conn) Out() *outbox.Box { return &c.out }

// Send implements conn.Link: it waits for the peer, unless the link is shared.
func (c *Conn) Send(w *conn.Write) error {
	if w.DiscardInput {
		c.skip.wanted = true
	}
	if c.out.Shared() {
		err := c.out.SendCarried(w)
		if err == nil && (w.Wait == outbox.ForAll || w.Wait == outbox.ForRoom && c.out.Above()) {
			err = c.out.Carried()
		}
		return err
	}
	if w.Deadline != 0 {
		c.limitWrite(w.Deadline)
		defer c.limitWrite(0)
	}
	return c.out.Through(w)
}

// limitWrite sets a deadline of sys.Nanotime for one write, unless the user code's
// is sooner; 0 restores the latter.
func (c *Conn) limitWrite(ns int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc.SetWriteDeadline(conn.Sooner(c.writeBy, conn.TimeAt(ns)))
}

// abort closes the connection after an error that the owner has not seen.
func (c *Conn) abort() { guard(c.nc, func() error { return c.below().Close() }) }

// below is the socket below a TLS connection, or base. A Close of TLS would send an alert first, and wait
// for room for it, but what it has sent last may have come in part, or not at all: the alert would be a bad
// MAC to the peer.
func (c *Conn) below() net.Conn {
	nc := c.base
	for range 8 { // a NetConn of another package may return itself
		t, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		nc = t.NetConn()
	}
	return nc
}

// writeError wraps err like the errors of the net.Conn's own Write.
func (c *Conn) writeError(err error) error {
	if oe, ok := err.(*net.OpError); ok {
		err = oe.Err
	}
	local, remote := c.base.LocalAddr(), c.Peer().Addr(c.base.RemoteAddr())
	return &net.OpError{Op: "write", Net: local.Network(), Source: local, Addr: remote, Err: err}
}

// SendFile implements conn.Lent.
func (c *Conn) SendFile(f conn.File, offset, n int64) (sent int64, ok bool, err error) {
	rf, can := bare(c.nc).(io.ReaderFrom)
	if !can || offset >= 0 || c.out.Shared() {
		return 0, false, nil
	}
	defer c.clock.Done()
	for sent < n {
		c.clock.Progress()
		var m int64
		err := guard(c.nc, func() (err error) {
			m, err = rf.ReadFrom(&io.LimitedReader{R: f, N: min(n-sent, 4*pieceSize)})
			return err
		})
		c.wrote(m)
		sent += m
		if err != nil || m == 0 {
			return sent, true, err
		}
	}
	return sent, true, nil
}

// rawConn returns the connection's socket. For other types, including those
// that wrap a socket, the methods must be called.
func (c *Conn) rawConn() (syscall.RawConn, bool) {
	if u, unix := c.nc.(*net.UnixConn); unix && u.LocalAddr().Network() != "unix" {
		return nil, false
	}
	if c.raw == nil {
		c.raw = socketOf(c.nc)
	}
	return c.raw, c.raw != nil
}

// socketOf returns the socket of a connection of std's, or nil.
func socketOf(nc net.Conn) syscall.RawConn {
	switch nc.(type) {
	case *net.TCPConn, *net.UnixConn:
		if raw, err := nc.(syscall.Conn).SyscallConn(); err == nil {
			return raw
		}
	}
	return nil
}

// CanRelay implements conn.Lent.
func (c *Conn) CanRelay() bool {
	_, ok := c.rawConn()
	return ok && !c.out.Shared()
}

// SendRelay implements conn.Lent. It does not use ReadFrom of package net, which
// would wait for the source under the client's deadline.
func (c *Conn) SendRelay(r *conn.Relay) (sent int, err error) {
	raw, ok := c.rawConn()
	if !ok {
		return 0, net.ErrClosed
	}
	var n int
	var e syscall.Errno
	give := func(fd uintptr) bool {
		n, e = r.Give(int(fd))
		c.called(tally.Splices, n)
		return e != syscall.EAGAIN
	}
	defer c.clock.Done()
	for r.Held() > 0 {
		c.clock.Progress()
		if err := raw.Write(give); err != nil {
			return sent, c.writeError(err)
		}
		sent += n
		if e != 0 {
			return sent, c.writeError(os.NewSyscallError("splice", e))
		}
	}
	return sent, nil
}
