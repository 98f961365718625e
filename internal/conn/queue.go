package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"

	"github.com/chert-http/chert/internal/buf"
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
	mu       sync.Mutex
	segments []segment // in order
	held     int       // bytes in memory in segments
	stalled  bool      // the socket is full; an event will say when it is not
	shared   bool      // see Link.Share; immutable once others use it
	full     bool      // Session.Writable is owed
	closed   bool      // the connection has ended
	outq     int       // what the socket held when it stalled
	deadline int64     // for the peer to take it all, of sys.Nanotime; 0 for none
	err      error     // of the connection, met where nobody could be told
	follow   follow    // who is told what becomes of it
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

// segment is a part of a queue: bytes of its own, then a holder's bytes, then a
// part of a file.
type segment struct {
	own     *buf.Buf
	a, b    []byte
	file    *os.File
	offset  int64
	n       int64
	copying bool // sendfile cannot send the file
	waited  bool // it has had to wait for the peer
	holder  Holder
}

func (s *segment) bytes() int {
	n := len(s.a) + len(s.b)
	if s.own != nil {
		n += len(s.own.B)
	}
	return n
}

// take removes n bytes that have been sent.
func (s *segment) take(n int) {
	if s.own != nil {
		k := min(n, len(s.own.B))
		s.own.B = s.own.B[k:]
		if n -= k; len(s.own.B) == 0 {
			s.own.Release()
			s.own = nil
		}
	}
	k := min(n, len(s.a))
	s.a, s.b = s.a[k:], s.b[n-k:]
}

// append adds copies of p to the segment's own bytes.
func (s *segment) append(p ...[]byte) {
	n := 0
	for _, p := range p {
		n += len(p)
	}
	if n == 0 {
		return
	}
	if s.own == nil {
		s.own = buf.Get(max(n, readSize))
	}
	s.own = s.own.Grow(n)
	for _, p := range p {
		s.own.B = append(s.own.B, p...)
	}
}

// absorb copies the bytes that are not the segment's own, and releases their
// holder if it does not hold a file too.
func (s *segment) absorb() {
	s.append(s.a, s.b)
	if s.a, s.b = nil, nil; s.n == 0 && s.holder != nil {
		s.holder.Release()
		s.holder = nil
	}
}

func (s *segment) release() {
	if s.own != nil {
		s.own.Release()
	}
	if s.holder != nil {
		s.holder.Release()
	}
	*s = segment{}
}

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

