package stream

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// This file is Conn as a conn.Transport.

// Buffered implements conn.Transport.
func (c *Conn) Buffered() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.B
}

// Discard implements conn.Transport.
func (c *Conn) Discard(n int) {
	if c.in == nil {
		return
	}
	if c.in.B = c.in.B[n:]; len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
}

// Unread implements conn.Transport.
func (c *Conn) Unread(b []byte) {
	n := c.whole
	c.whole = 0
	c.Discard(n - len(b))
}

// Fill implements conn.Transport.
func (c *Conn) Fill() error {
	if err := c.beginRead(); err != nil {
		return err
	}
	return c.readMore()
}

// Read implements conn.Transport.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.in != nil {
		n := copy(p, c.in.B)
		c.Discard(n)
		return n, nil
	}
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	return c.nc.Read(p)
}

// beginRead sets the deadline of the handler's next read.
func (c *Conn) beginRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerErr != nil {
		return c.peerErr
	}
	// Its error, of a closed connection, is better told by the read.
	c.nc.SetReadDeadline(sooner(after(c.limits.ReadStall), c.readBy))
	return nil
}

// pieceSize bounds what counts as progress, so that a peer which takes a large
// answer slowly but steadily is not stalled. Less than that in the time of
// Limits.WriteStall is: a net.Conn does not tell how far it has come.
const pieceSize = 16 << 10

// Write2 implements conn.Transport.
func (c *Conn) Write2(a, b []byte) error {
	defer c.stall.done()
	if len(a)+len(b) <= pieceSize && len(a) > 0 && len(b) > 0 {
		c.stall.progress()
		bufs := net.Buffers{a, b}
		_, err := bufs.WriteTo(c.nc)
		return err
	}
	for _, p := range [2][]byte{a, b} {
		for len(p) > 0 {
			n := min(len(p), pieceSize)
			c.stall.progress()
			if _, err := c.nc.Write(p[:n]); err != nil {
				return err
			}
			p = p[n:]
		}
	}
	return nil
}

// WriteLast implements conn.Transport.
func (c *Conn) WriteLast(p []byte) error { return c.Write2(p, nil) }

// SendFile implements conn.Transport.
func (c *Conn) SendFile(f conn.File, offset, n int64) (sent int64, ok bool, err error) {
	rf, can := c.nc.(io.ReaderFrom)
	if !can || offset >= 0 {
		return 0, false, nil
	}
	defer c.stall.done()
	for sent < n {
		c.stall.progress()
		m, err := rf.ReadFrom(&io.LimitedReader{R: f, N: min(n-sent, 4*pieceSize)})
		sent += m
		if err != nil || m == 0 {
			return sent, true, err
		}
	}
	return sent, true, nil
}

// TryWrite implements conn.Transport: package net waits for the socket.
func (c *Conn) TryWrite(a, b []byte, more bool) (int, error) {
	if err := c.Write2(a, b); err != nil {
		return 0, err
	}
	return len(a) + len(b), nil
}

// TrySendFile implements conn.Transport. It is not left to ReadFrom of package
// net, which would use and move the file's own offset.
func (c *Conn) TrySendFile(f *os.File, offset, n int64) (sent int64, ok bool, err error) {
	if !sys.HaveSendfile || !c.CanRelay() {
		return 0, false, nil
	}
	raw, err := c.nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, false, nil
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
		waited = e == syscall.EAGAIN
		return !waited
	}
	defer c.stall.done()
	for sent < n {
		c.stall.progress()
		if err := raw.Write(give); err != nil {
			return sent, true, c.writeError(err)
		}
		if waited {
			// The file may have been written to meanwhile: its Check comes
			// before it goes on.
			return sent, true, nil
		}
		switch {
		case e != 0 && sent == 0 && sys.CannotSendfile(e):
			return 0, false, nil
		case e != 0:
			return sent, true, c.writeError(os.NewSyscallError("sendfile", e))
		case m == 0:
			return sent, true, io.ErrUnexpectedEOF
		}
		sent += int64(m)
	}
	return sent, true, nil
}

