package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// This file is the queue of what a connection has still to send.
//
// While the socket accepts everything, there is no queue: Send and Write make
// one system call with the caller's bytes. What the socket does not accept is
// queued, and so are corked responses, which are sent together with the next
// one. The owner adds to the queue and sends it; while user code owns the
// connection, the loop also sends when the socket accepts more, since the user
// code may take long to return. So a queue has a lock, which is held during
// system calls that do not block, and never while its holder sleeps.
type queue struct {
	c        *Conn      // immutable
	mu       sync.Mutex // unlocked only by unlock
	segments []segment  // in order
	held     int        // bytes in memory in segments
	stalled  bool       // the socket is full; an event will say when it is not
	shared   bool       // see Link.Share; immutable once others use it
	closed   bool       // the connection has ended
	// blocked: what is queued has had to wait for the peer, or for its turn. It
	// changes with mu held.
	blocked atomic.Bool
	// busy: there are segments, an error, or a Writable that is owed. It is set by unlock,
	// so that the loop need not lock mu when it has nothing to do here: what another
	// goroutine has just left reaches it by a message.
	busy atomic.Bool
	// missed: an event arrived while another goroutine held mu, which may have
	// found the socket full before the event.
	missed   atomic.Bool
	outq     int32    // what the socket held when it stalled
	owed     int32    // Session.Writable must be called while held is less; 0: need not
	err      error    // of the connection, found where it could not be returned
	freed    []Holder // to be released by unlock
	follow   follow   // Followers of what is queued
	deadline int64    // for the peer to accept everything, of sys.Nanotime; 0 for none
	// giveUp is when the loop gives up on a peer that accepts nothing, of
	// sys.Nanotime; poll.Never while it does not wait for one. Used by the loop
	// only.
	giveUp int64

	// first is room for segments, so that few responses that are corked or have to
	// wait cost an allocation. Nil on a Link that was shared while it had no queue:
	// there the queue is kept with an idle connection, and usually stays empty.
	first *[1]segment
}

const (
	// highWater bounds what a queue accepts from a writer that can wait, and
	// what is corked, in bytes. At half of it Session.Writable is called.
	highWater = 64 << 10
	// smallWrite is the most that is copied to join bytes that are already queued.
	smallWrite = 16 << 10
	// sendTurn bounds how much of a file a connection sends at a time while
	// others wait, in bytes: nginx's sendfile_max_chunk.
	sendTurn = 2 << 20
	// copyTurn is the same where the file is read, and may be sealed.
	copyTurn = 256 << 10
	// sendfileMax bounds one sendfile call, so that a deadline or a shutdown is
	// noticed while a large file is sent to a quick reader.
	sendfileMax = 4 << 20
	// copySize is how much of a file is read at a time where sendfile cannot send
	// it.
	copySize = sealMost
)

// toCheck returns the holder whose Check is to be called before sending continues, or nil.
func (q *queue) toCheck() Holder {
	q.mu.Lock()
	defer q.unlock()
	if len(q.segments) == 0 || !q.segments[0].waited || q.segments[0].n == 0 {
		return nil
	}
	return q.segments[0].holder
}

// fail drops all that is queued, since nothing can be sent any more.
func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.unlock()
	q.err = err
	q.clear()
}

// newQueue adds a queue to the connection. Only the owner may call it.
func (c *Conn) newQueue() *queue {
	r := &struct {
		queue
		first [1]segment
	}{queue: queue{c: c, giveUp: poll.Never}}
	q := &r.queue
	q.first = &r.first
	q.segments = q.first[:0]
	c.queue.Store(q)
	return q
}

// unlock unlocks mu, and then does what must not be done under it.
func (q *queue) unlock() {
	if busy := len(q.segments) > 0 || q.owed != 0 || q.err != nil; busy != q.busy.Load() {
		q.busy.Store(busy)
	}
	if len(q.freed)+len(q.follow.passed) > 0 {
		q.settle()
	}
	q.mu.Unlock()
	if q.missed.Load() {
		q.seeMissed()
	}
}

