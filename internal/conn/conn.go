package conn

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// Conn is a Link on a loop. doc.go defines which goroutine may use what.
type Conn struct {
	state atomic.Uint32
	fd    int32
	// phase, ready, how and the flags after them belong to the loop: phase is
	// what a connection that the loop owns is doing, ready what its socket can
	// do, how the way it ends when its queue is empty.
	phase    phase
	ready    poll.Ready
	how      Next
	refeed   bool // Data is to be called with the Buffered bytes
	draining bool // the server is shutting down: no further request after this one
	look     bool // and the socket has not been read since: a request may have arrived before
	// torn, of dialled connections: a write has met a reset, which the system reports once. A read then
	// ends as if the peer had sent FIN. A reset after a FIN is reported as EPIPE.
	torn bool
	// off, borrowed and switched belong to the owner. off: it does not drive the
	// loop; borrowed: in is its driver's scratch buffer; switched: the next Data is
	// a new session's first one.
	off, borrowed, switched bool
	discarded               int32 // bytes, while lingering

	// What sending uses comes first: see websocket.Conn.
	loop  *loop.Loop            // immutable
	queue atomic.Pointer[queue] // nil until something has had to wait
	lease loop.Lease            // of the running user code, if it began on the loop
	waits atomic.Pointer[waits] // nil until user code has waited or set a deadline, or there was a Post
	in    *buf.Buf              // received, not consumed; nil if empty

	session Session // used by the owner; changed with shared.switching held
	shared  *Shared // immutable
	peer    peer.Addr
	local   *net.Addr // immutable; shared between connections; nil if it is not known

	handle loop.Handle // immutable
	// deadline is when the current wait ends, poll.Never for none. The timer may
	// fire earlier and is then armed again, so that a request costs no timer
	// operation.
	deadline int64
}

var _ Link = (*Conn)(nil)

// Shared is what the connections of a server have in common. It must not be
// copied.
type Shared struct {
	Limits Limits
	Gate   *loop.Gate // nil for connections that the server opens

	switching sync.Mutex // see Conn.sessionOf
}

type phase uint8

const (
	reading    phase = iota
	waiting          // for a posted function to return Requeue
	paused           // until the queue has room: neither reads nor calls Data
	awaiting         // until Resume: reads nothing, and calls Data only when the queue has been sent
	connecting       // until the socket is connected
	ending           // sends what is queued, then ends as how says
	lingering        // has sent FIN, discards what comes
	closed
)

// queueStalled is the message that the socket has not accepted what a goroutine other
// than the owner has queued, or may accept more.
type queueStalled struct{}

// readsPerTurn bounds what one connection reads in a turn of its loop. How long it keeps the loop then
// is bounded as a step of the turn is, from the end of the first call of its session on: each may take as long itself.
const readsPerTurn = 16

// Open takes over a connected non-blocking socket on l's goroutine. c is part of
// the Session's own allocation. remote and local are its addresses, since the
// kernel does not report them once the peer has disconnected. deadline is as for
// SetDeadline. On an error Open keeps nothing.
func (c *Conn) Open(
	l *loop.Loop, fd int, remote string, local *net.Addr, s Session, shared *Shared, deadline int64,
) error {
	c.loop, c.fd, c.local, c.session, c.shared = l, int32(fd), local, s, shared
	c.peer.Set(remote)
	c.SetDeadline(deadline)
	var err error
	if c.handle, err = l.Attach(c, fd); err != nil {
		return err
	}
	c.arm()
	l.Tally.Add(true, tally.Accepted, 1)
	return nil
}

// SetPeer sets the address of a peer that Open was given as "", on the loop, before anything but
// the Session knows the connection.
func (c *Conn) SetPeer(text string) { c.peer.Set(text) }

// localAddr returns nil if the address is not known.
func (c *Conn) localAddr() net.Addr {
	if c.local == nil {
		return nil
	}
	return *c.local
}

// SetDeadline implements Link.
func (c *Conn) SetDeadline(ns int64) {
	if c.deadline = ns; ns <= 0 {
		c.deadline = poll.Never
	}
}

// arm makes the timer fire at the deadline, or when the loop gives up on the
// peer, or earlier. Only the loop may call it.
func (c *Conn) arm() {
	due := c.deadline
	if q := c.queue.Load(); q != nil {
		due = min(due, q.giveUp())
	}
	if due != poll.Never {
		c.loop.ArmBy(c.handle, due)
	}
}

