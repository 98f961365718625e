package conn

import (
	"net"
	"sync/atomic"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/timer"
)

// Conn is a connection on a loop. See doc.go for who may touch what.
type Conn struct {
	state atomic.Uint32
	fd    int32
	phase phase
	// fresh: no request has come yet.
	fresh bool
	// partial: a head has begun and its time is running.
	partial bool
	// rest: in may begin with a whole request that was not fed.
	rest bool
	// whole is how much of in Serve looks at and consumes when it is done.
	whole int32
	// queued is how much the socket held when the answer stalled.
	queued int32

	loop   *loop.Loop // immutable
	shared *Shared    // immutable
	proto  Proto      // immutable
	peer   string     // immutable
	local  net.Addr   // immutable; shared between connections

	place loop.Place
	node  timer.Node // the loop's
	// deadline is when the present wait of the loop-owned connection ends;
	// the timer may fire earlier and is then armed again, so that a request
	// costs no timer operation.
	deadline int64
	// armedAt is when the timer fires, as the loop left it at the hand-over;
	// read by the handler, which cannot arm.
	armedAt int64

	in  *buf.Buf // received, not consumed; nil when there is nothing
	out *buf.Buf // a reply the socket did not take yet; the loop's
	// held are answers that the next write takes along; see held.go.
	held atomic.Pointer[heldAnswers]
	act  active // what only a running handler needs
}

// Shared is what the connections of a server have in common. It must not be
// copied.
type Shared struct {
	Limits Limits
	Gate   *loop.Gate
}

type phase uint8

const (
	reading phase = iota
	flushing
	sending // see stalled.go
	lingering
	closed
)

// Mail that a Conn understands. Drain, CloseIdle and Kill come from the server,
// by loop.Broadcast or Post, the rest from the connection's handler. CloseIdle
// is Drain for connections without a request; the others go on.
const (
	Drain = iota
	CloseIdle
	Kill
	mailBack
	mailClose
	mailLinger
	mailReset
	mailStalled
	mailHijacked
	mailAdmitted
)

const (
	// readsPerTurn bounds what one connection reads in a turn of its loop.
	readsPerTurn = 16
)

// Start takes over a connected non-blocking socket on l's goroutine. c is
// part of the Proto's own allocation. peer and local are its addresses, as the
// kernel will not tell them any more once it is closed. On an error nothing is
// kept.
func (c *Conn) Start(l *loop.Loop, fd int, peer string, local net.Addr, p Proto, s *Shared) error {
	c.loop, c.fd, c.peer, c.local, c.proto, c.shared = l, int32(fd), peer, local, p, s
	c.fresh = true
	var err error
	if c.place, err = l.Attach(c, fd, &c.node); err != nil {
		return err
	}
	c.wait(after(l.Now(), s.Limits.First))
	return nil
}

// after is now+d, or Never when d is no limit.
func after(now, d int64) int64 {
	if d <= 0 {
		return poll.Never
	}
	return now + d
}

// wait sets the deadline and sees to it that the timer fires by then.
func (c *Conn) wait(deadline int64) {
	c.deadline = deadline
	if deadline != poll.Never && (!c.node.Armed() || c.node.When() > deadline) {
		c.loop.Arm(&c.node, deadline)
	}
}

// Ready implements loop.Sock.
func (c *Conn) Ready(r poll.Ready) {
	old := c.state.Or(stateOf(r))
	switch {
	case old&hijacked != 0:
	case old&owned != 0:
		c.tell(r)
	default:
		c.proceed()
	}
}

// tell informs the handler that owns the connection.
func (c *Conn) tell(r poll.Ready) {
	if r&poll.Readable != 0 {
		c.wake(waitRead)
	}
	if r&poll.Writable != 0 {
		c.wake(waitWrite)
		c.writeHeld()
	}
	if r&poll.Hangup != 0 {
		c.proto.PeerGone(true)
	} else if r&poll.PeerClosed != 0 && c.peerDone() {
		c.proto.PeerGone(false)
	}
}

// peerDone reports whether the peer has closed its side and all it sent has
// been read from the socket.
func (c *Conn) peerDone() bool {
	if c.state.Load()&(peerClosed|hangup) == 0 {
		return false
	}
	n, e := sys.Peek(int(c.fd))
	return n == 0 && !sys.Again(e)
}

// proceed does what the loop-owned connection can do now.
func (c *Conn) proceed() {
	switch c.phase {
	case reading:
		if c.rest {
			c.rest = false
			if c.in != nil && !c.enact(c.feed(nil, false)) {
				return
			}
		}
		c.fill()
	case flushing:
		c.flush()
	case sending:
		c.goOnSending()
	case lingering:
		c.discard()
	}
}

// fill reads and feeds until the socket is drained.
func (c *Conn) fill() {
	for range readsPerTurn {
		if c.state.And(^readable)&readable == 0 {
			return
		}
		p := c.loop.Scratch()
		n, e := c.loop.Poller().Read(int(c.fd), p)
		if e != 0 {
			if !sys.Again(e) {
				c.closeNow()
			}
			return
		}
		c.noteRead(n, len(p))
		if !c.enact(c.feed(p[:n], n == 0)) {
			return
		}
	}
	c.loop.Again(c.place)
}

