package conn

import (
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/sys"
)

// waits is the state of user code that waits for the peer, or sets deadlines. It
// is allocated at the first of either, and then stays with the connection.
type waits struct {
	read, write side
	// waited: user code has waited since the last has ended.
	waited atomic.Bool
	// posted are the functions that Ready is to call; used by the loop only.
	posted []func() Next
}

// side is one direction of the waits.
type side struct {
	// ch ends a sleep; capacity 1. It is empty whenever no wait bit is set.
	ch chan struct{}
	// deadline is of sys.Nanotime; 0 means none. Set by any goroutine.
	deadline atomic.Int64
}

func (c *Conn) theWaits() *waits {
	if w := c.waits.Load(); w != nil {
		return w
	}
	w := &waits{read: side{ch: make(chan struct{}, 1)}, write: side{ch: make(chan struct{}, 1)}}
	if !c.waits.CompareAndSwap(nil, w) {
		return c.waits.Load()
	}
	return w
}

// forgetWaits drops the waits of the session before this one: the next may never
// need any. Only the loop may call it, while it owns the connection.
func (c *Conn) forgetWaits() {
	w := c.waits.Load()
	if w != nil && len(w.posted) == 0 && w.read.deadline.Load() == 0 && w.write.deadline.Load() == 0 {
		c.waits.Store(nil)
	}
}

func (w *waits) side(wait uint32) *side {
	if wait == waitRead {
		return &w.read
	}
	return &w.write
}

// over reports whether a side's deadline has passed.
func (w *waits) over(wait uint32) bool {
	if w == nil {
		return false
	}
	dl := w.side(wait).deadline.Load()
	return dl != 0 && sys.Nanotime() >= dl
}

// clear ends the waits of user code, and reports whether there were any. Its deadlines are cleared, but data that it
// has left in q keeps the one for writing.
func (w *waits) clear(q *queue) (waited bool) {
	if w.read.deadline.Load() != 0 {
		w.read.deadline.Store(0)
	}
	if dl := w.write.deadline.Load(); dl != 0 {
		w.write.deadline.Store(0)
		if q != nil {
			q.Limit(dl)
		}
	}
	if waited = w.waited.Load(); waited {
		w.waited.Store(false)
	}
	return waited
}

// sleep waits until an event sets ready, the side's deadline passes, or stall
// nanoseconds go by.
func (c *Conn) sleep(wait, ready uint32, stall int64) error {
	w := c.theWaits()
	s := w.side(wait)
	w.waited.Store(true)
	// First, so that the events that the loop has received are in the state word.
	c.Yield()
	for {
		old := c.state.Load()
		if old&(ready|shut) != 0 {
			return nil
		}
		if c.state.CompareAndSwap(old, old|wait) {
			break
		}
	}
	// After the wait bit: a deadline set before it is read here; one set after
	// it finds the bit and ends this sleep.
	until := int64(0)
	if stall > 0 {
		until = sys.Nanotime() + stall
	}
	until = Earlier(until, s.deadline.Load())
	defer c.loop.Point(c.handle)
	if until == 0 {
		<-s.ch
		return nil
	}
	t := time.NewTimer(time.Duration(until - sys.Nanotime()))
	defer t.Stop()
	select {
	case <-s.ch:
		return nil
	case <-t.C:
	}
	if !c.claim(wait) {
		<-s.ch // another goroutine cleared the bit first and is about to send
		return nil
	}
	// The deadline may have been moved during the sleep; then the wake-up came
	// from SetDeadline. Here it has really passed.
	return os.ErrDeadlineExceeded
}

// SetReadDeadline implements Lent.
func (c *Conn) SetReadDeadline(t time.Time) { c.setDeadline(waitRead, t) }

// SetWriteDeadline implements Lent.
func (c *Conn) SetWriteDeadline(t time.Time) { c.setDeadline(waitWrite, t) }

func (c *Conn) setDeadline(wait uint32, t time.Time) {
	if t.IsZero() && c.waits.Load() == nil {
		return
	}
	c.theWaits().side(wait).deadline.Store(Nanotime(t))
	c.wake(wait) // a sleeper checks the new deadline
}

// Peer implements Link.
func (c *Conn) Peer() peer.Peer { return c.peer.Peer() }

func (c *Conn) opError(op string, e sys.Errno) error {
	return c.failed(op, os.NewSyscallError(op, e))
}

// failed wraps an error as package net does.
func (c *Conn) failed(op string, err error) error {
	network, local := "tcp", c.localAddr()
	if local != nil {
		network = local.Network()
	}
	return &net.OpError{Op: op, Net: network, Source: local, Addr: c.peer.Net(), Err: err}
}