// Ready implements loop.Sock: it does what the connection can do now, if the loop owns it.
func (c *Conn) Ready(r poll.Ready) (mine bool) {
	if c.state.Load()&owned != 0 {
		c.state.Or(stateOf(r))
		c.notify(r)
		return true
	}
	c.ready |= r
	switch c.phase {
	case waiting, awaiting:
		if c.ready&poll.Hangup != 0 && !dialled(c.session) {
			c.closeNow() // no response could reach the peer
			return true
		}
	case lingering:
		c.discard()
		return true
	case ending:
		if c.discard(); c.phase == closed {
			return true
		}
	case connecting:
		return c.connected()
	}
	if w := c.waits.Load(); w != nil && len(w.posted) > 0 {
		if goOn, mine := c.deliver(w); !goOn {
			return mine
		}
	}
	if q := c.queue.Load(); q != nil && q.Busy() && q.Waits() {
		if c.ready&(poll.Writable|poll.Hangup) != 0 {
			if goOn, mine := c.sendOn(q); !goOn && !(mine && c.phase == paused) {
				return mine
			}
		} else if !c.readsOn(q) {
			return true
		}
	}
	if c.phase == paused {
		c.resumeReading()
	}
	if c.phase != reading {
		return true
	}
	if c.refeed {
		if c.draining && !c.look && !c.act(c.session.Drain(c.loop.Now())) {
			return true // fill does not come to it while the peer never stops sending
		}
		c.refeed = false
		if goOn, mine := c.advance(false); !goOn {
			return mine
		}
	}
	return c.fill()
}

// collect moves the events that arrived while another goroutine was the owner to ready.
func (c *Conn) collect() {
	c.ready |= poll.Ready(c.state.Load() & events)
	c.state.Store(0)
}

// notify passes events to the goroutine that owns the connection.
func (c *Conn) notify(r poll.Ready) {
	if c.state.Load()&hijacked != 0 {
		return
	}
	if r&poll.Readable != 0 {
		c.wake(waitRead)
	}
	if r&poll.Writable != 0 && !c.wake(waitWrite) {
		c.sendBeside()
	}
	if r&poll.Hangup != 0 {
		c.sessionOf().PeerGone(true)
	} else if l := c.layer(); l != nil {
		if end := l.watch(c, false); end != nil {
			c.sessionOf().PeerGone(IsReset(end))
		}
	} else if r&poll.PeerClosed != 0 && c.peerDone() {
		c.sessionOf().PeerGone(false)
	}
}

// peerDone reports whether the peer has closed its side and all its data has
// been read from the socket.
func (c *Conn) peerDone() bool {
	if c.state.Load()&ended == 0 {
		return false
	}
	n, e := c.loop.Poller().Peek(int(c.fd))
	return n == 0 && !sys.Again(e)
}

// WatchPeer implements Lent. The loop always watches; this finds an end of
// stream that arrived while the request's body was still unread.
func (c *Conn) WatchPeer() (gone bool) {
	if l := c.layer(); l != nil {
		return l.watch(c, true) != nil
	}
	return c.peerDone()
}

// resumeReading ends a pause if the queue is below its low-water mark, also while more
// is to be sent.
func (c *Conn) resumeReading() {
	if c.draining {
		c.act(c.session.Drain(c.loop.Now())) // fill does not come to it
	}
	if c.phase == paused && c.queue.Load().Low() {
		c.phase, c.refeed = reading, true
	}
}

// fill reads and passes the data to the session until the socket is drained.
func (c *Conn) fill() (mine bool) {
	var turn loop.Step
	turn.Next()
	for range readsPerTurn {
		if c.ready&poll.Readable == 0 {
			if c.draining {
				c.act(c.session.Drain(c.loop.Now()))
			}
			return true
		}
		c.look = false
		n, err := c.receive()
		if err != nil {
			switch l := c.layer(); {
			case err == errWouldBlock:
				continue
			case l != nil && l.eof != nil && !dialled(c.session):
				// The error is not the socket's: what is queued may still reach
				// the peer, and so may the layer's report of the error.
				c.act(Close)
			default:
				c.closeNow()
			}
			return true
		}
		if goOn, mine := c.advance(n == 0); !goOn {
			return mine
		}
		if c.ready&poll.Readable != 0 && !turn.Next() {
			break
		}
	}
	c.refeed = c.draining // the session is asked for its Drain: the socket is never drained
	c.loop.Requeue(c.handle)
	return true
}

