package stream

import (
	"math"
	"net"
	"time"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
)

// This file runs user code on a connection: alone, on the connection's
// goroutine, or concurrently with others.

// Do implements conn.Link. Package net does not report whether user code has waited.
func (c *Conn) Do(u conn.UserCode) (ran, waited bool) {
	if !c.enter() {
		return false, false
	}
	ran, waited = true, true
	returned := false
	defer exec.Ended(&returned, func(e exec.End) {
		u.Ended(e)
		c.exit() // Run ends the connection after runtime.Goexit
	})
	u.Run()
	returned = true
	c.exit()
	return true, true
}

// Lent implements conn.Link.
func (c *Conn) Lent() conn.Lent { return c }

func (c *Conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = 0
	c.armed = conn.LongAgo // the server's hooks have had the net.Conn
	if c.isKilled() {
		// PeerGone may have been called before there was user code to notify.
		return false
	}
	c.phase = inUse
	return true
}

func (c *Conn) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopWatch()
	c.waits = 0
	if c.phase != hijacked {
		c.phase = resting
		if !c.writeBy.IsZero() {
			c.nc.SetWriteDeadline(time.Time{})
		}
	}
	c.readBy, c.writeBy = time.Time{}, time.Time{}
}

// OnLoop implements conn.Link.
func (c *Conn) OnLoop() bool { return false }

// Yield implements conn.Lent.
func (c *Conn) Yield() {}

// Start implements conn.Link. There is no loop.
func (c *Conn) Start(r conn.Run, h *conn.Here) (kept bool) {
	if h != nil {
		exec.Call(r.Run, r.Ended)
	} else {
		go conn.Beside(c, r)
	}
	return true
}

// Post implements conn.Link: the owner calls f.
func (c *Conn) Post(f func() conn.Next) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posts.Add(f) {
		c.rouse()
	}
}

// WatchPeer implements conn.Lent: a goroutine reads, since only a read can
// detect that the peer has disconnected. What it reads is kept for the next
// request.
func (c *Conn) WatchPeer() (gone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase != inUse:
	case c.peerErr != nil: // found during an earlier request of the same batch
		return true
	default:
		c.phase = watched
		c.setReadDeadline(time.Time{})
		go c.watch()
	}
	return false
}

func (c *Conn) watch() {
	b, err := (*buf.Buf)(nil).ReadMore(readSize, math.MaxInt32, c.read)
	c.mu.Lock()
	if had := c.in; b != nil {
		// A pipelined request. No other goroutine touches in while this watches:
		// the owner calls stopWatch first.
		c.in = b.Prepend(had.Bytes())
		had.Drop()
	}
	gone := err != nil && c.armed != conn.LongAgo // which is stopWatch's
	if gone {
		c.peerErr = err
	}
	if c.phase == watched {
		c.phase = inUse
	}
	c.cond.Broadcast()
	s := c.session
	c.mu.Unlock()
	if gone {
		s.PeerGone(conn.IsReset(err))
	}
}

// stopWatch ends the watch and waits until it has ended. mu is held, and released meanwhile.
func (c *Conn) stopWatch() {
	if c.phase != watched {
		return
	}
	c.setReadDeadline(conn.LongAgo)
	for c.phase == watched {
		c.cond.Wait()
	}
}

// Hijack implements conn.Lent.
func (c *Conn) Hijack() (net.Conn, []byte, error) {
	c.mu.Lock()
	c.stopWatch()
	c.mu.Unlock()
	c.out.Close(true)
	if err := c.out.Carried(); err != nil {
		return nil, nil, err
	}
	c.clock.End()
	c.mu.Lock()
	c.phase = hijacked
	c.nc.SetDeadline(time.Time{})
	c.mu.Unlock()
	c.Gone()
	rest := append([]byte(nil), c.Buffered()...)
	c.Discard(len(rest))
	return bare(c.nc), rest, nil
}
