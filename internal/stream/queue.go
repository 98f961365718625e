package stream

import (
	"math"
	"net"
	"sync"

	"github.com/chert-http/chert/internal/conn"
)

// highWater bounds what is queued before Queue reports that it is full, and
// Write waits, in bytes. At half of it Session.Writable is called.
const highWater = 64 << 10

// queue is what a shared link has to send; a goroutine of its own sends it
// while it is not empty. Everything that a shared link sends goes through it.
type queue struct {
	c      *Conn
	shared bool // immutable once others use it; set with c.mu held

	mu      sync.Mutex
	less    *sync.Cond // size has decreased, or the queue has ended
	pending []piece
	size    int  // bytes in memory that are not sent
	full    bool // Session.Writable must be called
	sending chan struct{}
	closed  bool
	err     error
	lost    int64     // queued and not sent
	dropped []dropped // to be notified; not with mu held
}

// piece is a copy of bytes, or data of its holder.
type piece struct {
	p      []byte
	w      conn.Write
	follow conn.Follower // to be notified; nothing to send
}

// dropped is a piece that will not be sent, and the argument of Follower.Sent.
type dropped struct {
	p    piece
	lost int64
}

// bytes is how much is to be sent.
func (p *piece) bytes() int64 { return int64(len(p.p)+len(p.w.A)+len(p.w.B)) + p.w.Len }

func (p *piece) release() {
	if p.w.Holder != nil {
		p.w.Holder.Release()
	}
}

// Share implements conn.Link.
func (c *Conn) Share() {
	c.mu.Lock() // Spare looks
	defer c.mu.Unlock()
	c.queue.shared = true
}

// Queue implements conn.Link.
func (c *Conn) Queue(p []byte) (full bool, err error) {
	q := &c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if full = q.size > highWater && !q.closed && q.err == nil; full {
		err = conn.ErrFull
	} else if err = q.copy(p, nil); err == nil {
		full = q.size > highWater
	}
	q.full = q.full || full
	return full, err
}

// Offer implements conn.Link.
func (c *Conn) Offer(a, b []byte, limit int) (full bool, err error) {
	q := &c.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit < 0 {
		limit = math.MaxInt
	}
	if full = q.size > limit/2 && q.size > limit-len(a)-len(b) && !q.closed && q.err == nil; full {
		err = conn.ErrFull
	} else if err = q.copy(a, b); err == nil {
		full = q.size > limit/2
	}
	q.full = q.full || full
	return full, err
}

// joined is how long a piece may become by others that are added to it.
const joined = 4 << 10

// copy queues copies of a and b, with what was queued before if that is little: frames of
// a few bytes, each a piece and a call of its own, would cost a hundred times their size.
// mu is held.
func (q *queue) copy(a, b []byte) error {
	n := len(a) + len(b)
	if last := len(q.pending) - 1; last >= 0 && !q.closed && q.err == nil {
		// A piece that is being sent is not pending.
		if p := &q.pending[last]; p.p != nil && len(p.p)+n <= joined {
			p.p = append(append(p.p, a...), b...)
			q.size += n
			return nil
		}
	}
	return q.add(piece{p: append(append(make([]byte, 0, n), a...), b...)})
}

