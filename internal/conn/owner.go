package conn

import (
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// active is what a connection needs only while a handler owns it.
type active struct {
	read, write side
	// ticket is what the handler holds of its loop's driver. Set by the
	// handler's goroutine before Serve, cleared by whoever hands the loop off.
	ticket atomic.Uint64
	// since is when the loop handed over; the handler's goroutine reads it.
	since int64
	// waited: Serve has waited for the peer.
	waited atomic.Bool
	// slot: the owner has one of Limits.Slots.
	slot bool
}

// side is one direction of a running handler's waits.
type side struct {
	// ch ends a sleep; capacity 1. It is there while a wait bit is set, and is
	// empty whenever none is. Made by the handler's goroutine.
	ch chan struct{}
	// deadline is of sys.Nanotime; 0 is none. Set by any goroutine.
	deadline atomic.Int64
}

// leaveSlot ends what a handler had, as a rule nothing, and reports whether it
// was one of Slots.
func (c *Conn) leaveSlot() bool {
	c.act.read.clear()
	c.act.write.clear()
	return c.leaveSlotOnly()
}

// leaveSlotOnly keeps the deadlines, for an answer that goes on.
func (c *Conn) leaveSlotOnly() bool {
	a := &c.act
	if !a.slot {
		return false
	}
	a.slot = false
	c.shared.Limits.Slots.Leave()
	return true
}

func (s *side) clear() {
	if s.ch != nil {
		s.ch = nil
	}
	if s.deadline.Load() != 0 {
		s.deadline.Store(0)
	}
}

// over reports whether the side's deadline has passed.
func (s *side) over() bool {
	dl := s.deadline.Load()
	return dl != 0 && sys.Nanotime() >= dl
}

// readSize is the least room a handler's goroutine reads into.
const readSize = 4 << 10

const (
	// batch bounds the pipelined requests that are served on the loop in one
	// go; slice, in nanoseconds, is the default of Limits.Slice.
	batch = 64
	slice = int64(200 * time.Microsecond)
)

// Run implements loop.Task: it is the owner's life, on a pooled goroutine or on
// the loop's driver. It serves the request at hand and those that have come
// meanwhile, and ends by giving the connection back.
func (c *Conn) Run(t loop.Ticket) bool {
	settled := false
	l := c.loop
	defer func() {
		// A handler that ends its goroutine (runtime.Goexit) ends here.
		if settled {
			return
		}
		if c.state.Load()&hijacked == 0 {
			c.flushHeld()
			c.giveBack(mailClose)
		}
		l.HandOff(t)
	}()
	began := int64(0)
	for n := 1; ; n++ {
		// One that was refused has no slot; what comes behind it must ask for
		// one as any other.
		refused := c.shared.Limits.Slots != nil && !c.act.slot
		v := c.serve(t)
		if v == Stalled {
			settled = true
			if l.Leave(t) {
				c.stalled()
				return true
			}
			c.post(mailStalled)
			return false
		}
		var reply []byte
		if t != 0 {
			if v == More && c.in != nil && !refused && c.goOn(n, &began) {
				if v, reply = c.feed(nil, false); v == Run {
					c.partial = false
					if c.proto.Quick() {
						if t = l.Renew(t); t != 0 {
							continue
						}
					}
				}
			}
			if v != Detached && c.flushHeld() != nil {
				v, reply = Close, nil
			}
			if t != 0 && l.Leave(t) {
				settled = true
				c.back(v, reply)
				return true
			}
			t = 0
		}
		if s := c.shared.Limits.Slots; v == More && (refused || n%batch == 0 && s != nil && s.Crowded()) {
			// Nor must a client that sends without end keep its slot so long.
			if d, ok := c.nextDeadline(sys.Nanotime()); ok {
				c.deadline = d
			}
			c.giveBack(mailBack)
			settled = true
			return false
		}
		if v == More {
			v, reply = c.next()
		}
		if len(reply) > 0 && c.Write2(reply, nil) != nil {
			v = Close
		}
		switch v {
		case Run:
			continue
		case More, Detached: // already given back or away
		default:
			c.giveBack(c.endMail(v))
		}
		settled = true
		return false
	}
}

// goOn reports whether the next pipelined request may be served on the loop in
// the same go, as number n+1. began is when the second was.
func (c *Conn) goOn(n int, began *int64) bool {
	if n >= batch {
		return false
	}
	now := sys.Nanotime()
	if *began == 0 {
		*began = now
	}
	most := c.shared.Limits.Slice
	if most == 0 {
		most = slice
	}
	return now-*began < most
}

// serve answers one request.
func (c *Conn) serve(t loop.Ticket) Verdict {
	if c.state.Load()&shut != 0 {
		// PeerGone may have come before Feed made a request that it could
		// tell: a handler that waits for its context would wait for ever.
		return Close
	}
	c.act.ticket.Store(uint64(t))
	c.act.waited.Store(false)
	v := c.proto.Serve()
	if n := c.whole; n > 0 {
		c.whole = 0
		c.Discard(int(n))
	}
	return v
}

// back makes the loop the owner again after a request that was served on it.
// It runs on the loop. v and reply are what is to be done, as of Feed.
func (c *Conn) back(v Verdict, reply []byte) {
	if v == Run {
		c.loop.Go(c)
		return
	}
	c.leaveSlot()
	if v != More && v != Reset && c.endMail(v) == mailLinger {
		v = Linger
	}
	old := c.state.And(^(owned | noTimer))
	switch {
	case old&shut != 0:
		c.closeNow()
	case v != More:
		c.reply(reply, v)
	case old&draining != 0 && c.in == nil:
		c.drain()
	default:
		c.await()
		c.rest = c.in != nil
		if c.rest || old&readable != 0 {
			// Not at once: others wait.
			c.loop.Again(c.place)
		}
	}
}

// endMail is what to tell the loop for a verdict that ends the connection.
func (c *Conn) endMail(v Verdict) int {
	switch {
	case v == Reset:
		return mailReset
	case v == Linger || c.in != nil || c.state.Load()&readable != 0:
		// A Close over bytes that the client has sent and nobody has read
		// would be a reset too; see Linger.
		return mailLinger
	}
	return mailClose
}

// next looks for another request after one was served: in the bytes at hand,
// then in the socket if it may have some. Run means there is one, More that
// the connection was given back to the loop, the rest are ends.
func (c *Conn) next() (Verdict, []byte) {
	eof := false
	for {
		if c.state.Load()&shut != 0 {
			return Close, nil
		}
		if c.in != nil || eof {
			v, reply := c.feed(nil, eof)
			if v == Run {
				c.partial = false
			}
			if v != More {
				return v, reply
			}
		}
		if c.release() {
			return More, nil
		}
		n, v := c.readOn()
		if v != More {
			return v, nil
		}
		eof = n == 0
	}
}

// release makes the loop the owner again unless an event has come that the
// handler must act on first.
func (c *Conn) release() bool {
	now := sys.Nanotime()
	if d, ok := c.nextDeadline(now); ok {
		c.deadline = d
	}
	// Before: the loop may hand the connection over again at once.
	slot := c.leaveSlot()
	for {
		s := c.state.Load()
		if s&(readable|shut) != 0 && !slot {
			return false
		}
		if s&(readable|shut|noTimer|draining|hangup) != 0 || c.deadline < c.armedAt {
			// The loop has something to do about it, or knows how to get a slot.
			c.giveBack(mailBack)
			return true
		}
		if c.state.CompareAndSwap(s, s&^owned) {
			return true
		}
	}
}

// readOn reads what the loop would have read, into in. n == 0 with More is
// the end of the stream.
func (c *Conn) readOn() (n int, v Verdict) {
	c.state.And(^readable)
	if c.in == nil {
		c.in = buf.Get(readSize)
	}
	c.in = c.in.Grow(readSize)
	have := len(c.in.B)
	n, e := c.loop.Poller().Read(int(c.fd), c.in.B[have:cap(c.in.B)])
	if e != 0 && !sys.Again(e) {
		return 0, Close
	}
	c.noteRead(n, cap(c.in.B)-have)
	c.in.B = c.in.B[:have+n]
	if len(c.in.B) == 0 {
		c.in.Release()
		c.in = nil
	}
	if e != 0 {
		return -1, More // spurious
	}
	return n, More
}

// giveBack hands the connection to the loop by mail. The caller must not touch
// c afterwards.
func (c *Conn) giveBack(what int) {
	c.leaveSlot()
	c.post(what)
}

// post is giveBack for an answer that goes on.
func (c *Conn) post(what int) {
	if !c.loop.Post(c.place, what) {
		// The loop died with its poller; nobody else will close.
		sys.Close(int(c.fd))
	}
}

// letGo gives the loop to another driver, if Serve runs on the loop's own,
// since it is about to wait for the peer.
func (c *Conn) letGo() {
	c.act.waited.Store(true)
	if t := c.act.ticket.Swap(0); t != 0 {
		c.loop.HandOff(loop.Ticket(t))
	}
}

// Now implements Transport. A quick handler on the loop has the loop's time.
func (c *Conn) Now() int64 {
	if t := c.act.ticket.Load(); t != 0 && c.loop.Held(loop.Ticket(t)) {
		return c.act.since
	}
	return sys.Nanotime()
}

// Outcome implements Transport.
func (c *Conn) Outcome() Outcome {
	t := c.act.ticket.Load()
	switch {
	case c.act.waited.Load():
		return Waited
	case t == 0:
		return RanPooled
	case !c.loop.Held(loop.Ticket(t)):
		return Overstayed
	}
	return RanInline
}
