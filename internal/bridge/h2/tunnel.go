package h2

import (
	"slices"

	"github.com/chert-http/chert/internal/buf"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/outbox"
)

// This file is streams that another protocol has taken over: WebSockets (RFC 8441).
// What the client sends in DATA frames is for the protocol's session, and what that
// sends becomes DATA frames.
//
// The session is called by the connection's owner, or, where user code may run, by a
// conn.Run: on the loop as long as that code is quick, on a goroutine otherwise. While a
// Run is under way, what is to be called waits for its end. Between Runs a tunnel costs
// no goroutine.

// tunnel is a stream that was taken over.
type tunnel struct {
	offers
	session conn.Session // set, with Session.mu held, when the handler has returned
	place   conn.Here

	// The Run's, and otherwise the owner's.
	in   *buf.Buf // received, not consumed; nil if empty
	used uint32   // consumed, not yet given back to the windows
	eof  bool     // the argument of Data

	// Guarded by Session.mu.
	running bool // there is a Run, or the handler, until its Done
	inside  bool // and it has not returned
	paused  bool // nothing is consumed until the queue, which is stream.rest, is low
	closed  bool // Closed was called, or is in Session.freed
	stopped bool // Drain was called for the server's end
	// posts are to be called when the Run has ended.
	posts    []func() conn.Next
	deadline int64 // of Expired; 0 for none
	marks    []mark
}

// mark is a Follower of what was offered up to a point.
type mark struct {
	at int64 // what stream.sent is then
	f  conn.Follower
}

// handOver ends the Run of a handler: if it has taken the stream over, that has its session now.
func (st *stream) handOver() {
	if t := st.tunnel; t != nil {
		t.runEnded(st.Taken())
	}
}

// runEnded is called on a Run's goroutine in the end, by the handler's with the session that goes on.
// If the connection has ended meanwhile, Done is not called.
func (t *tunnel) runEnded(session conn.Session) {
	s := t.st.s
	s.mu.Lock()
	if t.inside = false; session != nil {
		t.session = session
	}
	if s.gone {
		t.closeLocked()
		defer s.free()
	}
	s.mu.Unlock()
}

// closeLocked ends the session, once. mu is held, and there is no Run.
func (t *tunnel) closeLocked() {
	s := t.st.s
	if t.closed {
		return
	}
	t.closed = true
	t.dropInputLocked()
	t.dropMarksLocked()
	t.posts = nil
	if t.session != nil {
		s.freed = append(s.freed, func() { t.session.Closed(false) })
	}
}

// dropMarksLocked notifies the followers of what will not be sent.
func (t *tunnel) dropMarksLocked() {
	for _, m := range t.marks {
		t.st.s.freed = append(t.st.s.freed, func() { m.f.Sent(1) })
	}
	t.marks = nil
}

// dropInputLocked gives up what was received. mu is held, and there is no Run.
func (t *tunnel) dropInputLocked() {
	n := t.used + uint32(len(t.in.Bytes()))
	t.used, t.in = 0, t.in.Drop()
	t.st.s.refundLocked(nil, n)
}

// beginLocked is stream.finish after the handler has taken the stream over.
func (t *tunnel) beginLocked() {
	st, s := t.st, t.st.s
	if t.running = false; st.closed() {
		st.retireLocked()
		return
	}
	st.become(stateSending)
	if st.next != conn.Detached || t.session == nil { // runtime.Goexit
		s.rstLocked(st.id, http2.InternalError)
		st.closeLocked(nil)
		return
	}
	st.feedLater() // the session begins even if nothing has come
}

// feedLater has feedAll feed st, which is the caller's to do, or settle's. It is the owner's.
func (st *stream) feedLater() {
	if !slices.Contains(st.s.fed, st) {
		st.s.fed = append(st.s.fed, st)
	}
}

// feedAll passes on what has come to tunnels, and to requests that are forwarded. It reports whether
// the loop is still the caller's.
func (s *Session) feedAll() (kept bool) {
	began := int64(0)
	// Those that are added meanwhile, or left, have their turn after other connections.
	for n := len(s.fed); n > 0 && len(s.fed) > 0; n-- {
		st := s.fed[0]
		s.fed = slices.Delete(s.fed, 0, 1)
		if st.tunnel == nil {
			st.upload.feed()
		} else if !st.tunnel.feed() {
			return false
		}
		if n > 1 && s.spent(&began) {
			break
		}
	}
	return true
}