// put is Send on a shared link.
func (q *queue) put(w *conn.Write) error {
	if w.Len == 0 || w.Holder == nil {
		if w.Holder != nil {
			defer w.Holder.Release() // when mu is not held
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.copy(w.A, w.B)
	}
	p := piece{w: *w}
	q.mu.Lock()
	err := q.add(p)
	q.mu.Unlock()
	if err != nil {
		p.release()
	}
	return err
}

// write is Write on a shared link: it waits while the queue is above its
// high-water mark.
func (q *queue) write(a, b []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.copy(a, b); err != nil {
		return err
	}
	for q.size > highWater && q.err == nil {
		q.less.Wait()
	}
	return q.err
}

// add queues p. mu is held.
func (q *queue) add(p piece) error {
	err := q.err
	if q.closed && err == nil {
		err = net.ErrClosed
	}
	if err != nil {
		q.lost += p.bytes()
		return err
	}
	q.pending = append(q.pending, p)
	q.size += len(p.p)
	if q.sending == nil {
		q.sending = make(chan struct{})
		go q.send(q.sending)
	}
	return nil
}

// send sends what is pending until there is nothing left.
func (q *queue) send(done chan struct{}) {
	ended := false
	defer func() {
		if !ended { // a Holder's Check has ended its goroutine
			q.sent(0, 0, net.ErrClosed)
		}
		close(done)
	}()
	for {
		q.mu.Lock()
		if len(q.pending) == 0 {
			q.pending, q.sending = nil, nil
			ended = true
			q.mu.Unlock()
			return
		}
		p, lost := q.pending[0], q.lost
		q.pending[0] = piece{}
		q.pending = q.pending[1:]
		q.mu.Unlock()
		if p.follow != nil {
			p.follow.Sent(lost)
			continue
		}
		lost = q.c.lost
		var err error
		if p.w.Holder != nil {
			err = q.c.send(&p.w)
		} else {
			err = q.c.write(p.p, nil)
		}
		q.sent(len(p.p), q.c.lost-lost, err)
	}
}

// low reports whether the queue is below its low-water mark, or has failed. If not,
// Session.Writable is owed, which ends the wait for it.
func (q *queue) low() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	low := q.size <= highWater/2 || q.err != nil
	q.full = q.full || !low
	return low
}

// sent records that n bytes are no longer pending, of which some were lost by an
// error, after which nothing is sent.
func (q *queue) sent(n int, lost int64, err error) {
	q.mu.Lock()
	if q.size -= n; err != nil {
		q.err = err
		q.lost += lost
		q.drop()
	}
	q.less.Broadcast()
	if q.full && q.size <= highWater/2 {
		q.full = false
		q.c.Post(func() conn.Next { return q.c.session.Writable() })
	}
	q.unlock()
	if err != nil {
		q.c.abort()
	}
}

// drop drops everything pending; unlock does the rest. mu is held.
func (q *queue) drop() {
	for _, p := range q.pending {
		q.size -= len(p.p)
		q.lost += p.bytes()
		q.dropped = append(q.dropped, dropped{p, q.lost})
	}
	q.pending = nil
}

// unlock unlocks mu, releases what was dropped, and notifies its Followers.
func (q *queue) unlock() {
	all := q.dropped
	q.dropped = nil
	q.mu.Unlock()
	for _, d := range all {
		if d.p.release(); d.p.follow != nil {
			d.p.follow.Sent(d.lost)
		}
	}
}

// Unsent implements conn.Link.
func (c *Conn) Unsent() (waiting, lost int64) {
	q := &c.queue
	if !q.shared {
		return 0, c.lost
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.pending {
		waiting += q.pending[i].bytes()
	}
	if q.sending != nil {
		waiting++ // at least: something is being sent
	}
	return waiting, q.lost
}

// Follow implements conn.Link.
func (c *Conn) Follow(f conn.Follower) {
	q := &c.queue
	if q.shared {
		q.mu.Lock()
		err := q.add(piece{follow: f})
		q.mu.Unlock()
		if err == nil {
			return
		}
	}
	_, lost := c.Unsent()
	f.Sent(lost)
}

// close ends the queue, with flush after everything has been sent, and returns
// its error.
func (q *queue) close(flush bool) error {
	q.mu.Lock()
	q.closed = true
	if !flush {
		q.drop()
	}
	q.unlock()
	if flush {
		q.wait()
	}
	return q.failure()
}

func (q *queue) failure() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// wait waits until nothing is being sent.
func (q *queue) wait() {
	q.mu.Lock()
	done := q.sending
	q.mu.Unlock()
	if done != nil {
		<-done
	}
}
