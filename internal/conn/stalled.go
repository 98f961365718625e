package conn

import (
	"io"
	"net"
	"os"

	"github.com/chert-http/chert/internal/sys"
)

// This file is how an answer leaves that is larger than the socket takes at
// once, without a goroutine that waits for its reader.
//
// Serve tries, and says Stalled when the socket is full. The connection is the
// loop's then, in the phase sending, and the next event or turn makes Serve go
// on, as an inline task: a read of the file that has to wait for the disk costs
// the loop its driver like any handler that overstays.

// sendTurn bounds what of a file one connection sends in one go while others
// wait, in bytes.
const sendTurn = 2 << 20

// TryWrite implements Transport.
func (c *Conn) TryWrite(a, b []byte, more bool) (n int, err error) {
	if !more && len(b) == 0 && c.hold(a) {
		return len(a), nil
	}
	if all, err := c.tryHeld(); !all {
		return 0, err
	}
	for len(a)+len(b) > 0 {
		if err := c.mayWrite(); err != nil {
			return n, err
		}
		var m int
		var e sys.Errno
		if more && len(b) == 0 {
			m, e = c.loop.Poller().WriteMore(int(c.fd), a)
		} else {
			m, e = c.loop.Poller().Write2(int(c.fd), a, b)
		}
		if e != 0 && !sys.Again(e) {
			return n, c.opError("write", e)
		}
		n += m
		if m >= len(a) {
			a, b = b[m-len(a):], nil
		} else {
			a = a[m:]
		}
		if e != 0 && c.full() {
			return n, nil
		}
	}
	return n, nil
}

// TrySendFile implements Transport.
func (c *Conn) TrySendFile(f *os.File, offset, n int64) (sent int64, ok bool, err error) {
	if !sys.HaveSendfile {
		return 0, false, nil
	}
	if all, err := c.tryHeld(); !all {
		return 0, true, err
	}
	// Fd, since SyscallConn allocates. It leaves a regular file as it is.
	fd := int(f.Fd())
	for most := min(n, sendTurn); sent < most; {
		if err := c.mayWrite(); err != nil {
			return sent, true, err
		}
		m, e := sys.Sendfile(int(c.fd), fd, offset+sent, int(most-sent))
		switch {
		case e == 0 && m == 0:
			return sent, true, io.ErrUnexpectedEOF
		case e == 0:
			sent += int64(m)
		case sys.Again(e):
			if c.full() {
				return sent, true, nil
			}
		case sent == 0 && sys.CannotSendfile(e):
			return 0, false, nil
		default:
			return sent, true, c.opError("sendfile", e)
		}
	}
	if sent < n {
		c.state.Or(writable) // it goes on in the next turn
	}
	return sent, true, nil
}

// mayWrite is why nothing can be written any more, or nil.
func (c *Conn) mayWrite() error {
	switch {
	case c.state.Load()&shut != 0:
		return c.failed("write", net.ErrClosed)
	case c.act.write.over():
		return c.failed("write", os.ErrDeadlineExceeded)
	}
	return nil
}

// full reports, after EAGAIN, whether an event is still to come. The bit may
// stand from long ago, or be set by one that came just before.
func (c *Conn) full() bool { return c.state.And(^writable)&writable == 0 }

// stalled makes the loop the owner of a connection whose answer is not all
// written. It runs on the loop.
func (c *Conn) stalled() {
	c.leaveSlotOnly()
	c.phase = sending
	c.queued = int32(sys.Queued(int(c.fd)))
	old := c.state.And(^(owned | noTimer))
	if old&shut != 0 {
		c.closeNow()
		return
	}
	until := after(c.loop.Now(), c.shared.Limits.WriteStall)
	if dl := c.act.write.deadline.Load(); dl != 0 {
		until = min(until, dl)
	}
	c.wait(until)
	if old&(writable|hangup) != 0 {
		c.loop.Again(c.place)
	}
}

// goOnSending makes Serve go on if the socket may take more.
func (c *Conn) goOnSending() {
	if s := c.state.And(^writable); s&(writable|hangup) == 0 {
		return
	}
	c.phase = reading
	c.lend()
	c.loop.Next(c)
}

// sendingExpired ends a connection that has taken nothing for too long. A
// socket becomes writable when a third of its buffer is free, which may be
// megabytes: a client that has taken less than that, but something, goes on.
func (c *Conn) sendingExpired() {
	queued := int32(sys.Queued(int(c.fd)))
	if !c.act.write.over() && queued < c.queued {
		c.queued = queued
		until := after(c.loop.Now(), c.shared.Limits.WriteStall)
		if dl := c.act.write.deadline.Load(); dl != 0 {
			until = min(until, dl)
		}
		c.wait(until)
		return
	}
	sys.SetReset(int(c.fd))
	c.closeNow()
}
