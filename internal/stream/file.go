package stream

import (
	"io"
	"net"
	"os"
	"syscall"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file sends files and data of other sockets.

// sendPart sends up to n bytes of f, and waits for the peer at most once, since
// the file may be written to meanwhile. It does not use ReadFrom of package
// net, which would use and move the file's own offset.
func (c *Conn) sendPart(f *os.File, offset, n int64) (sent int64, err error) {
	raw, ok := c.rawConn()
	if !ok || !sys.HaveSendfile {
		return c.copyPart(f, offset, n)
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
	defer c.stall.done()
	for sent < n && !waited {
		c.stall.progress()
		if err := raw.Write(give); err != nil {
			return sent, c.writeError(err)
		}
		switch {
		case waited:
		case e != 0 && sent == 0 && sys.CannotSendfile(e):
			return c.copyPart(f, offset, n)
		case e != 0:
			return sent, c.writeError(os.NewSyscallError("sendfile", e))
		case m == 0:
			return sent, io.ErrUnexpectedEOF
		default:
			sent += int64(m)
		}
	}
	return sent, nil
}

// copyPart is sendPart through a buffer.
func (c *Conn) copyPart(f *os.File, offset, n int64) (sent int64, err error) {
	b := buf.Get(2 * pieceSize)
	defer b.Release()
	for sent < n {
		m, err := f.ReadAt(b.Whole()[:min(n-sent, 2*pieceSize)], offset+sent)
		if m == 0 {
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return sent, err
		}
		if err := c.write(b.Whole()[:m], nil); err != nil {
			return sent + int64(m), err // the lost part is counted
		}
		sent += int64(m)
	}
	return sent, nil
}

// SendFile implements conn.Link.
func (c *Conn) SendFile(f conn.File, offset, n int64) (sent int64, ok bool, err error) {
	rf, can := bare(c.nc).(io.ReaderFrom)
	if !can || offset >= 0 || c.queue.shared {
		return 0, false, nil
	}
	defer c.stall.done()
	for sent < n {
		c.stall.progress()
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
	if c.raw != nil {
		return c.raw, true
	}
	switch nc := c.nc.(type) {
	case *net.TCPConn:
	case *net.UnixConn:
		if nc.LocalAddr().Network() != "unix" {
			return nil, false
		}
	default:
		return nil, false
	}
	raw, err := c.nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, false
	}
	c.raw = raw
	return raw, true
}

// CanRelay implements conn.Link.
func (c *Conn) CanRelay() bool {
	_, ok := c.rawConn()
	return ok && !c.queue.shared
}

// SendRelay implements conn.Link. It does not use ReadFrom of package net, which
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
	defer c.stall.done()
	for r.Held() > 0 {
		c.stall.progress()
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
