package stream

import (
	"errors"
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/sys"
)

// This file implements conn.Link, and conn.Lent for user code.

func (c *Conn) Buffered() []byte { return c.in.Bytes() }
func (c *Conn) Discard(n int)    { c.in = c.in.Consume(n) }
func (c *Conn) Unread(p []byte)  { c.in = c.in.Prepend(p) }

func (c *Conn) Fill() error { return c.readMore(c.receive) }

func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.in != nil {
		n := copy(p, c.in.B)
		c.Discard(n)
		return n, nil
	}
	return c.receive(p)
}

// receive is a read of the user code. A deadline that fires too early, because it
// was set for an earlier read, is set again: setting it for each read would cost
// as much as the rest of a read.
func (c *Conn) receive(p []byte) (n int, err error) {
	var stall time.Time
	now := time.Now()
	if d := c.limits.ReadStall; d > 0 {
		stall = now.Add(time.Duration(d))
	}
	for {
		if err := c.beginRead(now, stall); err != nil {
			return 0, err
		}
		n, err = c.read(p)
		if c.came(); n > 0 || err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if now = time.Now(); !c.tooEarly(now, stall) {
			return 0, err
		}
	}
}

// expect begins a read that is to end by then, and came ends it. A Read of TLS does not end at its deadline while it
// sends what TLS itself answers, to a KeyUpdate or by an alert, and the peer accepts nothing: then the connection is
// aborted. mu is held.
func (c *Conn) expect(by time.Time) {
	if _, layered := c.base.(interface{ NetConn() net.Conn }); !layered || by.IsZero() || c.timeless {
		return
	}
	d := max(time.Until(by.Add(conn.LingerFor)), conn.LingerFor)
	if c.late == nil {
		c.late = time.AfterFunc(d, c.abort)
	} else {
		c.late.Reset(d)
	}
}

func (c *Conn) came() {
	if c.late != nil {
		c.late.Stop()
	}
}

// beginRead begins a read. It ensures that a deadline is set that is no later than the user
// code's, and than stall.
func (c *Conn) beginRead(now, stall time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peerErr != nil {
		return c.peerErr
	}
	until := conn.Sooner(stall, c.readBy)
	if c.armed != until && (conn.Sooner(c.armed, until) == until || !c.armed.After(now)) {
		c.setReadDeadline(until)
	}
	c.expect(stall)
	return nil
}

// tooEarly reports whether the deadline that is set has fired, and that of the read
// has not come.
func (c *Conn) tooEarly(now, stall time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until := conn.Sooner(stall, c.readBy)
	// One that is still to come did not fire: other code has the net.Conn too.
	return !c.armed.IsZero() && !c.armed.After(now) && (until.IsZero() || until.After(now))
}

// setReadDeadline sets that of nc. Its error, of a closed connection, is left
// to the read to return. mu is held.
func (c *Conn) setReadDeadline(t time.Time) {
	c.armed = t
	c.timeless = c.nc.SetReadDeadline(t) != nil
}

func (c *Conn) SetReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readBy = t; c.phase == inUse {
		c.setReadDeadline(conn.Sooner(conn.After(c.limits.ReadStall), t))
	}
}

func (c *Conn) SetWriteDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writeBy = t; c.phase == inUse || c.phase == watched {
		c.nc.SetWriteDeadline(t)
	}
}

func (c *Conn) Now() int64 { return sys.Nanotime() }

// SetPeer sets what Peer returns. It is called before Run.
func (c *Conn) SetPeer(text string) {
	p := peer.Parse(text)
	c.peer.Store(&p)
}

// Peer implements conn.Link. Safe for concurrent use.
func (c *Conn) Peer() (p peer.Peer) {
	if known := c.peer.Load(); known != nil {
		p = *known
	}
	return p
}

func (c *Conn) NetConn() net.Conn { return c.base }

func (c *Conn) Switch(s conn.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session = s
}

func (c *Conn) SetLayer(l conn.Layer) error {
	c.out.Carried()
	raw := append([]byte(nil), c.Buffered()...)
	c.Discard(len(raw))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nc, c.raw = l.Conn(c.nc, raw), nil
	return nil
}
