package conn

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// This file is what a connection has still to send.
//
// As long as the socket takes all, there is no queue: Send and Write make one
// system call with the caller's bytes. What the socket does not take is queued,
// and so are corked answers, which leave together with the next one. The owner
// adds to the queue and sends it; while user code owns the connection, the loop
// sends too when the socket takes more, since the user code may be long in
// coming back. So a queue has a lock, which is held for system calls that do not
// wait, and never while its holder sleeps.
type queue struct {
	c        *Conn      // immutable
	mu       sync.Mutex // unlocked by unlock alone
	segments []segment  // in order
	held     int        // bytes in memory in segments
	stalled  bool       // the socket is full; an event will say when it is not
	shared   bool       // see Link.Share; immutable once others use it
	full     bool       // Session.Writable is owed
	closed   bool       // the connection has ended
	outq     int        // what the socket held when it stalled
	deadline int64      // for the peer to take it all, of sys.Nanotime; 0 for none
	err      error      // of the connection, met where nobody could be told
	freed    []Holder   // to be released by unlock
	follow   follow     // who is told what becomes of it
	// blocked: what is queued has had to wait for the peer, or for its turn. It
	// changes with mu held.
	blocked atomic.Bool
	// missed: an event came while another goroutine had mu, which may have met the
	// full socket before it.
	missed atomic.Bool
	// giveUp is when the loop gives up a peer that takes nothing, of sys.Nanotime;
	// poll.Never while it does not wait for one. It is the loop's.
	giveUp int64

	first [1]segment // room for segments
}

const (
	// highWater bounds what a queue takes from a writer that could wait, and
	// what is corked, in bytes. At half of it Session.Writable is called.
	highWater = 64 << 10
	// smallWrite is the most that is copied to join bytes that are queued already.
	smallWrite = 16 << 10
	// sendTurn bounds what of a file a connection sends in one go while others
	// wait, in bytes: nginx's sendfile_max_chunk.
	sendTurn = 2 << 20
	// copyTurn is the same where the file is read, and may be sealed.
	copyTurn = 256 << 10
	// sendfileMax bounds one sendfile call, so that a deadline or a shutdown is
	// seen while a large file goes to a quick reader.
	sendfileMax = 4 << 20
	// copySize is how much of a file is read at a time where sendfile cannot send
	// it.
	copySize = sealMost
)

// toCheck is the holder that is to be asked before sending goes on, or nil.
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

// newQueue gives the connection a queue. It is the owner's.
func (c *Conn) newQueue() *queue {
	q := &queue{c: c, giveUp: poll.Never}
	q.segments = q.first[:0]
	c.queue.Store(q)
	return q
}

// unlock unlocks mu, and then does what must not be done under it.
func (q *queue) unlock() {
	if len(q.freed)+len(q.follow.passed) > 0 {
		q.settle()
	}
	q.mu.Unlock()
	if q.missed.Load() {
		q.seeMissed()
	}
}

// seeMissed has the loop act on an event that has found mu locked.
func (q *queue) seeMissed() {
	if q.missed.Swap(false) {
		q.c.loop.Post(q.c.handle, queueStalled{})
	}
}

// settle releases and tells without mu, which is held again when it returns:
// Release is user code, which may use the connection, and so may Sent be. One
// goroutine at a time tells those who follow, so that they hear of it in order.
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

// add queues s, which is not going to be sent at once if it waits. mu is held.
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

// stall notes whether the socket is full. mu is held.
func (q *queue) stall(full bool) {
	q.blocked.Store(true)
	if q.stalled = full; full {
		q.outq = sys.Queued(int(q.c.fd))
	}
}

// send sends what the socket takes, and keeps the rest. mu is held.
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
		if q.follow.sent += size - s.size(); q.c.layer == nil || err == nil { // what is sealed may still be there
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
	q.segments, q.deadline = q.first[:0], 0
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

// unblock comes when nothing is queued any more. mu is held.
func (q *queue) unblock() {
	if q.blocked.Load() {
		q.blocked.Store(false)
	}
}

// close ends the queue for all but the owner, or opens it again, and reports
// whether something is unsent.
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

// flush sends what is corked. It is the owner's. What has had to wait goes on
// with an event, or here where the events are the owner's.
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

// flushBeside sends what the socket takes of bytes in memory while another
// goroutine is the owner. It does not wait for one that is sending.
func (c *Conn) flushBeside() {
	q := c.queue.Load()
	if q == nil {
		return
	}
	if !q.mu.TryLock() {
		q.missed.Store(true)
		if !q.mu.TryLock() {
			return // unlock sees it
		}
		q.missed.Store(false)
	}
	defer q.unlock()
	if !slices.ContainsFunc(q.segments, func(s segment) bool { return s.n > 0 }) {
		q.send() // the owner hears of an error by its next write
	}
}

// pending reports whether something is unsent.
func (q *queue) pending() bool {
	q.mu.Lock()
	defer q.unlock()
	return len(q.segments) > 0
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

// sendsFile reports whether sending goes on with a file.
func (q *queue) sendsFile() bool {
	q.mu.Lock()
	defer q.unlock()
	return len(q.segments) > 0 && q.segments[0].n > 0
}

// until is when to give up on a peer that takes nothing from now on.
func (q *queue) until(now, stall int64) int64 {
	q.mu.Lock()
	defer q.unlock()
	u := after(now, stall)
	if q.deadline != 0 {
		u = min(u, q.deadline)
	}
	return u
}

// progress reports, when the time of until has come, whether the peer has taken
// something all the same. A socket becomes writable when a third of its buffer is
// free, which may be megabytes: a client that has taken less than that goes on.
func (q *queue) progress() bool {
	q.mu.Lock()
	defer q.unlock()
	before := q.outq
	q.outq = sys.Queued(int(q.c.fd))
	return q.outq < before && (q.deadline == 0 || sys.Nanotime() < q.deadline)
}

// keepDeadline keeps the write deadline of user code that has ended.
func (q *queue) keepDeadline(dl int64) {
	q.mu.Lock()
	defer q.unlock()
	if len(q.segments) > 0 {
		q.deadline = dl
	}
}