// seeMissed makes the loop act on an event that has found mu locked.
func (q *queue) seeMissed() {
	if q.missed.Swap(false) {
		q.c.loop.Post(q.c.handle, queueStalled{})
	}
}

// settle releases Holders and notifies Followers without mu, which is held
// again when it returns: Release and Sent may be user code, which may use the
// connection. One goroutine at a time notifies Followers, so that they are
// called in order.
func (q *queue) settle() {
	w := &q.follow
	for len(q.freed) > 0 || len(w.passed) > 0 && !w.telling {
		var few [2]Holder
		freed := append(few[:0], q.freed...)
		clear(q.freed)
		q.freed = q.freed[:0]
		var passed []mark
		if !w.telling {
			passed, w.passed = w.passed, nil
			w.telling = passed != nil
		}
		q.mu.Unlock()
		for _, h := range freed {
			h.Release()
		}
		for _, m := range passed {
			m.f.Sent(m.lost)
		}
		q.mu.Lock()
		if passed != nil {
			w.telling = false
		}
	}
}

// free leaves h to unlock. mu is held.
func (q *queue) free(h Holder) {
	if h != nil {
		q.freed = append(q.freed, h)
	}
}

func release(h Holder) {
	if h != nil {
		h.Release()
	}
}

// add queues s; waits means that it will not be sent immediately. mu is held.
func (q *queue) add(s *segment, waits bool) {
	i := len(q.segments) - 1
	if i >= 0 && q.segments[i].plain() {
		last := &q.segments[i]
		if n := s.bytes(); s.n == 0 && n <= smallWrite {
			last.append(s.a, s.b)
			q.held += n
			q.free(s.free())
			return
		}
		// One call sends both.
		if len(s.b) > 0 && len(s.a) <= smallWrite {
			last.append(s.a)
			q.held += len(s.a)
			s.a, s.b = s.b, nil
		}
		q.held -= len(last.own.B)
		s.own, q.segments = last.own, q.segments[:i]
	}
	if waits && (s.holder == nil || s.n == 0 && s.bytes() <= smallWrite) {
		q.free(s.absorb())
	}
	q.held += s.bytes()
	q.segments = append(q.segments, *s)
}

// stall records whether the socket is full. mu is held.
func (q *queue) stall(full bool) {
	q.blocked.Store(true)
	if q.stalled = full; full {
		q.outq = int32(q.c.loop.Poller().Queued(int(q.c.fd)))
	}
}

// send sends what the socket accepts, and keeps the rest. mu is held.
func (q *queue) send() error {
	if q.err != nil {
		return q.err
	}
	q.stalled = false
	for len(q.segments) > 0 {
		s := &q.segments[0]
		before, size := s.bytes(), s.size()
		err := q.c.transmit(s, len(q.segments) > 1)
		q.held += s.bytes() - before
		if q.follow.sent += size - s.size(); q.c.layer == nil || err == nil { // sealed bytes may be left
			q.follow.pass()
		}
		switch err {
		case nil:
			q.free(s.free())
			q.segments = q.segments[1:]
			continue
		case errWouldBlock, errYield:
			q.stall(err == errWouldBlock)
			for i := range q.segments {
				if s := &q.segments[i]; s.holder == nil {
					s.absorb()
				}
			}
			s.waited = true
			return nil
		}
		q.err = err
		q.clear()
		return err
	}
	if q.segments = nil; q.first != nil {
		q.segments = q.first[:0]
	}
	q.deadline = 0
	q.unblock()
	return nil
}

// clear drops all that is queued. mu is held.
func (q *queue) clear() {
	q.follow.end(q.size())
	for i := range q.segments {
		q.free(q.segments[i].free())
	}
	q.segments, q.held, q.stalled = nil, 0, false
	q.unblock()
}

// unblock is called when the queue has become empty. mu is held.
func (q *queue) unblock() {
	if q.blocked.Load() {
		q.blocked.Store(false)
	}
}

