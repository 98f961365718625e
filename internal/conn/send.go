package conn

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file sends for the owner: only write, and the calls of sendfile and
// splice, write to the socket.

// errYield means that a file has had its turn.
var errYield = errors.New("conn: others wait")

// errChecking is the error of a connection whose Holder has ended the goroutine
// that called Check.
var errChecking = errors.New("conn: Check has not returned")

// push sends p and then q, through the layer if there is one. more means that
// other bytes follow immediately.
func (c *Conn) push(p, q []byte, more bool) (int, sys.Errno) {
	if c.layer != nil {
		return c.layer.push(c, p, q)
	}
	return c.write(p, q, more)
}

// write and writeAlone are the only functions that write bytes to the socket.
func (c *Conn) write(p, q []byte, more bool) (int, sys.Errno) {
	n, e := 0, sys.Errno(0)
	if more && len(q) == 0 {
		n, e = c.loop.Poller().WriteMore(int(c.fd), p)
	} else {
		n, e = c.loop.Poller().Write2(int(c.fd), p, q)
	}
	c.sent(tally.Writes, n)
	return n, e
}

// writeAlone is write for the owner of a link that is not shared and has no queue, who
// may be driving the loop: an answer on the loop costs no locked instruction.
func (c *Conn) writeAlone(p, q []byte) (int, sys.Errno) {
	n, e := c.loop.Poller().Write2(int(c.fd), p, q)
	t, driving := &c.loop.Tally, c.driving()
	t.Add(driving, tally.Writes, 1)
	t.Add(driving, tally.BytesWritten, uint64(n))
	return n, e
}

// sent counts a system call that has sent n bytes. Any goroutine calls it.
func (c *Conn) sent(id tally.ID, n int) {
	c.loop.Tally.Add(false, id, 1)
	c.loop.Tally.Add(false, tally.BytesWritten, uint64(n))
}

// transmit sends what the socket accepts of s. Its error is errWouldBlock,
// errYield or the connection's.
func (c *Conn) transmit(s *segment, more bool) error {
	turn, most := int64(0), int64(sendTurn)
	if s.copying || c.layer != nil || !sys.HaveSendfile {
		most = copyTurn
	}
	for {
		if n := s.bytes(); n > 0 {
			p, q := s.a, s.b
			if s.own != nil {
				if p, q = s.own.B, s.a; len(q) == 0 {
					q = s.b
				}
			}
			m, e := c.push(p, q, more || s.n > 0 || len(p)+len(q) < n)
			s.take(m)
			if e != 0 {
				return c.sendError("write", e)
			}
			continue
		}
		switch {
		case s.n == 0:
			if c.layer != nil {
				if _, e := c.push(nil, nil, false); e != 0 { // sealed bytes
					return c.sendError("write", e)
				}
			}
			return nil
		case turn >= most && !c.off:
			return errYield
		case s.copying || c.layer != nil || !sys.HaveSendfile:
			before := s.n
			if err := s.read(); err != nil {
				return err
			}
			turn += before - s.n
			continue
		}
		// Fd, since SyscallConn allocates. It does not change a regular file.
		m, e := c.loop.Poller().Sendfile(int(c.fd), int(s.file.Fd()), s.offset, int(min(s.n, sendTurn)))
		c.sent(tally.Sendfiles, m)
		switch {
		case e == 0 && m == 0:
			return io.ErrUnexpectedEOF // the file has shrunk
		case e != 0 && !sys.Again(e) && sys.CannotSendfile(e):
			s.copying = true
		case e != 0:
			return c.sendError("sendfile", e)
		}
		s.offset += int64(m)
		s.n -= int64(m)
		turn += int64(m)
	}
}

func (c *Conn) sendError(op string, e sys.Errno) error {
	if sys.Again(e) {
		return errWouldBlock
	}
	return c.opError(op, e)
}

// mayWrite returns why nothing can be written any more, or nil.
func (c *Conn) mayWrite() error {
	switch {
	case c.state.Load()&shut != 0:
		return c.failed("write", net.ErrClosed)
	case c.waits.Load().over(waitWrite):
		return c.failed("write", os.ErrDeadlineExceeded)
	}
	return nil
}

