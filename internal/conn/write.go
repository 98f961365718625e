package conn

import (
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file writes for user code that may wait for the peer, and for goroutines
// that are not the owner.

// sendfileMax bounds one sendfile call, so that a deadline or a shutdown is
// noticed while a large file is sent to a quick reader.
const sendfileMax = 4 << 20

// sendWaiting is Send of what may wait for the peer.
func (c *Conn) sendWaiting(w *Write) error {
	if len(w.A)+len(w.B) > 0 {
		if err := c.sendToRoom(w); err != nil {
			return err
		}
	}
	if w.Wait == outbox.ForAll {
		return c.awaitSent()
	}
	return nil
}

// sendToRoom waits while the queue is above its high-water mark.
func (c *Conn) sendToRoom(w *Write) error {
	if q := c.queue.Load(); c.Out().Shared() {
		// What the socket does not accept is queued as a whole: what others queue while this
		// waits follows it.
		err := c.mayWrite()
		if err == nil {
			_, err = q.Offer(w.A, w.B, -1)
		}
		if err == nil && q.Above() {
			err = c.pull(q, q.Above)
		}
		return err
	}
	s := outbox.Of(w)
	err := c.writing(func() (full bool, err error) {
		done, err := c.try(&s)
		return !done, err
	})
	if err != nil {
		c.lose(s.Size()) // none of it is queued
	}
	return err
}

// writing calls f, and waits for the peer and calls it again as long as it reports that the socket is full.
func (c *Conn) writing(f func() (full bool, err error)) error {
	for {
		if err := c.mayWrite(); err != nil {
			return err
		}
		if full, err := f(); err != nil || !full {
			return err
		}
		if err := c.awaitWritable(); err != nil {
			return err
		}
	}
}

// try sends what the socket accepts of s, or queues the rest if it is small.
func (c *Conn) try(s *outbox.Segment) (done bool, err error) {
	q := c.queue.Load()
	if q == nil {
		if err := s.Push((*carrier)(c), false, c.off); !outbox.Later(err) {
			return true, err
		}
		if s.Size() > outbox.HighWater {
			return false, nil
		}
		q = c.newQueue(nil)
	}
	return q.Try(s, true) // see pull
}

// pull sends what is queued, and waits for the peer while more reports that there is more. Files are
// sent whole: after one that has only yielded to others no event may come.
func (c *Conn) pull(q *queue, more func() bool) error {
	return c.writing(func() (full bool, err error) {
		err = q.Pull(true)
		return err == nil && more(), err
	})
}

// awaitSent waits until nothing is queued.
func (c *Conn) awaitSent() error {
	q := c.queue.Load()
	if q == nil {
		return nil
	}
	return c.pull(q, q.Waits)
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
		// See progress.
		if !c.waits.Load().over(waitWrite) && c.loop.Poller().Queued(int(c.fd)) < before {
			continue
		}
		return c.failed("write", err)
	}
}

// SendFile implements Lent.
func (c *Conn) SendFile(f File, offset, n int64) (sent int64, ok bool, err error) {
	if !sys.HaveSendfile || c.layer() != nil || c.Out().Shared() {
		return 0, false, nil
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false, nil
	}
	if err := c.awaitSent(); err != nil {
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

// CanRelay implements Lent.
func (c *Conn) CanRelay() bool { return sys.HaveSplice && c.layer() == nil && !c.Out().Shared() }

// SendRelay implements Lent.
func (c *Conn) SendRelay(r *Relay) (sent int, err error) {
	if err := c.awaitSent(); err != nil {
		return 0, err
	}
	for err == nil && r.Held() > 0 {
		err = c.writing(func() (full bool, err error) {
			n, e := r.Give(int(c.fd))
			c.sent(tally.Splices, n)
			sent += n
			if full = sys.Again(e); e != 0 && !full {
				err = c.opError("splice", e)
			}
			return full, err
		})
	}
	return sent, err
}

// Share implements Link.
func (c *Conn) Share() { c.theQueue().Share() }
