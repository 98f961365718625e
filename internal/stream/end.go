package stream

import (
	"crypto/tls"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
)

// This file ends a connection, for its owner and for others.

// Drain ends the connection if it is idle, and lets it finish its request
// otherwise. An incomplete request must be complete within DrainNew of the first
// Drain, and so must a handshake.
func (c *Conn) Drain() { c.drain(0) }

// drain is Drain as if called ago nanoseconds earlier.
func (c *Conn) drain(ago int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.since == 0
	if first {
		c.since = sys.Nanotime() - ago
	}
	if !c.posts.Any() {
		c.posts.Add(func() conn.Next { return conn.More }) // the owner calls askDrain before it waits
	}
	switch {
	case c.session != nil:
		c.rouse()
	case first && c.phase != lent:
		c.boundReads() // it shakes hands
	}
}

// ReadBy bounds what reads from the net.Conn before Run; zero is no bound but that of Drain.
func (c *Conn) ReadBy(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readBy = t
	c.boundReads()
}

// boundReads sets the deadline of reads before Run. mu is held.
func (c *Conn) boundReads() {
	until := c.readBy
	if c.since != 0 {
		until = conn.Sooner(until, conn.TimeAt(c.since+int64(conn.DrainNew)))
	}
	c.setReadDeadline(until)
}

func (c *Conn) Spare() (since int64, ok bool) {
	c.mu.Lock()
	since, phase, session, shared := c.waits, c.phase, c.session, c.out.Shared()
	ok = c.since == 0 && phase != lent && !c.isKilled() && since != 0
	c.mu.Unlock()
	now := sys.Nanotime()
	switch {
	case !ok || shared && session.Since(now) < 0:
		return 0, false
	case phase == idle:
		return since, true
	}
	return conn.SpareHead(since, now) // of a request or a handshake
}

func (c *Conn) GiveWay() bool {
	_, ok := c.Spare()
	if ok {
		c.drain(int64(conn.DrainNew - drainGrace))
	}
	return ok
}

func (c *Conn) Active() bool {
	c.mu.Lock()
	s, phase, shared := c.session, c.phase, c.out.Shared()
	c.mu.Unlock()
	switch {
	case s == nil:
		return false
	case shared:
		return s.Since(sys.Nanotime()) < 0
	}
	return phase != idle
}

func (c *Conn) CloseIdle() {
	c.mu.Lock()
	phase := c.phase
	c.mu.Unlock()
	if phase == idle {
		c.Drain()
	}
}

func (c *Conn) Kill() {
	c.mu.Lock()
	taken, s, nc := c.phase == hijacked, c.session, c.nc
	if !c.isKilled() {
		close(c.dead)
	}
	c.mu.Unlock()
	if taken {
		return
	}
	if _, secure := c.base.(*tls.Conn); secure {
		c.abort() // a Close of TLS would wait for what a Read sends; see expect
	}
	nc.Close()
	if s != nil {
		s.PeerGone(true)
	}
}

// Close closes a connection that Run is not called for.
func (c *Conn) Close() { c.nc.Close() }

func (c *Conn) isKilled() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// End closes the connection as next requests, after sending what is queued.
func (c *Conn) End(next conn.Next) {
	c.mu.Lock()
	c.posts.Close()
	c.mu.Unlock()
	if next == conn.Close && c.in != nil {
		next = conn.Linger // the peer is likely to send more
	}
	c.in = c.in.Drop()
	switch c.out.Close(true); next {
	case conn.Detached:
	case conn.Reset:
		c.out.Drop()
	default:
		if c.out.Carried(); next == conn.Close && c.unread() {
			next = conn.Linger
		}
	}
	c.point(0)
	c.clock.End()
	switch next {
	case conn.Detached:
		c.session.Closed(true)
		return
	case conn.Linger:
		c.linger(conn.LingerFor)
	case conn.HalfClose:
		c.linger(drainGrace)
	case conn.Reset:
		guard(c.nc, func() error {
			if t, ok := c.below().(interface{ SetLinger(int) error }); ok {
				t.SetLinger(0)
			}
			return c.below().Close()
		})
	}
	c.nc.Close()
	c.endSkip()
	c.out.Carried()
	c.session.Closed(false)
}

// unread does what that of conn.Conn does, below TLS too. What is no socket passes for read.
func (c *Conn) unread() bool {
	n := 0
	guard(c.nc, func() error {
		s, ok := c.below().(syscall.Conn)
		if !ok {
			return nil
		}
		raw, err := s.SyscallConn()
		if err != nil {
			return err
		}
		return raw.Control(func(fd uintptr) { n, _ = sys.Peek(int(fd)) })
	})
	return n > 0
}

// linger sends FIN and reads until the peer has closed too, conn.LingerLimit at most: for a
// time, and for LingerFor once it has sent something.
func (c *Conn) linger(first time.Duration) {
	if CloseWrite(c.nc) != nil {
		return
	}
	// There are connections without deadlines, such as those of SSH.
	late := time.AfterFunc(conn.LingerFor, c.abort)
	defer late.Stop()
	c.endSkip()
	begun := time.Now()
	c.nc.SetReadDeadline(begun.Add(first))
	if c.discard(begun.Add(conn.LingerFor)) {
		return
	}
	rest := time.NewTimer(time.Until(begun.Add(conn.LingerFor)))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-c.dead:
	}
}

// discard reads what the peer still sends, until by once it has sent something. It reports
// whether reading has failed, and returns after conn.LingerLimit.
func (c *Conn) discard(by time.Time) (failed bool) {
	b := buf.Get(readSize)
	defer func() { b.Release() }()
	for discarded := 0; discarded < conn.LingerLimit(c.out.Shared()); {
		n, err := c.read(b.Whole())
		if err != nil {
			return true
		}
		if discarded == 0 {
			c.nc.SetReadDeadline(by)
		}
		if discarded += n; n == readSize {
			b.Release()
			b = buf.Get(discardSize)
		}
	}
	return false
}
