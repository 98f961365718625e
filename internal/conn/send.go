package conn

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file sends for the owner: only write, and the calls of sendfile and
// splice, write to the socket.

// errChecking is the error of a connection whose Holder has ended the goroutine
// that called Check.
var errChecking = errors.New("conn: Check has not returned")

// carrier is a Conn as the Sink of its queue, and of what a lone writer sends.
type carrier Conn

var _ outbox.FileSink = (*carrier)(nil)

func (s *carrier) Push(p, q []byte, more bool) (int, error) {
	c := (*Conn)(s)
	if l := c.layer(); l != nil {
		n, e := l.push(c, p, q)
		if sys.Again(e) && l.sealed != nil {
			return n, outbox.ErrKept
		}
		return n, c.sysError("write", e)
	}
	if len(p)+len(q) == 0 {
		return 0, nil
	}
	n, e := c.write(p, q, more, false)
	return n, c.sysError("write", e)
}

func (s *carrier) PushFile(f *os.File, offset, n int64) (int64, error) {
	c := (*Conn)(s)
	if c.layer() != nil || !sys.HaveSendfile {
		return 0, outbox.ErrCopy
	}
	// Fd, since SyscallConn allocates. It does not change a regular file.
	m, e := c.loop.Poller().Sendfile(int(c.fd), int(f.Fd()), offset, int(n))
	c.sent(tally.Sendfiles, m)
	switch {
	case e == 0 && m == 0:
		return 0, io.ErrUnexpectedEOF // the file has shrunk
	case e != 0 && !sys.Again(e) && sys.CannotSendfile(e):
		return 0, outbox.ErrCopy
	}
	return int64(m), c.sysError("sendfile", e)
}

func (s *carrier) Wake() { s.loop.Post(s.handle, queueStalled{}) }

// write is the only function that writes bytes to the socket. driving: the caller drives the loop, and counting costs
// no locked instruction.
func (c *Conn) write(p, q []byte, more, driving bool) (n int, e sys.Errno) {
	if more && len(q) == 0 {
		n, e = c.loop.Poller().WriteMore(int(c.fd), p)
	} else {
		n, e = c.loop.Poller().Write2(int(c.fd), p, q)
	}
	c.loop.Tally.Add(driving, tally.Writes, 1)
	c.loop.Tally.Add(driving, tally.BytesWritten, uint64(n))
	return n, e
}

// sent counts another system call, which has sent n bytes. Any goroutine calls it.
func (c *Conn) sent(id tally.ID, n int) {
	c.loop.Tally.Add(false, id, 1)
	c.loop.Tally.Add(false, tally.BytesWritten, uint64(n))
}

// sysError returns the error of a system call on the socket, nil for 0.
func (c *Conn) sysError(op string, e sys.Errno) error {
	switch {
	case e == 0:
		return nil
	case sys.Again(e):
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
	if w.Wait != outbox.NoWait {
		return c.sendWaiting(w)
	}
	q := c.queue.Load()
	size := len(w.A) + len(w.B)
	cork := w.Cork && !c.off && w.Len == 0 && size <= outbox.SmallWrite
	sent := 0
	if q == nil && w.Len == 0 && !cork && c.mayWrite() == nil {
		// Usually the socket accepts everything.
		n, e := c.write(w.A, w.B, false, c.driving()) // with a layer there is a queue
		if n == size || e != 0 && !sys.Again(e) {
			outbox.Release(w.Holder) // which w may be a part of
			if e != 0 {
				c.lose(int64(size - n))
				return c.opError("write", e)
			}
			return nil
		}
		sent = n
	}
	if q != nil && cork && q.Join(w) {
		outbox.Release(w.Holder)
		return nil
	}
	s := outbox.Of(w)
	s.Take(sent)
	if err := c.mayWrite(); err != nil {
		c.lose(s.Size())
		outbox.Release(s.Free())
		return err
	}
	disk := c.enterDisk(w.Len > 0)
	tried, err := c.sendSegment(q, &s, w.Deadline, cork)
	if disk {
		c.leaveLoop()
	}
	if tried {
		c.unready()
	}
	return err
}

// sendSegment is Send for s. It reports whether the socket was tried.
func (c *Conn) sendSegment(q *queue, s *outbox.Segment, deadline int64, cork bool) (tried bool, err error) {
	if q == nil && !cork {
		if err = s.Push((*carrier)(c), false, c.off); !outbox.Later(err) {
			c.lose(s.Size())
			outbox.Release(s.Free())
			return true, err
		}
	}
	return c.theQueue().Send(s, deadline, cork, err, c.off)
}

// enterDisk begins a lease for an operation that may wait for the disk, and
// reports whether it did.
func (c *Conn) enterDisk(disk bool) bool {
	if disk = disk && c.driving(); disk {
		c.enterLoop()
	}
	return disk
}

// resume sends what the socket accepts of q, as the owner. It may wait for the
// disk, and calls a Holder's Check: without q's lock, since that is user code. No other
// goroutine sends files, so the first segment stays first meanwhile.
func (c *Conn) resume(q *queue) (err error) {
	file, check := q.FileNext()
	disk := c.enterDisk(file)
	returned := false
	defer func() {
		switch {
		case !returned: // Check has ended its goroutine
			q.Fail(errChecking)
			c.abandon()
		case disk:
			c.leaveLoop()
		}
	}()
	if check != nil {
		err = check.Check()
	}
	if err == nil {
		err = q.Pull(c.off)
	} else {
		q.Fail(err)
	}
	returned = true
	return err
}

// unready is called after the owner has sent: on the loop, ready's state of the
// socket is older than the queue's stall.
func (c *Conn) unready() {
	if q := c.queue.Load(); q != nil && c.driving() && q.Stalled() {
		c.ready &^= poll.Writable
	}
}