// Send implements Link.
func (c *Conn) Send(w *Write) error {
	q := c.queue.Load()
	sent := 0
	if q == nil && w.Len == 0 && (!w.Cork || c.off) && c.mayWrite() == nil {
		// Usually the socket accepts everything.
		n, e := c.writeAlone(w.A, w.B) // with a layer there is a queue
		if n == len(w.A)+len(w.B) || e != 0 && !sys.Again(e) {
			lost := int64(len(w.A) + len(w.B) - n)
			release(w.Holder) // which w may be a part of
			if e != 0 {
				c.lose(lost)
				return c.opError("write", e)
			}
			return nil
		}
		sent = n
	}
	if q != nil && w.Cork && w.Len == 0 && !c.off && q.join(w) {
		release(w.Holder)
		return nil
	}
	s := segment{a: w.A, b: w.B, file: w.File, offset: w.Offset, n: w.Len, holder: w.Holder}
	s.take(sent)
	if err := c.mayWrite(); err != nil {
		c.lose(s.size())
		release(s.free())
		return err
	}
	disk := c.enterDisk(s.n > 0)
	tried, err := c.sendSegment(q, &s, w)
	if disk {
		c.leaveLoop()
	}
	if tried {
		c.unready()
	}
	return err
}

// join adds w to what is already corked, if there is something.
func (q *queue) join(w *Write) (joined bool) {
	n := len(w.A) + len(w.B)
	q.mu.Lock()
	last := len(q.segments) - 1
	if joined = last >= 0 && n <= smallWrite && q.held+n <= highWater && q.err == nil && !q.blocked.Load() && q.segments[last].plain(); joined {
		s := &q.segments[last]
		s.own = s.own.Grow(n)
		s.own.B = append(append(s.own.B, w.A...), w.B...)
		if q.held += n; w.Deadline != 0 {
			q.deadline = w.Deadline
		}
	}
	q.unlock()
	return joined
}

// sendSegment is Send for s, which is w or what the socket has not accepted of
// it. It reports whether the socket was tried.
func (c *Conn) sendSegment(q *queue, s *segment, w *Write) (tried bool, err error) {
	cork := w.Cork && !c.off && s.n == 0 && s.bytes() <= smallWrite
	full := false
	if tried = q == nil && !cork; tried {
		err = c.transmit(s, false)
		if err != errWouldBlock && err != errYield {
			c.lose(s.size())
			release(s.free())
			return true, err
		}
		s.waited, full = true, err == errWouldBlock
	}
	if q == nil {
		q = c.newQueue()
	}
	q.mu.Lock()
	defer q.unlock()
	if w.Deadline != 0 {
		q.deadline = w.Deadline
	}
	if tried {
		q.stall(full)
	}
	wait := tried || q.stalled || cork && q.held+s.bytes() <= highWater
	if q.add(s, wait); wait {
		return tried, nil
	}
	return true, q.send()
}

// enterDisk begins a lease for an operation that may wait for the disk, and
// reports whether it did.
func (c *Conn) enterDisk(disk bool) bool {
	if disk = disk && !c.off && c.lease == 0; disk {
		c.enterLoop()
	}
	return disk
}

// resume sends what the socket accepts of q, as the owner. It may wait for the
// disk, and calls a Holder's Check: without mu, since that is user code. No other
// goroutine sends files, so the first segment stays first meanwhile.
func (c *Conn) resume(q *queue) (err error) {
	disk := c.enterDisk(q.sendsFile())
	returned := false
	defer func() {
		switch {
		case !returned: // Check has ended its goroutine
			q.fail(errChecking)
			c.Abandon()
		case disk:
			c.leaveLoop()
		}
	}()
	if h := q.toCheck(); h != nil {
		err = h.Check()
	}
	if err == nil {
		q.mu.Lock()
		err = q.send()
		q.unlock()
	} else {
		q.fail(err)
	}
	returned = true
	return err
}

// unready is called after the owner has sent: on the loop, ready's state of the
// socket is older than the queue's stall.
func (c *Conn) unready() {
	if q := c.queue.Load(); q != nil && !c.off && c.lease == 0 && q.isStalled() {
		c.ready &^= poll.Writable
	}
}