// read makes the next piece of the file the segment's own bytes.
func (s *segment) read() error {
	s.own = buf.Get(int(min(s.n, copySize)))
	n, err := s.file.ReadAt(s.own.B[:min(int64(s.own.Cap()), s.n, copySize)], s.offset)
	if n == 0 {
		s.own.Release()
		if s.own = nil; err == nil {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	s.own.B = s.own.B[:n]
	s.offset += int64(n)
	s.n -= int64(n)
	return nil
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
			if w.Holder != nil {
				w.Holder.Release()
			}
			if e != 0 {
				c.lose(int64(len(w.A) + len(w.B) - n))
				return c.opError("write", e)
			}
			return nil
		}
		sent = n
	}
	s := segment{a: w.A, b: w.B, file: w.File, offset: w.Offset, n: w.Len, holder: w.Holder}
	s.take(sent)
	if err := c.mayWrite(); err != nil {
		c.lose(s.size())
		s.release()
		return err
	}
	cork := w.Cork && !c.off && s.n == 0 && s.bytes() <= smallWrite
	if q == nil && !cork {
		disk := c.enterDisk(s.n > 0)
		err := c.transmit(&s, false)
		if disk {
			c.leaveLoop()
		}
		if err != errWouldBlock && err != errYield {
			c.lose(s.size())
			s.release()
			return err
		}
		s.waited = true
		q = c.newQueue()
		q.mu.Lock()
		defer q.unlock()
		q.deadline = w.Deadline
		q.stall(c, err == errWouldBlock)
		q.add(c, s, true)
		c.blocked(q)
		return nil
	}
	if q == nil {
		q = c.newQueue()
	}
	q.mu.Lock()
	defer q.unlock()
	if w.Deadline != 0 {
		q.deadline = w.Deadline
	}
	wait := q.stalled || cork && q.held+s.bytes() <= highWater
	if q.add(c, s, wait); wait {
		return nil
	}
	disk := c.enterDisk(s.n > 0)
	err := q.send(c)
	if disk {
		c.leaveLoop()
	}
	c.blocked(q)
	return err
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
// and calls a Holder's Check.
func (c *Conn) resume(q *queue) (err error) {
	disk := c.enterDisk(q.sendsFile())
	returned := false
	defer func() {
		switch {
		case !returned: // Check has ended its goroutine
			c.Abandon()
		case disk:
			c.leaveLoop()
		}
	}()
	err = q.resume(c)
	returned = true
	return err
}

// newQueue gives the connection a queue. It is the owner's.
func (c *Conn) newQueue() *queue {
	q := &queue{giveUp: poll.Never}
	q.segments = q.first[:0]
	c.queue.Store(q)
	return q
}

// add queues s, which is not going to be sent at once if it waits. mu is held.
func (q *queue) add(c *Conn, s segment, waits bool) {
	i := len(q.segments) - 1
	if i >= 0 && q.segments[i].plain() {
		last := &q.segments[i]
		if n := s.bytes(); s.n == 0 && n <= smallWrite {
			last.append(s.a, s.b)
			q.held += n
			s.release()
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
		s.absorb()
	}
	q.held += s.bytes()
	q.segments = append(q.segments, s)
}

// stall notes whether the socket is full. mu is held.
func (q *queue) stall(c *Conn, full bool) {
	if q.stalled = full; full {
		q.outq = sys.Queued(int(c.fd))
	}
}

// blocked comes after the owner has sent: on the loop, what ready said of the
// socket is older than the queue's stall.
func (c *Conn) blocked(q *queue) {
	if q.stalled && !c.off && c.lease == 0 {
		c.ready &^= poll.Writable
	}
}

// plain reports whether the segment has bytes of its own and nothing else.
func (s *segment) plain() bool {
	return s.own != nil && s.holder == nil && s.n == 0 && len(s.a)+len(s.b) == 0
}

// send sends what the socket takes, and keeps the rest. mu is held.
func (q *queue) send(c *Conn) error {
	if q.err != nil {
		return q.err
	}
	q.stalled = false
	for len(q.segments) > 0 {
		s := &q.segments[0]
		before, size := s.bytes(), s.size()
		err := c.transmit(s, len(q.segments) > 1)
		q.held += s.bytes() - before
		if q.follow.sent += size - s.size(); c.layer == nil || err == nil { // what is sealed may still be there
			q.follow.pass()
		}
		switch err {
		case nil:
			s.release()
			q.segments = q.segments[1:]
			continue
		case errWouldBlock, errYield:
			q.stall(c, err == errWouldBlock)
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
	return nil
}

// clear drops all that is queued. mu is held.
func (q *queue) clear() {
	q.follow.end(q.size())
	for i := range q.segments {
		q.segments[i].release()
	}
	q.segments, q.held, q.stalled = nil, 0, false
}

// finish ends the queue for all but the owner, and reports whether something is
// unsent.
func (q *queue) finish() (pending bool) {
	q.mu.Lock()
	defer q.unlock()
	q.closed = true
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
	defer q.unlock()
	if c.off || q.stalled || q.segments[0].waited {
		return nil
	}
	err := q.send(c)
	c.blocked(q)
	return err
}

// flushBeside sends what the socket takes of bytes in memory while another
// goroutine is the owner. It does not wait for one that is sending.
func (c *Conn) flushBeside() {
	q := c.queue.Load()
	if q == nil || !q.mu.TryLock() {
		return
	}
	defer q.unlock()
	if !slices.ContainsFunc(q.segments, func(s segment) bool { return s.n > 0 }) {
		q.send(c) // the owner hears of an error by its next write
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
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.unlock()
	return q.stalled || len(q.segments) > 0 && q.segments[0].waited
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

// resume goes on after the socket was full.
func (q *queue) resume(c *Conn) error {
	q.mu.Lock()
	defer q.unlock()
	if len(q.segments) > 0 {
		if s := &q.segments[0]; s.waited && s.n > 0 && s.holder != nil {
			q.err = errChecking // in case Check does not return
			if q.err = s.holder.Check(); q.err != nil {
				q.clear()
				return q.err
			}
		}
	}
	return q.send(c)
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
func (q *queue) progress(fd int) bool {
	q.mu.Lock()
	defer q.unlock()
	before := q.outq
	q.outq = sys.Queued(fd)
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
