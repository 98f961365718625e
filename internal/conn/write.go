package conn

import (
	"math"
	"net"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file writes for user code that may wait for the peer, and for goroutines
// that are not the owner.

// Write implements Link.
func (c *Conn) Write(a, b []byte) error {
	if q := c.queue.Load(); q != nil && q.shared {
		return c.writeShared(q, segment{a: a, b: b})
	}
	s := segment{a: a, b: b}
	for {
		err := c.mayWrite()
		done := false
		if err == nil {
			done, err = c.offer(&s)
		}
		if err == nil && !done {
			err = c.awaitWritable()
		}
		if err != nil {
			c.lose(s.size()) // none of it is queued
		}
		if done || err != nil {
			return err
		}
	}
}

// writeShared is Write on a shared link. What the socket does not accept is
// queued as a whole: what others queue while this waits follows it.
func (c *Conn) writeShared(q *queue, s segment) error {
	if err := c.mayWrite(); err != nil {
		return err
	}
	q.mu.Lock()
	full, err := q.put(s)
	q.unlock()
	for full && err == nil {
		if err = c.awaitWritable(); err == nil {
			err = c.mayWrite()
		}
		if err != nil {
			return err
		}
		q.mu.Lock()
		err = q.send()
		full = q.held > highWater
		q.unlock()
	}
	return err
}

// offer sends what the socket accepts of s, or queues it if it is small.
func (c *Conn) offer(s *segment) (done bool, err error) {
	q := c.queue.Load()
	if q == nil {
		if err := c.transmit(s, false); err != errWouldBlock {
			return true, err
		}
		if s.bytes() > highWater {
			return false, nil
		}
		q = c.newQueue()
	}
	q.mu.Lock()
	defer q.unlock()
	if !q.stalled && len(q.segments) > 0 && q.held+s.bytes() <= highWater {
		q.add(s, false) // one call sends both
		*s = segment{}
		return true, q.send()
	}
	if err := q.send(); err != nil {
		return true, err
	}
	if len(q.segments) == 0 {
		if err := c.transmit(s, false); err != errWouldBlock {
			return true, err
		}
	}
	if q.held+s.bytes() > highWater {
		return false, nil
	}
	q.stall(true)
	q.add(s, true)
	return true, nil
}

// Sent implements Link.
func (c *Conn) Sent() error {
	for q := c.queue.Load(); q != nil; {
		if err := c.mayWrite(); err != nil {
			return err
		}
		q.mu.Lock()
		err := q.send()
		left := len(q.segments)
		q.unlock()
		if err != nil || left == 0 {
			return err
		}
		if err := c.awaitWritable(); err != nil {
			return err
		}
	}
	return nil
}

// awaitWritable waits after a write that the socket did not accept.
func (c *Conn) awaitWritable() error {
	// The bit may be old, from when no goroutine waited for it. After this it is
	// set only by an event newer than the attempt, or by one just before, which
	// costs one more attempt.
	if c.state.And(^writable)&writable != 0 {
		return nil
	}
	for {
		before := c.loop.Poller().Queued(int(c.fd))
		err := c.sleep(waitWrite, writable, c.shared.Limits.WriteStall)
		if err == nil {
			return nil
		}
		// See queue.progress.
		if !c.waits.Load().over(waitWrite) && c.loop.Poller().Queued(int(c.fd)) < before {
			continue
		}
		return c.failed("write", err)
	}
}

// SendFile implements Link.
func (c *Conn) SendFile(f File, offset, n int64) (sent int64, ok bool, err error) {
	if !sys.HaveSendfile || c.layer != nil || c.isShared() {
		return 0, false, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false, nil
	}
	if err := c.Sent(); err != nil {
		return 0, true, err
	}
	for sent < n {
		if err := c.mayWrite(); err != nil {
			return sent, true, err
		}
		var m int
		var e sys.Errno
		ctl := raw.Control(func(fd uintptr) {
			m, e = c.loop.Poller().Sendfile(int(c.fd), int(fd), offset, int(min(n-sent, sendfileMax)))
			c.sent(tally.Sendfiles, m)
		})
		switch {
		case ctl != nil:
			return sent, sent > 0, ctl
		case e == 0 && m == 0:
			return sent, true, nil // the file's end
		case e == 0:
			sent += int64(m)
			if offset >= 0 {
				offset += int64(m)
			}
		case sys.Again(e):
			if err := c.awaitWritable(); err != nil {
				return sent, true, err
			}
		case sent == 0 && sys.CannotSendfile(e):
			return 0, false, nil
		default:
			return sent, true, c.opError("sendfile", e)
		}
	}
	return sent, true, nil
}

// CanRelay implements Link.
func (c *Conn) CanRelay() bool { return sys.HaveSplice && c.layer == nil && !c.isShared() }

// isShared reports whether other goroutines may queue something at any time: then
// nothing may bypass the queue.
func (c *Conn) isShared() bool {
	q := c.queue.Load()
	return q != nil && q.shared
}

// SendRelay implements Link.
func (c *Conn) SendRelay(r *Relay) (sent int, err error) {
	if err := c.Sent(); err != nil {
		return 0, err
	}
	for r.Held() > 0 {
		if err := c.mayWrite(); err != nil {
			return sent, err
		}
		n, e := r.Give(int(c.fd))
		c.sent(tally.Splices, n)
		sent += n
		if e != 0 && !sys.Again(e) {
			return sent, c.opError("splice", e)
		}
		if e != 0 {
			if err := c.awaitWritable(); err != nil {
				return sent, err
			}
		}
	}
	return sent, nil
}

// Share implements Link.
func (c *Conn) Share() {
	q := c.queue.Load()
	if q == nil {
		q = &queue{c: c, giveUp: poll.Never}
		c.queue.Store(q)
	}
	q.mu.Lock()
	defer q.unlock()
	q.shared = true
}

// Queue implements Link.
func (c *Conn) Queue(p []byte) (full bool, err error) {
	q := c.queue.Load()
	q.mu.Lock()
	defer q.unlock()
	if full = q.held > highWater && !q.closed && q.err == nil; full {
		err = ErrFull
	} else {
		full, err = q.put(segment{a: p})
	}
	if full {
		q.owe(highWater / 2)
	}
	return full, err
}

// Offer implements Link.
func (c *Conn) Offer(a, b []byte, limit int) (full bool, err error) {
	q := c.queue.Load()
	q.mu.Lock()
	defer q.unlock()
	if limit < 0 {
		limit = math.MaxInt
	}
	if full = q.held > limit/2 && q.held > limit-len(a)-len(b) && !q.closed && q.err == nil; full {
		err = ErrFull
		q.owe(max(limit/2, limit-len(a)-len(b)))
	} else if _, err = q.put(segment{a: a, b: b}); err == nil && q.held > limit/2 {
		full = true
		q.owe(limit / 2)
	}
	return full, err
}

// put sends or queues s, of which the queue keeps a copy, and reports whether it
// is above its high-water mark. mu is held.
func (q *queue) put(s segment) (full bool, err error) {
	switch {
	case q.closed:
		return false, q.c.failed("write", net.ErrClosed)
	case q.err != nil:
		return false, q.err
	}
	// What has already waited is sent at an event, or in its turn.
	waits := q.blocked.Load()
	if len(q.segments) == 0 && !waits { // usually the socket accepts everything
		err := q.c.transmit(&s, false)
		switch err {
		case nil:
			return false, nil
		case errWouldBlock, errYield:
		default:
			q.err = err
			q.follow.end(s.size())
			return false, err
		}
		s.waited = true
		q.stall(err == errWouldBlock)
		q.add(&s, true)
	} else if q.add(&s, waits); waits {
		return q.held > highWater, nil
	} else if err := q.send(); err != nil {
		return false, err
	}
	if q.stalled {
		q.c.loop.Post(q.c.handle, queueStalled{})
	}
	return q.held > highWater, nil
}

// notifyWritable notifies the session of a shared link that the queue has room
// again, if it must be notified, and returns what is to happen next.
func (c *Conn) notifyWritable(q *queue, next Next) Next {
	for q.shared && next < Close && q.hasRoom() {
		if n := c.session.Writable(); n != More {
			next = n
		}
	}
	return next
}

// owe makes Session.Writable be called when no more than low bytes are held: not
// before what was refused would be accepted, or a Session that tries it again in
// Writable would do so for ever. mu is held.
func (q *queue) owe(low int) {
	low = max(min(low, highWater/2), 0)
	if n := int32(low + 1); q.owed == 0 || n < q.owed {
		q.owed = n
	}
}

// hasRoom reports, once, whether the session must get a Writable.
func (q *queue) hasRoom() bool {
	q.mu.Lock()
	defer q.unlock()
	owed := q.held < int(q.owed)
	if owed {
		q.owed = 0
	}
	return owed
}

// low reports whether the queue is below its low-water mark.
func (q *queue) low() bool {
	q.mu.Lock()
	defer q.unlock()
	return q.held <= highWater/2
}

// after returns now+d, or Never if d is no limit.
func after(now, d int64) int64 {
	if d <= 0 {
		return poll.Never
	}
	return now + d
}