// close closes the queue for all goroutines but the owner, or opens it again,
// and reports whether something is unsent.
func (q *queue) close(yes bool) (pending bool) {
	q.mu.Lock()
	defer q.unlock()
	q.closed = yes
	return len(q.segments) > 0
}

// drop ends the queue.
func (q *queue) drop() {
	q.mu.Lock()
	defer q.unlock()
	q.closed = true
	q.clear()
}

// flush sends what is corked. Only the owner may call it. What has had to wait
// continues with an event, or here if the events go to the owner.
func (c *Conn) flush(q *queue) error {
	q.mu.Lock()
	switch {
	case len(q.segments) == 0 || q.err != nil:
		defer q.unlock()
		return q.err
	case c.off && (!q.stalled || c.state.Load()&writable != 0):
		q.unlock()
		return c.resume(q)
	}
	if c.off || q.blocked.Load() {
		q.unlock()
		return nil
	}
	err := q.send()
	q.unlock()
	c.unready()
	return err
}

// flushBeside sends what the socket accepts of bytes in memory while another
// goroutine is the owner. It does not wait for one that is sending. It reports whether
// some are left on a shared link, where the owner may wait for them (see Follow), and
// when the loop is to give up on the peer then, having waited since now.
func (c *Conn) flushBeside(now int64) (giveUp int64, left bool) {
	q := c.queue.Load()
	if q == nil {
		return 0, false
	}
	if !q.mu.TryLock() {
		q.missed.Store(true)
		if !q.mu.TryLock() {
			return 0, false // unlock handles it
		}
		q.missed.Store(false)
	}
	defer q.unlock()
	if !slices.ContainsFunc(q.segments, func(s segment) bool { return s.n > 0 }) {
		q.send() // the owner gets an error at its next write
	}
	return q.limit(now), q.shared && len(q.segments) > 0
}

// pending reports whether something is unsent.
func (q *queue) pending() bool {
	q.mu.Lock()
	defer q.unlock()
	return len(q.segments) > 0
}

// sharedWaits is pending for a shared link. Others are not shared.
func (q *queue) sharedWaits() bool {
	q.mu.Lock()
	defer q.unlock()
	return q.shared && len(q.segments) > 0
}

// Stalled implements Link.
func (c *Conn) Stalled() bool {
	q := c.queue.Load()
	return q != nil && q.blocked.Load()
}

func (q *queue) isStalled() bool {
	q.mu.Lock()
	defer q.unlock()
	return q.stalled
}

// sendsFile reports whether a file is to be sent next.
func (q *queue) sendsFile() bool {
	q.mu.Lock()
	defer q.unlock()
	return len(q.segments) > 0 && q.segments[0].n > 0
}

// until returns when to give up on a peer that accepts nothing from now on.
func (q *queue) until(now int64) int64 {
	q.mu.Lock()
	defer q.unlock()
	return q.limit(now)
}

// limit is until with mu held.
func (q *queue) limit(now int64) int64 {
	u := after(now, q.c.shared.Limits.WriteStall)
	if q.deadline != 0 {
		u = min(u, q.deadline)
	}
	return u
}

// progress reports, when the time of until has passed, whether the peer has
// nevertheless accepted something. A socket becomes writable when a third of its
// buffer is free, which may be megabytes: a client that has accepted less than
// that may continue.
func (q *queue) progress() bool {
	q.mu.Lock()
	defer q.unlock()
	before := q.outq
	q.outq = int32(q.c.loop.Poller().Queued(int(q.c.fd)))
	return q.outq < before && (q.deadline == 0 || sys.Nanotime() < q.deadline)
}

// overdue reports whether the deadline has passed.
func (q *queue) overdue() bool {
	q.mu.Lock()
	defer q.unlock()
	return q.deadline != 0 && sys.Nanotime() >= q.deadline
}

// keepDeadline keeps the write deadline of user code that has ended.
func (q *queue) keepDeadline(dl int64) {
	q.mu.Lock()
	defer q.unlock()
	if len(q.segments) > 0 {
		q.deadline = dl
	}
}
