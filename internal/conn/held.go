package conn

import (
	"sync"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/sys"
)

// This file is how the answers of pipelined requests leave in one write.
//
// An answer that was made on the loop is held while more of the client's bytes
// are at hand: the next request may be answered as quickly. Whatever is written
// next takes it along. If the loop is lost meanwhile, since the next handler
// waits or takes long, the loop's next driver writes what is held: a client
// may wait for this answer before it does what the other waits for.

// heldAnswers are answers that are not written yet. It is made with the first one,
// belongs to the owner, and is written under mu, since Lost may come.
type heldAnswers struct {
	mu sync.Mutex
	b  *buf.Buf // nil when all is written
}

// holdMax bounds what is held.
const holdMax = 64 << 10

// WriteLast implements Transport.
func (c *Conn) WriteLast(p []byte) error {
	if c.hold(p) {
		return nil
	}
	return c.Write2(p, nil)
}

// hold keeps a copy of p, the end of an answer, for the next write, and reports
// whether it does.
func (c *Conn) hold(p []byte) bool {
	// The ticket first: without one, a goroutine that the handler has left
	// behind may be reading into in.
	if c.act.ticket.Load() == 0 || c.in == nil || len(c.in.B) == int(c.whole) || len(p) > holdMax {
		return false
	}
	h := c.held.Load()
	if h == nil {
		h = new(heldAnswers)
		c.held.Store(h)
	}
	h.mu.Lock()
	if h.b == nil {
		h.b = buf.Get(max(len(p), readSize))
	}
	if len(h.b.B)+len(p) > holdMax {
		h.mu.Unlock()
		return false
	}
	h.b = h.b.Grow(len(p))
	h.b.B = append(h.b.B, p...)
	h.mu.Unlock()
	return true
}

// Write2 implements Transport.
func (c *Conn) Write2(a, b []byte) error {
	h := c.held.Load()
	if h == nil {
		return c.write2(a, b)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c.held.Store(nil)
	if h.b == nil {
		return c.write2(a, b)
	}
	defer h.drop()
	if len(b) == 0 {
		return c.write2(h.b.B, a)
	}
	h.b = h.b.Grow(len(a))
	h.b.B = append(h.b.B, a...)
	return c.write2(h.b.B, b)
}

// drop releases what is held. mu is held.
func (h *heldAnswers) drop() {
	if h.b != nil {
		h.b.Release()
		h.b = nil
	}
}

// flushHeld writes what is held.
func (c *Conn) flushHeld() error {
	if c.held.Load() == nil {
		return nil
	}
	return c.Write2(nil, nil)
}

// tryHeld writes what the socket takes of what is held, and reports whether
// that was all. Other bytes follow.
func (c *Conn) tryHeld() (all bool, err error) {
	h := c.held.Load()
	if h == nil {
		return true, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.b != nil && len(h.b.B) > 0 {
		if err = c.mayWrite(); err != nil {
			break
		}
		n, e := c.loop.Poller().WriteMore(int(c.fd), h.b.B)
		h.b.B = h.b.B[n:]
		if sys.Again(e) && c.full() {
			return false, nil
		} else if e != 0 && !sys.Again(e) {
			err = c.opError("write", e)
			break
		}
	}
	c.held.Store(nil)
	h.drop()
	return err == nil, err
}

// Lost implements loop.InlineTask.
func (c *Conn) Lost() {
	if !c.act.waited.Load() {
		c.proto.Late() // else it was the handler's own doing, at once
	}
	c.writeHeld()
}

// writeHeld writes what is held as far as the socket takes it. It runs on the
// loop while the connection's owner, whose ticket it was, goes on.
func (c *Conn) writeHeld() {
	h := c.held.Load()
	if h == nil || !h.mu.TryLock() {
		return // nothing is held, or it is being written
	}
	defer h.mu.Unlock()
	if h.b == nil {
		return
	}
	for len(h.b.B) > 0 {
		n, e := c.loop.Poller().Write2(int(c.fd), h.b.B, nil)
		if e != 0 {
			// EAGAIN promises an event, and that comes here again (tell). Of any
			// other the owner will hear too.
			return
		}
		h.b.B = h.b.B[n:]
	}
	h.drop()
}
