package conn

import (
	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// This file is how the loop ends a connection that it owns.

func (c *Conn) drain() {
	old := c.state.Or(draining)
	if old&(owned|hijacked) != 0 || c.phase != reading {
		return
	}
	// A request may have come that nobody has read yet: look once more.
	c.state.Or(readable)
	c.fill()
	if c.phase != reading || c.state.Load()&owned != 0 || c.in != nil {
		return
	}
	if c.fresh {
		c.wait(min(c.deadline, after(c.loop.Now(), int64(DrainNew))))
		return
	}
	c.closeNow()
}

func (c *Conn) kill() {
	old := c.state.Or(shut)
	switch {
	case old&hijacked != 0:
		return
	case old&owned == 0:
		c.closeNow()
		return
	}
	// The handler's calls fail from now on; it closes when it notices.
	sys.CloseBoth(int(c.fd))
	c.wake(waitRead)
	c.wake(waitWrite)
	c.proto.PeerGone(true)
}

// reply writes b on the loop and ends the connection as v says.
func (c *Conn) reply(b []byte, v Verdict) {
	if len(b) == 0 {
		c.end(v)
		return
	}
	n, e := c.loop.Poller().Write2(int(c.fd), b, nil)
	if e != 0 && !sys.Again(e) {
		c.closeNow()
		return
	}
	if n == len(b) {
		c.end(v)
		return
	}
	c.out = buf.Get(len(b) - n)
	c.out.B = append(c.out.B, b[n:]...)
	c.phase = flushing
	c.wait(after(c.loop.Now(), c.shared.Limits.WriteStall))
	if e == 0 {
		// Only after EAGAIN does an event follow (contract of poll.Poller).
		c.state.Or(writable)
		c.flush()
	}
}

// flush writes what is left of a reply until the socket takes no more.
func (c *Conn) flush() {
	for c.state.And(^writable)&writable != 0 {
		n, e := c.loop.Poller().Write2(int(c.fd), c.out.B, nil)
		switch {
		case sys.Again(e):
			return
		case e != 0:
			c.closeNow()
			return
		case n == len(c.out.B):
			c.out.Release()
			c.out = nil
			// Whatever end was asked for: a peer that took its answer slowly
			// may still be sending.
			c.end(Linger)
			return
		}
		c.out.B = c.out.B[n:]
		c.wait(after(c.loop.Now(), c.shared.Limits.WriteStall))
		c.state.Or(writable)
	}
}

// end closes the loop-owned connection, at once or after a linger.
func (c *Conn) end(v Verdict) {
	if v == Reset {
		sys.SetReset(int(c.fd))
	}
	if v != Linger {
		c.closeNow()
		return
	}
	sys.CloseWrite(int(c.fd))
	c.dropBuffers()
	c.phase = lingering
	c.wait(after(c.loop.Now(), int64(LingerFor)))
	c.state.Or(readable)
	c.discard()
}

// discard throws away what a lingering connection still sends.
func (c *Conn) discard() {
	for range readsPerTurn {
		if c.state.And(^readable)&readable == 0 {
			return
		}
		p := c.loop.Scratch()
		n, e := c.loop.Poller().Read(int(c.fd), p)
		if sys.Again(e) {
			return
		}
		if n == 0 || e != 0 {
			c.closeNow()
			return
		}
		c.noteRead(n, len(p))
	}
	c.loop.Again(c.place)
}

// closeNow ends the loop-owned connection.
func (c *Conn) closeNow() {
	if c.phase == closed {
		return
	}
	c.leave()
}

// leave closes the descriptor and forgets the connection.
func (c *Conn) leave() {
	c.phase = closed
	c.loop.Detach(c.place)
	c.loop.Poller().CloseFD(int(c.fd))
	c.dropBuffers()
	c.shared.Gate.Leave(c.peer)
	c.proto.Closed()
}

func (c *Conn) dropBuffers() {
	if c.in != nil {
		c.in.Release()
		c.in = nil
	}
	if c.out != nil {
		c.out.Release()
		c.out = nil
	}
	if h := c.held.Load(); h != nil {
		// An answer had stalled behind it. There is no handler that mu would
		// be for.
		c.held.Store(nil)
		h.drop()
	}
}
