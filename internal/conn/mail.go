package conn

import (
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/tally"
)

// This file handles a connection's timer and its messages.

// Expire implements loop.Sock.
func (c *Conn) Expire() {
	if c.state.Load()&owned != 0 {
		c.expireBeside() // the deadline is armed again when the loop is the owner
		return
	}
	q := c.queue.Load()
	stalled := q != nil && q.Waits()
	now := c.loop.Now()
	if stalled && q.giveUp() <= now {
		if !c.progress(q) {
			id := tally.LateStall
			if q.Overdue(now) {
				id = tally.LateWrite
			}
			c.how = Reset
			c.loop.Tally.Late(true, id)
			c.end(Reset)
			return
		}
		q.Accepted()
		c.awaitPeer(q)
	}
	switch {
	case c.deadline > now:
		c.arm()
		c.peer.Forget() // an idle connection has had time, and another makes it once
	case c.phase == lingering:
		c.closeNow()
	case c.phase == waiting:
		if q != nil { // the deadline is armed again when the wait is over
			c.armBeside(q)
		}
	case c.phase == ending || stalled && !c.readsOn(q):
		// Only the peer is waited for. The next call of the session will be Data.
		c.deadline = poll.Never
		c.arm()
	default:
		c.deadline = poll.Never
		c.actOn(c.session.Expired())
	}
}

// sendBeside is PullBeside on the loop, which then sees to Limits.WriteStall.
func (c *Conn) sendBeside() {
	q := c.queue.Load()
	if q == nil {
		return
	}
	if q.PullBeside() {
		c.patience(q)
		c.armBeside(q)
	} else {
		q.Accepted()
	}
}

// armBeside is arm without the deadline, which is the owner's.
func (c *Conn) armBeside(q *queue) {
	if at := q.giveUp(); at != poll.Never {
		c.loop.ArmBy(c.handle, at)
	}
}

// expireBeside ends the connection if the time of sendBeside has passed.
func (c *Conn) expireBeside() {
	q := c.queue.Load()
	switch {
	case q == nil || !q.Shared() || !q.Waits():
	case q.giveUp() > c.loop.Now():
		c.armBeside(q)
	case c.progress(q):
		c.sendBeside()
	default:
		c.loop.Tally.Late(true, tally.LateStall)
		c.loop.Poller().SetReset(int(c.fd))
		c.kill()
	}
}

// Mail implements loop.Sock.
func (c *Conn) Mail(message any) {
	switch m := message.(type) {
	case Command:
		c.obey(m)
	case Next:
		c.takeBack(m)
	case queueStalled:
		q := c.queue.Load()
		q.Accepted() // an event that was missed, perhaps; see PullBeside
		if c.state.Load()&owned != 0 {
			c.sendBeside()
		} else if c.phase <= ending && q.Waits() {
			c.awaitPeer(q)
		}
	case func() Next:
		// Ready calls it, like a method of the session, since it may run user code.
		w := c.theWaits()
		w.posted = append(w.posted, m)
		if c.state.Load()&owned == 0 { // otherwise takeBack does it
			c.loop.Requeue(c.handle)
		}
	}
}

// deliver calls the posted functions, and returns what advance does. Those that are left
// when its step is over wait for the next turn, and with them all else: there are at most a
// few for each of the connection's streams.
func (c *Conn) deliver(w *waits) (goOn, mine bool) {
	var turn loop.Step
	turn.Next()
	for len(w.posted) > 0 {
		f := w.posted[0]
		w.posted[0] = nil
		w.posted = w.posted[1:]
		next := f()
		if next == Lost || next == Elsewhere || next == Detached || c.off {
			return c.follow(next)
		}
		if goOn := c.actOn(next); !goOn && (c.phase == lingering || c.phase == closed) {
			return false, true
		}
		if len(w.posted) > 0 && !turn.Next() {
			c.loop.Requeue(c.handle)
			return false, true
		}
	}
	w.posted = nil
	return true, true
}

// actOn is act for a result that does not by itself end the phase: a connection
// that ends continues to do so, and one that waits until it is to be requeued.
func (c *Conn) actOn(next Next) (goOn bool) {
	switch {
	case c.phase == ending && next != Reset:
		return false
	case c.phase == waiting && next < Close && next != Requeue:
		next = Wait
	case c.phase == waiting:
		c.phase = reading
	}
	return c.act(next)
}

// takeBack makes the loop the owner again, as the former owner has asked.
func (c *Conn) takeBack(next Next) {
	s := c.state.Load()
	if s&hijacked == 0 {
		c.collect()
	}
	if s&(shut|hijacked) != 0 {
		c.leave(s&hijacked != 0)
		return
	}
	if c.switched {
		c.switched = false
		c.forgetWaits()
	}
	if c.draining { // a request may have arrived that has not been read: read once more
		c.look = true
		c.ready |= poll.Readable
	}
	goOn, _ := c.follow(next)
	if w := c.waits.Load(); goOn && c.ready&poll.Readable != 0 || w != nil && len(w.posted) > 0 {
		c.loop.Requeue(c.handle)
	}
}
