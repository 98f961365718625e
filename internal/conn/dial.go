package conn

import (
	"errors"
	"syscall"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file is for connections that the server opens, and for two connections of one loop
// that pass bytes to each other.
//
// All calls of both are made on their loop, and no user code that may wait runs in between: so the
// session of one may call the Conn of the other as its own session may, but for what its session's methods
// return. Act stands for that.

// An Out is a Conn that the server has opened, to another server. It is not counted or shown as a
// client's, and does not give way to one.
type Out struct{ Conn }

var _ loop.Sock = (*Out)(nil)

// A Dialled is the Session of an Out.
type Dialled interface {
	Session
	// Connected is called once on the loop, before any other method but Expired and Closed:
	// the socket is connected, or e says why it is not. Then the connection is closed, whatever
	// is returned. With Elsewhere a goroutine has the connection until it switches back: meanwhile
	// only Abort may be called.
	Connected(e sys.Errno) Next
}

// A Duplex is a Session whose Data is called, while Duplex reports true, although the peer accepts
// nothing of what was sent: it may have said something about that. Data is also called when the peer has
// accepted all of it.
type Duplex interface{ Duplex() bool }

// dialled reports whether s waits for a response, and is to be told at once that none will come.
func dialled(s Session) bool {
	_, ok := s.(Dialled)
	return ok
}

// Dial begins to connect, on l's goroutine. o is part of the Session's own allocation. deadline is
// as for SetDeadline: Session.Expired is called if the socket is not connected by then. On an
// error Dial keeps nothing, and calls none of the Session's methods.
func (o *Out) Dial(l *loop.Loop, to *sys.Remote, s Dialled, shared *Shared, deadline int64) sys.Errno {
	fd, e := l.Poller().Connect(to)
	if e != 0 {
		return e
	}
	c := &o.Conn
	c.loop, c.fd, c.session, c.shared, c.phase = l, int32(fd), s, shared, connecting
	c.SetDeadline(deadline)
	var err error
	if c.handle, err = l.Attach(o, fd); err != nil {
		l.Poller().CloseFD(fd)
		if errors.As(err, &e) {
			return e
		}
		return syscall.ENOMEM
	}
	c.arm()
	return 0
}

// Spare implements loop.Spare: it leaves no room for a client.
func (o *Out) Spare() (since int64, ok bool) { return 0, false }

// Quiet reports whether the peer has neither sent anything that was not read, nor ended its
// stream. Only the loop that owns o may call it.
func (o *Out) Quiet() bool {
	if o.Unread() || o.ready&(poll.PeerClosed|poll.Hangup) != 0 {
		return false
	}
	o.loop.Tally.Add(true, tally.Others, 1)
	_, e := o.loop.Poller().Peek(int(o.fd))
	return sys.Again(e)
}

// connected ends the phase connecting if the attempt has ended.
func (c *Conn) connected() (mine bool) {
	if c.ready&(poll.Writable|poll.Hangup) == 0 {
		return true
	}
	c.loop.Tally.Add(true, tally.Others, 1)
	e := c.loop.Poller().SocketError(int(c.fd))
	s := c.session.(Dialled)
	if e != 0 {
		s.Connected(e)
		c.closeNow()
		return true
	}
	c.phase = reading
	if goOn, mine := c.follow(s.Connected(0)); !goOn {
		return mine
	}
	return c.fill()
}

// Abort ends the connection, whoever has it. Only its loop may call it.
func (o *Out) Abort() { o.kill() }

// Unread reports whether the peer may have sent more than Buffered returns: the socket has not been drained, or the
// layer has a part of a record.
func (o *Out) Unread() bool {
	l := o.layer()
	return l != nil && l.raw != nil || o.ready&poll.Readable != 0
}

// LayerError returns what the layer has found at the end of the peer's side, or nil: io.EOF for an
// orderly end, io.ErrUnexpectedEOF for one that anyone on the path may have made.
func (o *Out) LayerError() error {
	l := o.layer()
	if l == nil {
		return nil
	}
	return l.eof
}

// Act does what next says, as after a method of the Session, which is not running. Only the loop
// that owns c may call it. Close and Linger may use the driver's scratch buffer: what another
// connection has Buffered there is lost. next is not one that passes c to a goroutine.
func (c *Conn) Act(next Next) {
	if c.phase < ending {
		c.phase = reading
		if c.act(next) && c.ready&poll.Readable != 0 { // that came while the Session was not to be called
			c.loop.Requeue(c.handle)
		}
	}
}

// Sent is called after a Send by another session than the Conn's own, which is not running: from then
// on the peer has so long to accept it as Limits say. Only the loop that owns c may call it.
func (c *Conn) Sent() {
	switch c.phase {
	case reading:
		c.act(More)
	case awaiting:
		c.act(Await)
	}
}

// Hear has Data called with what the peer has sent, or the connection end: a Send has failed with err,
// and nothing more can be sent.
func (o *Out) Hear(err error) {
	o.hear(err)
	o.loop.Requeue(o.handle)
}

// hear has the socket read after a write has failed with err.
func (c *Conn) hear(err error) {
	c.torn = c.torn || errors.Is(err, syscall.ECONNRESET)
	c.ready |= poll.Readable
}

// GaveUp reports whether the connection has ended because the peer accepted nothing for too long.
func (o *Out) GaveUp() bool { return o.how == Reset }

// Resume ends an Await, and has Data called in another turn. Only the loop that owns c may call it.
func (c *Conn) Resume() {
	if c.phase == awaiting {
		c.phase, c.refeed = reading, true
		c.loop.Requeue(c.handle)
	}
}

// Loop returns the loop that the connection belongs to.
func (c *Conn) Loop() *loop.Loop { return c.loop }