// noteRead sets readable again when a read may have left something behind: it
// filled its buffer, or the end of the stream comes after it (contract of
// poll.Poller).
func (c *Conn) noteRead(n, size int) {
	if n > 0 && (n == size || c.state.Load()&(peerClosed|hangup) != 0) {
		c.state.Or(readable)
	}
}

// feed hands p, behind what is left from before, to the Proto, and keeps what
// it does not consume.
func (c *Conn) feed(p []byte, eof bool) (Verdict, []byte) {
	if c.in == nil && len(p) > 0 && (!c.loop.Prompt() || c.shared.Limits.Slots != nil) {
		// p would not last until Serve, which may have to wait for a slot.
		c.in = buf.Get(len(p))
	}
	if c.in != nil && len(p) > 0 {
		c.in = c.in.Grow(len(p))
		c.in.B = append(c.in.B, p...)
	}
	if c.in != nil {
		n, v, reply := c.proto.Feed(c.in.B, eof)
		if v == RunWhole {
			c.whole = int32(n)
			return Run, reply
		}
		c.Discard(n)
		return v, reply
	}
	n, v, reply := c.proto.Feed(p, eof)
	if v == RunWhole {
		c.loop.Pin()
		v = Run
	}
	if rest := p[n:]; len(rest) > 0 && (v == More || v == Run) {
		c.in = buf.Get(len(rest))
		c.in.B = append(c.in.B, rest...)
	}
	return v, reply
}

// enact carries out a verdict on the loop and reports whether the loop may go
// on reading.
func (c *Conn) enact(v Verdict, reply []byte) bool {
	switch v {
	case More:
		c.await()
		return true
	case Run:
		c.handOver()
	default:
		c.reply(reply, v)
	}
	return false
}

// await sets the deadline for what comes next.
func (c *Conn) await() {
	if d, ok := c.nextDeadline(c.loop.Now()); ok {
		c.wait(d)
	}
}

// nextDeadline is when the wait that begins now ends; false when an earlier
// one goes on. A head's time runs from its first byte, the first head's from
// the accept.
func (c *Conn) nextDeadline(now int64) (int64, bool) {
	lim := &c.shared.Limits
	switch {
	case c.in == nil && c.fresh:
		return 0, false
	case c.in == nil:
		c.partial = false
		return after(now, lim.Idle), true
	case c.partial:
		return 0, false
	}
	c.partial = true
	d := after(now, lim.Header)
	if c.fresh {
		d = min(d, c.deadline)
	}
	return d, true
}

// handOver makes a handler's goroutine the owner: a pooled one, or for a quick
// handler the loop's own.
func (c *Conn) handOver() {
	c.fresh, c.partial = false, false
	c.lend()
	if s := c.shared.Limits.Slots; s != nil {
		switch s.Enter(c) {
		case Entered:
			c.act.slot = true
		case Queued:
			return
		case Refused:
			c.proto.Refuse()
		}
	}
	if c.proto.Quick() {
		c.loop.Next(c)
	} else {
		c.loop.Go(c)
	}
}

// lend makes the connection its handler's.
func (c *Conn) lend() {
	// The handler may give the connection back idle but cannot arm the timer:
	// it must not fire later than the idle time from now.
	c.wait(after(c.loop.Now(), c.shared.Limits.Idle))
	c.armedAt = poll.Never
	if c.node.Armed() {
		c.armedAt = c.node.When()
	}
	c.act.since = c.loop.Now()
	c.state.Or(owned)
}

// Admitted implements loop.Waiter.
func (c *Conn) Admitted() {
	if !c.loop.Post(c.place, mailAdmitted) {
		c.shared.Limits.Slots.Leave() // the loop has died
	}
}

// Expire implements loop.Sock.
func (c *Conn) Expire() {
	for {
		s := c.state.Load()
		if s&owned == 0 {
			break
		}
		if c.state.CompareAndSwap(s, s|noTimer) {
			return
		}
	}
	switch {
	case c.deadline > c.loop.Now():
		c.wait(c.deadline)
	case c.phase == reading:
		v, reply := c.proto.Expired(c.partial)
		c.reply(reply, v)
	case c.phase == flushing:
		sys.SetReset(int(c.fd))
		c.closeNow()
	case c.phase == sending:
		c.sendingExpired()
	default:
		c.closeNow()
	}
}

// Mail implements loop.Sock.
func (c *Conn) Mail(what int) {
	switch what {
	case Drain:
		c.drain()
	case CloseIdle:
		if c.state.Load()&owned == 0 && c.phase == reading {
			c.drain()
		}
	case Kill:
		c.kill()
	case mailAdmitted:
		c.act.slot = true
		c.loop.Go(c)
	case mailStalled:
		c.stalled()
	case mailHijacked:
		// The owner keeps a duplicate; this descriptor is the loop's to close.
		c.leave()
	default:
		c.takeBack(what)
	}
}

// takeBack makes the loop the owner again, as the handler asked by mail.
func (c *Conn) takeBack(what int) {
	old := c.state.And(^(owned | noTimer))
	if old&shut != 0 {
		c.closeNow()
		return
	}
	switch what {
	case mailClose:
		c.end(Close)
	case mailLinger:
		c.end(Linger)
	case mailReset:
		c.end(Reset)
	case mailBack:
		c.wait(c.deadline)
		if old&draining != 0 && c.in == nil {
			c.drain()
			return
		}
		if c.in == nil || c.enact(c.feed(nil, false)) {
			c.fill()
		}
	}
}