// advance calls Data and does what it returns. goOn reports that the loop owns
// the connection and may continue to read, mine that the caller still drives
// the loop.
func (c *Conn) advance(eof bool) (goOn, mine bool) {
	next := c.session.Data(eof)
	if eof && next != More && next < Detached {
		c.setReadable() // the end is to be read again, after next
	}
	return c.follow(next)
}

// follow does what a method of the session returned that may have run user
// code. It returns what advance does.
func (c *Conn) follow(next Next) (goOn, mine bool) {
	switch {
	case next == Lost:
		return false, false
	case next == Elsewhere && !c.off:
		c.goElsewhere()
		return false, true
	case next == Detached:
		return false, !c.off // Hijack by user code has given up the loop
	case c.off:
		c.handBack(next)
		return false, false
	}
	return c.act(next), true
}

// act does on the loop what a session has returned, and reports whether the
// loop may continue to read.
func (c *Conn) act(next Next) (goOn bool) {
	c.keep()
	q := c.queue.Load()
	stalled := false
	if q != nil && q.Busy() {
		for q.Shared() && next < Close && q.HasRoom() {
			if n := c.session.Writable(); n != More {
				next = n
			}
		}
		if c.flush(q) != nil && !dialled(c.session) {
			c.closeNow()
			return false
		}
		stalled = q.Waits()
	}
	switch next {
	case More:
		if stalled {
			return c.awaitPeer(q)
		}
		if l := c.layer(); l != nil && c.in == nil {
			l.Idle()
		}
		c.arm()
		return true
	case Requeue, Pause:
		if c.refeed = true; next == Pause {
			c.phase = paused
		}
		if !stalled || c.awaitPeer(q) {
			c.loop.Requeue(c.handle)
		}
	case Await, Wait:
		if c.phase = waiting; next == Await {
			c.phase = awaiting
		}
		if stalled {
			c.awaitPeer(q)
		}
		c.arm()
	default:
		c.end(next)
	}
	return false
}

// awaitPeer waits until the peer accepts more, and reports whether reading
// continues meanwhile.
func (c *Conn) awaitPeer(q *queue) (goOn bool) {
	if !q.Stalled() {
		c.ready |= poll.Writable // it has only yielded to others
	}
	if c.ready&poll.Writable != 0 {
		c.loop.Requeue(c.handle)
	}
	on := c.readsOn(q)
	if !on || q.giveUp() == poll.Never {
		c.patience(q)
	}
	c.arm()
	return on && c.phase == reading
}

// readsOn reports whether Data is called while the peer accepts nothing of q.
func (c *Conn) readsOn(q *queue) bool {
	if q.Shared() {
		return true
	}
	s, ok := c.session.(Duplex)
	return ok && s.Duplex()
}

// sendOn continues with the queue when the socket may accept more, and returns
// what advance does.
func (c *Conn) sendOn(q *queue) (goOn, mine bool) {
	c.ready &^= poll.Writable
	err := c.resume(q)
	next := Requeue // the session may have waited for this
	switch {
	case err != nil:
		next = Close
	case c.phase == ending:
		next = c.how
	case c.phase == waiting:
		next = Wait
	}
	if c.off {
		c.handBack(next) // the disk was slow
		return false, false
	}
	q.Accepted() // or is about to be found to have gone
	switch {
	case err != nil && c.phase < ending && dialled(c.session):
		c.hear(err) // what the peer has said before may say why
		return true, true
	case err != nil:
		c.closeNow()
		return false, true
	case c.phase == ending && q.Waits():
		c.awaitPeer(q)
		return false, true
	case c.phase == ending:
		if next == Close {
			next = Linger // a peer that read its response slowly may still be sending
		}
		c.end(next)
		return false, true
	case c.phase == waiting:
		return c.act(Wait), true
	case q.Shared() || q.Waits():
		return c.act(More), true
	}
	// A Session that awaits Resume is called as well: its peer may have been what it could not send for.
	return c.advance(false)
}
