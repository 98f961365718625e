package conn

import (
	"time"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// This file passes a connection to user code and takes it back.

// Do implements Link.
func (c *Conn) Do(u UserCode) (ran, waited bool) {
	if !c.off {
		c.enterLoop()
	} else if c.state.Load()&shut != 0 {
		// PeerGone may have been called before there was user code to notify.
		return false, false
	}
	ran = true
	returned := false
	defer exec.Ended(&returned, func(e exec.End) {
		if u.Ended(e); e.Exited() {
			c.abandon()
		} else {
			waited = c.exit()
		}
	})
	u.Run()
	returned = true
	return true, c.exit()
}

// Lent implements Link.
func (c *Conn) Lent() Lent { return c }

// enterLoop costs only a lease: what another owner needs is done when that is lost.
func (c *Conn) enterLoop() {
	if r := c.ready &^ poll.Writable; r != 0 {
		c.state.Or(stateOf(r)) // WatchPeer and reads check there
	}
	c.lease = c.loop.Enter(c)
}

// exit ends user code, and reports whether that has waited for the peer.
func (c *Conn) exit() (waited bool) {
	if l := c.layer(); l != nil {
		l.unwatch()
	}
	if w := c.waits.Load(); w != nil {
		waited = w.clear(c.queue.Load())
	}
	c.leaveLoop()
	return waited
}

func (c *Conn) leaveLoop() {
	if c.lease == 0 {
		return
	}
	t := c.lease
	c.lease = 0
	if c.loop.Leave(t) {
		if c.state.Load() != 0 {
			c.collect()
		}
		return
	}
	c.off = true
	c.Out().PullBeside() // what was corked since the loop was lost
}

// Lost implements loop.Holder: it makes the goroutine that runs the user code the
// owner.
func (c *Conn) Lost(overstayed bool) {
	c.lend()
	c.Out().PullBeside()
	if overstayed {
		c.sessionOf().Late(loop.Overstay)
	}
}

// Lasted implements loop.Holder.
func (c *Conn) Lasted(d time.Duration) { c.session.Late(d) }

// lend prepares the connection for an owner that does not drive the loop.
func (c *Conn) lend() {
	c.state.Or(owned | stateOf(c.ready))
	c.ready = 0
}

// Yield implements Lent.
func (c *Conn) Yield() { c.loop.Yield(c.lease) }

// OnLoop implements Link.
func (c *Conn) OnLoop() bool {
	if c.lease != 0 {
		return c.loop.Held(c.lease)
	}
	return !c.off
}

// goElsewhere passes the connection to a pooled goroutine, which calls the session's Data.
func (c *Conn) goElsewhere() {
	c.keep()
	if q := c.queue.Load(); q != nil {
		c.flush(q) // the peer may wait for it; the next write returns an error
	}
	c.lend()
	c.loop.Go(c)
}

// Run implements loop.Task: it is the body of an owner on a pooled goroutine.
func (c *Conn) Run() {
	c.off = true
	c.handBack(c.session.Data(false))
}

// handBack ends an owner that does not drive the loop, after next: it returns the connection to
// the loop by a message. The caller must not use c afterwards.
func (c *Conn) handBack(next Next) {
	if next == Detached {
		return // Hijack has posted it
	}
	c.keep()
	c.off = false
	c.post(next)
}

func (c *Conn) post(message any) {
	if !c.loop.Post(c.handle, message) {
		// The loop has ended because its poller failed; no other goroutine will close.
		c.loop.Poller().CloseFD(int(c.fd))
	}
}

// abandon ends user code that ends its goroutine, and closes the connection.
func (c *Conn) abandon() {
	c.Yield() // this goroutine drives no loop any more
	if c.state.Load()&hijacked == 0 {
		c.exit()
		c.handBack(Close)
	}
}

// Start implements Link.
func (c *Conn) Start(r Run, h *Here) (kept bool) {
	switch {
	case h != nil && !c.off:
		return c.startHere(r, h)
	case h != nil:
		exec.Call(r.Run, r.Ended)
	case c.off || c.lease != 0:
		c.loop.GoBeside(&beside{c, r})
	default:
		c.loop.Go(&beside{c, r})
	}
	return true
}

// beside is a Run as a task.
type beside struct {
	c *Conn
	r Run
}

func (b *beside) Run() {
	Beside(b.c, b.r)
}

func (c *Conn) startHere(r Run, h *Here) (kept bool) {
	h.c = c
	h.lease = c.loop.Enter(h)
	returned := false
	defer exec.Ended(&returned, func(e exec.End) {
		if r.Ended(e); e.Exited() { // this goroutine drives no loop any more
			h.Yield()
		}
		kept = h.leave(r)
	})
	r.Run()
	returned = true
	return h.leave(r)
}

// leave ends a Run that has begun on the loop.
func (h *Here) leave(r Run) (kept bool) {
	if h.c.loop.Leave(h.lease) {
		return true
	}
	left(h.c, r)
	return false
}

// Here is the place of a Run on the goroutine that drives a loop; see Link.Start.
// The zero value is nowhere.
type Here struct {
	c     *Conn
	lease loop.Lease
}

// Yield comes before a wait of the Run: the loop goes on without it. Safe for
// concurrent use.
func (h *Here) Yield() {
	if h.c != nil {
		h.c.loop.Yield(h.lease)
	}
}

// Held reports whether the Run is on a loop that has not gone on without it.
func (h *Here) Held() bool { return h.c != nil && h.c.loop.Held(h.lease) }

// Lost implements loop.Holder: the next driver goes on with the bytes at hand, which
// are in the buffer of this one.
func (h *Here) Lost(overstayed bool) {
	c := h.c
	c.keep()
	c.refeed = true
	c.ready |= poll.Readable // an end of the stream that Data has been told of
	c.loop.Requeue(c.handle)
	if overstayed {
		c.session.Late(loop.Overstay)
	}
}

// Lasted implements loop.Holder.
func (h *Here) Lasted(d time.Duration) { h.c.session.Late(d) }

// Post implements Link.
func (c *Conn) Post(f func() Next) { c.loop.Post(c.handle, f) }

// Switch implements Link.
func (c *Conn) Switch(s Session) {
	c.shared.switching.Lock()
	defer c.shared.switching.Unlock()
	c.session = s
	c.switched = c.off
}

// sessionOf returns the session to a goroutine that is not the owner.
func (c *Conn) sessionOf() Session {
	c.shared.switching.Lock()
	defer c.shared.switching.Unlock()
	return c.session
}

// Now implements Link.
func (c *Conn) Now() int64 {
	if c.off {
		return sys.Nanotime()
	}
	return c.loop.Now()
}
