package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// This file is what a connection has still to send, and the functions that send
// it: nothing else writes to the socket.
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
	// sendfileMax bounds one sendfile call, so that a deadline or a shutdown is
	// seen while a large file goes to a quick reader.
	sendfileMax = 4 << 20
	// copySize is how much of a file is read at a time where sendfile cannot send
	// it.
	copySize = 32 << 10
)

// errYield says that a file has had its turn.
var errYield = errors.New("conn: others wait")

// errChecking is the error of a connection whose Holder has ended the goroutine
// that called Check.
var errChecking = errors.New("conn: Check has not returned")

// push sends p and then q, through the layer if there is one. more says that other
// bytes follow at once.
func (c *Conn) push(p, q []byte, more bool) (int, sys.Errno) {
	if c.layer != nil {
		return c.layer.push(c, p, q)
	}
	return c.write(p, q, more)
}

// write is the only function that writes bytes to the socket.
func (c *Conn) write(p, q []byte, more bool) (int, sys.Errno) {
	if more && len(q) == 0 {
		return c.loop.Poller().WriteMore(int(c.fd), p)
	}
	return c.loop.Poller().Write2(int(c.fd), p, q)
}

// transmit sends what the socket takes of s. Its error is errWouldBlock, errYield
// or the connection's.
func (c *Conn) transmit(s *segment, more bool) error {
	turn := int64(0)
	for {
		if n := s.bytes(); n > 0 {
			p, q := s.a, s.b
			if s.own != nil {
				if p, q = s.own.B, s.a; len(q) == 0 {
					q = s.b
				}
			}
			m, e := c.push(p, q, more || s.n > 0 || len(p)+len(q) < n)
			s.take(m)
			if e != 0 {
				return c.sendError("write", e)
			}
			continue
		}
		switch {
		case s.n == 0:
			if c.layer != nil {
				if _, e := c.push(nil, nil, false); e != 0 { // what is sealed
					return c.sendError("write", e)
				}
			}
			return nil
		case s.copying || c.layer != nil || !sys.HaveSendfile:
			if err := s.read(); err != nil {
				return err
			}
			continue
		case turn >= sendTurn && !c.off:
			return errYield
		}
		// Fd, since SyscallConn allocates. It leaves a regular file as it is.
		m, e := sys.Sendfile(int(c.fd), int(s.file.Fd()), s.offset, int(min(s.n, sendTurn)))
		switch {
		case e == 0 && m == 0:
			return io.ErrUnexpectedEOF // the file has shrunk
		case e != 0 && !sys.Again(e) && sys.CannotSendfile(e):
			s.copying = true
		case e != 0:
			return c.sendError("sendfile", e)
		}
		s.offset += int64(m)
		s.n -= int64(m)
		turn += int64(m)
	}
}

func (c *Conn) sendError(op string, e sys.Errno) error {
	if sys.Again(e) {
		return errWouldBlock
	}
	return c.opError(op, e)
}

// mayWrite is why nothing can be written any more, or nil.
func (c *Conn) mayWrite() error {
	switch {
	case c.state.Load()&shut != 0:
		return c.failed("write", net.ErrClosed)
	case c.waits.Load().over(waitWrite):
		return c.failed("write", os.ErrDeadlineExceeded)
	}
	return nil
}

// Send implements Link.
func (c *Conn) Send(w *Write) error {
	q := c.queue.Load()
	sent := 0
	if q == nil && w.Len == 0 && (!w.Cork || c.off) && c.mayWrite() == nil {
		// As a rule the socket takes all.
		n, e := c.push(w.A, w.B, false)
		if n == len(w.A)+len(w.B) || e != 0 && !sys.Again(e) {
			lost := int64(len(w.A) + len(w.B) - n)
			release(w.Holder) // which w may be a part of
			if e != 0 {
				c.lose(lost)
				return c.opError("write", e)
			}
			return nil
		}
		sent = n
	}
	if q != nil && w.Cork && w.Len == 0 && !c.off && q.join(w) {
		release(w.Holder)
		return nil
	}
	s := segment{a: w.A, b: w.B, file: w.File, offset: w.Offset, n: w.Len, holder: w.Holder}
	s.take(sent)
	if err := c.mayWrite(); err != nil {
		c.lose(s.size())
		release(s.free())
		return err
	}
	disk := c.enterDisk(s.n > 0)
	tried, err := c.sendSegment(q, &s, w)
	if disk {
		c.leaveLoop()
	}
	if tried {
		c.blocked()
	}
	return err
}

// join adds w to what is corked already, if there is something.
func (q *queue) join(w *Write) (joined bool) {
	n := len(w.A) + len(w.B)
	q.mu.Lock()
	last := len(q.segments) - 1
	if joined = last >= 0 && n <= smallWrite && q.held+n <= highWater && q.err == nil && !q.blocked.Load() && q.segments[last].plain(); joined {
		s := &q.segments[last]
		s.own = s.own.Grow(n)
		s.own.B = append(append(s.own.B, w.A...), w.B...)
		if q.held += n; w.Deadline != 0 {
			q.deadline = w.Deadline
		}
	}
	q.unlock()
	return joined
}

// sendSegment is Send for s, which is w or what the socket has left of it. It
// reports whether the socket was tried.
func (c *Conn) sendSegment(q *queue, s *segment, w *Write) (tried bool, err error) {
	cork := w.Cork && !c.off && s.n == 0 && s.bytes() <= smallWrite
	full := false
	if tried = q == nil && !cork; tried {
		err = c.transmit(s, false)
		if err != errWouldBlock && err != errYield {
			c.lose(s.size())
			release(s.free())
			return true, err
		}
		s.waited, full = true, err == errWouldBlock
	}
	if q == nil {
		q = c.newQueue()
	}
	q.mu.Lock()
	defer q.unlock()
	if w.Deadline != 0 {
		q.deadline = w.Deadline
	}
	if tried {
		q.stall(full)
	}
	wait := tried || q.stalled || cork && q.held+s.bytes() <= highWater
	if q.add(s, wait); wait {
		return tried, nil
	}
	return true, q.send()
}

// enterDisk begins a lease for what may have to wait for the disk, and reports
// whether it has.
func (c *Conn) enterDisk(disk bool) bool {
	if disk = disk && !c.off && c.lease == 0; disk {
		c.enterLoop()
	}
	return disk
}

// resume sends what the socket takes of q, as the owner. It may wait for the disk,
// and calls a Holder's Check: without mu, since that is user code. Nobody else
// sends files, so what is first stays so meanwhile.
func (c *Conn) resume(q *queue) (err error) {
	disk := c.enterDisk(q.sendsFile())
	returned := false
	defer func() {
		switch {
		case !returned: // Check has ended its goroutine
			q.fail(errChecking)
			c.Abandon()
		case disk:
			c.leaveLoop()
		}
	}()
	if h := q.toCheck(); h != nil {
		err = h.Check()
	}
	if err == nil {
		q.mu.Lock()
		err = q.send()
		q.unlock()
	} else {
		q.fail(err)
	}
	returned = true
	return err
}

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

// blocked comes after the owner has sent: on the loop, what ready said of the
// socket is older than the queue's stall.
func (c *Conn) blocked() {
	if q := c.queue.Load(); q != nil && !c.off && c.lease == 0 && q.isStalled() {
		c.ready &^= poll.Writable
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
	c.blocked()
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
