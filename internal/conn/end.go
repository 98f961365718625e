package conn

import (
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is how the loop ends a connection that it owns.

// obey carries out a command that the server has posted.
func (c *Conn) obey(m Command) {
	switch busy := c.state.Load()&owned != 0; {
	case m == Kill:
		c.kill()
	case c.phase >= ending || m == CloseIdle && !busy && c.Out().Blocked():
	case !busy:
		// A request may have arrived that has not been read: read once more.
		c.draining, c.look = true, true
		c.ready |= poll.Readable
		c.loop.Requeue(c.handle)
	case m == Drain:
		c.draining = true
	}
}

// Active reports whether the connection has a request in progress, or a part of one, or
// something to send. Only the loop may call it.
func (c *Conn) Active() bool {
	return c.state.Load()&owned != 0 || c.phase != reading || c.in != nil || c.Out().Waits() ||
		c.session.Since(c.loop.Now()) < 0
}

// Spare implements loop.Spare.
func (c *Conn) Spare() (since int64, ok bool) {
	if c.state.Load() != 0 || c.phase != reading || c.ready&poll.Readable != 0 ||
		c.refeed || c.draining || c.Out().Waits() {
		return 0, false
	}
	now := c.loop.Now()
	if since = c.session.Since(now); since < 0 {
		return 0, false
	}
	if c.in != nil {
		return SpareHead(since, now)
	}
	return since, true
}

// GiveWay implements loop.Spare: it ends the wait. There is no need to linger,
// since everything received has been read.
func (c *Conn) GiveWay() bool {
	c.loop.Tally.Add(true, tally.Others, 1)
	if n, e := c.loop.Poller().Peek(int(c.fd)); n > 0 {
		c.ready |= poll.Readable
		c.loop.Requeue(c.handle)
		return false
	} else if !sys.Again(e) {
		c.closeNow() // the peer has disconnected
		return true
	}
	next := Close
	if c.Out().Shared() {
		next = c.session.Drain(c.loop.Now() - int64(DrainNew))
	} else {
		c.loop.Tally.GivingWay = true
		c.deadline = poll.Never
		next = c.session.Expired()
		c.loop.Tally.GivingWay = false
	}
	c.Discard(len(c.Buffered()))
	if next == Linger {
		next = Close
	}
	c.actOn(next)
	return c.phase == closed
}

func (c *Conn) kill() {
	if c.state.Load()&owned == 0 {
		c.closeNow()
		return
	}
	if c.state.Or(shut)&hijacked != 0 {
		return
	}
	// The user code's calls fail from now on; the owner ends when it notices.
	c.loop.Poller().CloseBoth(int(c.fd))
	c.wake(waitRead)
	c.wake(waitWrite)
	c.sessionOf().PeerGone(true)
}

// end ends the loop-owned connection when all that is queued has been sent.
func (c *Conn) end(how Next) {
	if how == HalfClose {
		how = Close // Drain is called when the socket has been drained: no peer is waited for
	}
	q := c.queue.Load()
	if q != nil && how != Reset && (q.Close(true) || q.layer != nil && q.layer.close(q)) {
		c.phase, c.how = ending, how
		c.awaitPeer(q)
		c.discard()
		return
	}
	if how == Close && (c.in != nil || c.ready&poll.Readable != 0 || c.unread()) {
		// A Close with unread bytes of the client would also send a reset; see
		// Linger.
		how = Linger
	}
	switch how {
	case Reset:
		c.loop.Poller().SetReset(int(c.fd))
		c.closeNow()
	case Linger:
		c.loop.Tally.Add(true, tally.Others, 1)
		c.loop.Poller().CloseWrite(int(c.fd))
		c.dropBuffers()
		c.phase = lingering
		c.deadline = c.loop.Now() + int64(LingerFor)
		c.arm()
		c.ready |= poll.Readable
		c.discard()
	default:
		c.closeNow()
	}
}

// unread reports whether the socket has bytes of the client, of which an event may not have
// told yet: a client that pipelines sends its next request while one is answered, and does not
// know that this is the last.
func (c *Conn) unread() bool {
	c.loop.Tally.Add(true, tally.Others, 1)
	n, _ := c.loop.Poller().Peek(int(c.fd))
	return n > 0
}

// discard discards what the peer of a lingering connection still sends, or of one that is
// ending: the peer may accept the rest of a response only when all that it sends was read.
func (c *Conn) discard() {
	p := c.loop.Scratch().Whole()
	for range readsPerTurn {
		if c.ready&poll.Readable == 0 {
			return
		}
		c.ready &^= poll.Readable
		if int(c.discarded) >= LingerLimit(c.Out().Shared()) && c.ready&poll.Hangup == 0 {
			return // the timer ends it
		}
		n, e := c.read(p)
		if sys.Again(e) {
			return
		}
		if n == 0 && e == 0 && c.phase == ending {
			return // it may still read
		}
		if n == 0 || e != 0 {
			c.closeNow()
			return
		}
		if c.phase == lingering {
			c.discarded += int32(n)
		}
	}
	c.loop.Requeue(c.handle)
}

// closeNow ends the loop-owned connection.
func (c *Conn) closeNow() {
	if c.phase != closed {
		c.leave(false)
	}
}

// leave closes the descriptor and detaches the connection.
func (c *Conn) leave(hijacked bool) {
	c.phase = closed
	c.loop.Detach(c.handle)
	c.dropBuffers() // before: another goroutine may be at the queue
	c.loop.Poller().CloseFD(int(c.fd))
	c.loop.Tally.Add(true, tally.Closes, 1)
	if g := c.shared.Gate; g != nil {
		c.loop.Tally.Add(true, tally.Closed, 1)
		counted := ""
		if g.PerAddr() {
			counted = c.Peer().RemoteAddr
		}
		g.Leave(counted)
	}
	c.session.Closed(hijacked)
}

func (c *Conn) dropBuffers() {
	c.Discard(len(c.Buffered()))
	if q := c.queue.Load(); q != nil {
		q.Drop()
		if q.layer != nil {
			q.layer.drop() // no goroutine sends through a closed queue
		}
	}
}