// CanRelay implements conn.Transport. Of other types, those that wrap a socket
// too, the methods want to be called.
func (c *Conn) CanRelay() bool {
	switch nc := c.nc.(type) {
	case *net.TCPConn:
		return true
	case *net.UnixConn:
		return nc.LocalAddr().Network() == "unix"
	}
	return false
}

// SendRelay implements conn.Transport. It is not left to the ReadFrom of
// package net, which would wait for the source under the client's deadline.
func (c *Conn) SendRelay(r *conn.Relay) (sent int, err error) {
	raw, err := c.nc.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var e syscall.Errno
	give := func(fd uintptr) bool {
		n, e = r.Give(int(fd))
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

// writeError dresses err as those of the net.Conn's own Write are.
func (c *Conn) writeError(err error) error {
	if oe, ok := err.(*net.OpError); ok {
		err = oe.Err
	}
	return &net.OpError{Op: "write", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// SetReadDeadline implements conn.Transport.
func (c *Conn) SetReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readBy = t; c.serving && !c.watching {
		c.nc.SetReadDeadline(sooner(after(c.limits.ReadStall), t))
	}
}

// SetWriteDeadline implements conn.Transport.
func (c *Conn) SetWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeBy = t; c.serving {
		c.nc.SetWriteDeadline(t)
	}
}

// sooner is the earlier of two deadlines, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Now implements conn.Transport.
func (c *Conn) Now() int64 { return sys.Nanotime() }

// Outcome implements conn.Transport.
func (c *Conn) Outcome() conn.Outcome { return conn.RanPooled }

// WatchPeer implements conn.Transport: a goroutine reads, since only a read
// can tell that the peer is gone. What it reads is kept for the next request.
func (c *Conn) WatchPeer() {
	c.mu.Lock()
	if c.serving && c.peerErr != nil {
		// The end was met during an earlier request of the same batch.
		c.mu.Unlock()
		c.proto.PeerGone(false)
		return
	}
	defer c.mu.Unlock()
	if !c.serving || c.watching || c.hijacked {
		return
	}
	c.watching = true
	c.nc.SetReadDeadline(time.Time{})
	go c.watch()
}

func (c *Conn) watch() {
	b := buf.Get(readSize)
	n, err := c.nc.Read(b.B[:cap(b.B)])
	c.mu.Lock()
	gone := false
	if n > 0 {
		// A pipelined request. in is not touched by anybody while this
		// watches: who wants it calls stopWatch first.
		if c.in == nil {
			c.in = buf.Get(n)
		}
		c.in = c.in.Grow(n)
		c.in.B = append(c.in.B, b.B[:n]...)
	} else if err != nil && !c.aborted {
		c.peerErr = err
		gone = true
	}
	b.Release()
	c.watching, c.aborted = false, false
	c.cond.Broadcast()
	c.mu.Unlock()
	if gone {
		c.proto.PeerGone(false)
	}
}

// stopWatch ends the watch and waits until it has ended.
func (c *Conn) stopWatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.watching {
		return
	}
	c.aborted = true
	c.nc.SetReadDeadline(longAgo)
	for c.watching {
		c.cond.Wait()
	}
}

// Hijack implements conn.Transport.
func (c *Conn) Hijack() (net.Conn, []byte, error) {
	c.leaveSlot()
	c.stopWatch()
	c.stall.end()
	c.mu.Lock()
	c.hijacked = true
	c.nc.SetDeadline(time.Time{})
	c.mu.Unlock()
	c.Leave()
	rest := append([]byte(nil), c.Buffered()...)
	c.Discard(len(rest))
	return c.nc, rest, nil
}

// SetPeer says what Peer gives. It is called before Run.
func (c *Conn) SetPeer(peer string) { c.peer = peer }

// Peer implements conn.Transport.
func (c *Conn) Peer() string { return c.peer }

// LocalAddr and RemoteAddr implement conn.Transport.
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// NetConn implements conn.Transport.
func (c *Conn) NetConn() net.Conn { return c.nc }
