package conn

import (
	"io"
	"math"
	"net"
	"os"
	"syscall"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// readSize is the smallest buffer that is read into.
const readSize = 4 << 10

// errWouldBlock means that the socket has nothing to read, or no room, now.
var errWouldBlock = outbox.ErrWouldBlock

// Buffered implements Link.
func (c *Conn) Buffered() []byte { return c.in.Bytes() }

// Discard implements Link.
func (c *Conn) Discard(n int) {
	if c.in == nil {
		return // without a write: after Hijack the loop and the session may both be here
	}
	if c.in.B = c.in.B[n:]; len(c.in.B) > 0 {
		return
	}
	if !c.borrowed {
		c.in.Release()
	}
	c.in, c.borrowed = nil, false
}

// keep copies what is left in the driver's scratch buffer, which belongs to the
// driver again when Data has returned.
func (c *Conn) keep() {
	if c.borrowed {
		c.borrowed = false
		c.in = (*buf.Buf)(nil).Prepend(c.in.B)
	}
}

// room ensures that in is a buffer of the connection's own with room for n bytes.
func (c *Conn) room(n int) {
	c.keep()
	c.in = c.in.Room(n)
}

// read is the only function that reads from the socket. It makes another read follow if this one may
// have left something: it filled its buffer, or the end of the stream follows it (contract of
// poll.Poller).
func (c *Conn) read(p []byte) (int, sys.Errno) {
	t, driving := &c.loop.Tally, c.driving()
	t.Add(driving, tally.Reads, 1)
	n, e := c.loop.Poller().Read(int(c.fd), p)
	t.Add(driving, tally.BytesRead, uint64(n))
	if n == 0 && e == 0 && len(p) > 0 && c.torn {
		// RFC 9112 section 8: a body that the connection's end ends is whole unless an error was indicated.
		e = syscall.ECONNRESET
	}
	end := c.state.Load()&ended != 0
	if driving {
		end = c.ready&(poll.PeerClosed|poll.Hangup) != 0
	}
	if n > 0 && (n == len(p) || end) {
		c.setReadable()
	}
	return n, e
}

// Tally implements Link.
func (c *Conn) Tally() *tally.Shard { return &c.loop.Tally }

// driving reports whether the caller, the owner, drives the loop and runs no user code.
func (c *Conn) driving() bool { return !c.off && c.lease == 0 }

// receive reads once for the session, on the loop. n == 0 is the end of the stream.
func (c *Conn) receive() (n int, err error) {
	c.ready &^= poll.Readable
	if l := c.layer(); l != nil {
		n, err = l.receive(c, true)
		if err == io.EOF {
			err = nil
		}
		return n, err
	}
	p := c.loop.Scratch().Whole()
	n, e := c.read(p)
	switch {
	case n > 0 && c.in == nil:
		c.in, c.borrowed = c.loop.Scratch(), true
		c.in.B = p[:n]
	case n > 0:
		c.room(n)
		c.in.B = append(c.in.B, p[:n]...)
	}
	return n, c.sysError("read", e)
}

// takeReadable clears readable before a read; an event after that sets it
// again. It reports whether readable was set.
func (c *Conn) takeReadable() bool {
	if !c.driving() {
		return c.state.And(^readable)&readable != 0
	}
	r := c.ready
	c.ready &^= poll.Readable
	return r&poll.Readable != 0
}

func (c *Conn) setReadable() {
	if c.driving() {
		c.ready |= poll.Readable
	} else {
		c.state.Or(readable)
	}
}

// Unread implements Lent.
func (c *Conn) Unread(p []byte) {
	c.keep()
	c.in = c.in.Prepend(p)
}

// Fill implements Lent.
func (c *Conn) Fill() (err error) {
	if c.layer() != nil {
		_, err = c.await(nil)
		return err
	}
	c.keep()
	c.in, err = c.in.ReadMore(readSize, math.MaxInt32, c.await)
	return err
}

// Read implements Lent.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.in == nil {
		if c.layer() == nil {
			return c.await(p)
		}
		if _, err := c.await(nil); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.in.B)
	c.Discard(n)
	return n, nil
}

// await reads for user code, and waits until there is data.
func (c *Conn) await(p []byte) (int, error) {
	// Under a lease earlier events are with the loop; an attempt is cheaper than
	// checking.
	try := c.lease != 0
	for {
		// Cleared before the attempt: an event after it sets it again.
		s := c.state.And(^readable)
		switch {
		case s&shut != 0:
			return 0, c.failed("read", net.ErrClosed)
		case c.waits.Load().over(waitRead):
			c.state.Or(s & readable)
			return 0, c.failed("read", os.ErrDeadlineExceeded)
		case s&readable != 0 || try:
			try = false
			n, err := c.readPlain(p)
			if err == nil {
				return n, nil
			} else if err != errWouldBlock {
				c.state.Or(readable) // the end remains for Data to find
				return 0, err
			}
		}
		if err := c.sleep(waitRead, readable, c.shared.Limits.ReadStall); err != nil {
			return 0, c.failed("read", err)
		}
	}
}

// readPlain reads once into p, or, if there is a layer, into in.
func (c *Conn) readPlain(p []byte) (int, error) {
	if l := c.layer(); l != nil {
		return l.receive(c, false)
	}
	n, e := c.read(p)
	if n == 0 && e == 0 {
		return 0, io.EOF
	}
	return n, c.sysError("read", e)
}