// after ends what the owner was called for. kept: the loop is still the caller's.
func (s *Session) after(kept bool) conn.Next {
	if !kept || !s.afterData() {
		return conn.Lost
	}
	return s.settle(conn.More)
}

// feed begins a Run of what has come. It reports whether the loop is still the caller's.
func (t *tunnel) feed() (kept bool) {
	st, s := t.st, t.st.s
	s.mu.Lock()
	if t.running || t.paused || t.closed || t.ending {
		s.mu.Unlock()
		return true
	}
	t.in = st.body.take(t.in, st.body.size)
	t.eof = st.remoteClosed
	t.running, t.inside = true, true
	st.tunnelled = true
	s.mu.Unlock()
	if !s.loops || !s.Link.OnLoop() {
		s.Link.Start(t, nil)
		return true
	}
	s.runsHere(st)
	if !s.Link.Start(t, &t.place) {
		return false
	}
	t.finish()
	return true
}

// Run implements conn.Run.
func (t *tunnel) Run() {
	t.st.next = conn.Close // if user code ends its goroutine
	defer t.st.s.finishing.Add(1)
	defer t.runEnded(nil)
	t.st.next = t.session.Data(t.eof)
}

// Ended implements conn.Run: what user code there was has been guarded by link.Do.
func (t *tunnel) Ended(exec.End) {}

// Done implements conn.Run.
func (t *tunnel) Done() conn.Next {
	t.finish()
	return t.st.s.after(true)
}

// finish is for the owner, when a Run has ended.
func (t *tunnel) finish() {
	st, s := t.st, t.st.s
	next := st.next
	s.mu.Lock()
	s.finishing.Add(-1)
	st.sampleLocked(int(t.used))
	s.refundLocked(st, t.used)
	t.used = 0
	if next == conn.Elsewhere && !st.closed() {
		t.inside = true
		s.mu.Unlock()
		s.Link.Start(t, nil)
		return
	}
	t.running = false
	posts := t.posts
	t.posts = nil
	closed := st.closed()
	s.mu.Unlock()
	for _, f := range posts {
		if n := f(); n != conn.More && !closed && next < conn.Close {
			next = n
		}
	}
	t.act(next)
}

// call calls f like a method of the session, as soon as there is no Run.
func (t *tunnel) call(f func() conn.Next) {
	s := t.st.s
	s.mu.Lock()
	now := !t.closed && !t.running
	if t.running && !t.closed {
		t.posts = append(t.posts, f)
	}
	if s.mu.Unlock(); now {
		t.act(f())
	}
}

// act does what the session requests. It is the owner's, without a Run.
func (t *tunnel) act(next conn.Next) {
	st, s := t.st, t.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case st.state == stateReset:
		st.retireLocked()
		return
	case st.closed() || t.ending && next != conn.Reset:
		return
	}
	switch next {
	case conn.More:
		if st.body.size > 0 || st.remoteClosed && !t.eof { // something has come of which Data does not know
			st.feedLater()
		}
	case conn.Requeue:
		st.feedLater()
	case conn.Pause:
		if t.paused = st.rest.len() > outbox.LowWater; !t.paused {
			st.feedLater()
		}
		t.owed = t.owed || t.paused
	case conn.Reset:
		s.rstLocked(st.id, http2.Cancel) // RFC 8441 section 5
		st.closeLocked(errTunnel)
	default:
		t.paused = false
		st.dropBodyLocked()
		t.dropInputLocked()
		t.endLocked()
	}
}

var errTunnel = &http2.StreamError{Code: http2.Cancel, Reason: "the session has ended the stream"}

// sentLocked is after pump has sent some of what was queued.
func (t *tunnel) sentLocked() {
	s := t.st.s
	for len(t.marks) > 0 && t.marks[0].at <= t.st.sent {
		f := t.marks[0].f
		s.freed = append(s.freed, func() { f.Sent(0) })
		t.marks = t.marks[1:]
	}
	if t.owed && t.st.rest.len() <= outbox.LowWater {
		t.owed = false
		s.freed = append(s.freed, t.writable)
	}
}

// writable calls Writable, and ends a pause.
func (t *tunnel) writable() {
	s := t.st.s
	t.call(func() conn.Next { return t.session.Writable() })
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.paused {
		t.paused = false
		t.st.feedLater()
	}
	if t.ending || t.st.closed() {
		s.settleSoonLocked() // settle has sent what was ready before it called this
	}
}
