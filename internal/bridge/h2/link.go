package h2

import (
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
)

// link is a stream as a conn.Link: what its exchange has of the connection. The
// addresses are the connection's.
type link struct {
	conn.Link
	st *stream
}

// SetReadDeadline implements conn.Link.
func (l *link) SetReadDeadline(t time.Time) { l.setDeadline(&l.st.readBy, 0, t) }

// SetWriteDeadline implements conn.Link.
func (l *link) SetWriteDeadline(t time.Time) { l.setDeadline(&l.st.writeBy, 1, t) }

// setDeadline sets a deadline, and has those who wait look at it.
func (l *link) setDeadline(by *time.Time, i int, t time.Time) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	*by = t
	l.st.cond.Broadcast()
}

// WatchPeer implements conn.Link: the session reads all the time.
func (l *link) WatchPeer() (gone bool) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.st.err != nil
}

// Sent implements conn.Link. No stream can be hijacked, which it is for.
func (l *link) Sent() error { return nil }

// Hijack implements conn.Link.
func (l *link) Hijack() (net.Conn, []byte, error) { return nil, nil, http.ErrNotSupported }

// Abandon implements conn.Link: the handler ends its goroutine.
func (l *link) Abandon() { l.st.next = conn.Close }

// Waited implements conn.Link.
func (l *link) Waited() bool {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.st.waited
}

// Yield implements conn.Link.
func (l *link) Yield() { l.st.place.Yield() }

// SendFile, CanRelay and SendRelay implement conn.Link: DATA frames are made of what
// is in memory.
func (l *link) SendFile(conn.File, int64, int64) (int64, bool, error) { return 0, false, nil }
func (l *link) CanRelay() bool                                        { return false }

// Budget implements takeover.Budgeted.
func (l *link) Budget() *takeover.Budget { return &l.st.s.budget }

// Unsent implements conn.Link. That others' frames wait too does not matter: what is
// told is only told later.
func (l *link) Unsent() (waiting, lost int64) {
	s := l.st.s
	s.mu.Lock()
	rest := int64(len(l.st.rest))
	ended := s.over != nil || l.st.err != nil
	here := !s.allQueued()
	s.mu.Unlock()
	switch {
	case ended:
		return 0, rest
	case rest > 0 || here:
		return rest + 1, 0
	}
	return l.Link.Unsent()
}

// Follow implements conn.Link. f is told when the owner has given the end of the
// stream to the Link and that has sent it, or when it is known that it will not. On a
// tunnel it is told when nothing is queued of what has been offered.
func (l *link) Follow(f conn.Follower) {
	s := l.st.s
	s.mu.Lock()
	if t := l.st.tunnel; t != nil {
		wait := !t.told && !l.st.closed && len(l.st.rest) > 0
		if wait {
			t.marks = append(t.marks, mark{t.offered, f})
		}
		if s.mu.Unlock(); !wait {
			f.Sent(0)
		}
		return
	}
	if !l.st.localClosed && s.over == nil && l.st.err == nil {
		l.st.follower = f
		s.mu.Unlock()
		return
	}
	gone, queued := s.gone, s.allQueued()
	if !gone && !queued {
		s.followers = append(s.followers, f)
	}
	s.mu.Unlock()
	switch {
	case gone:
		f.Sent(1)
	case queued:
		l.Link.Follow(f)
	}
}

// What follows is for the session that has taken the stream over, from Share on.

// Share implements conn.Link: it makes the stream a tunnel.
func (l *link) Share() {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.st.tunnel = &tunnel{st: l.st, running: true, inside: true}
	l.st.readBy, l.st.writeBy = time.Time{}, time.Time{} // the request's
}

// Buffered implements conn.Link.
func (l *link) Buffered() []byte {
	if in := l.st.tunnel.in; in != nil {
		return in.B
	}
	return nil
}

// Discard implements conn.Link.
func (l *link) Discard(n int) {
	t := l.st.tunnel
	if t.in == nil {
		return
	}
	t.used += uint32(n)
	if t.in.B = t.in.B[n:]; len(t.in.B) == 0 {
		t.in.Release()
		t.in = nil
	}
}

// Offer implements conn.Link.
func (l *link) Offer(a, b []byte, limit int) (full bool, err error) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.st.tunnel.offer(a, b, limit)
}

// OnLoop implements conn.Link.
func (l *link) OnLoop() bool {
	if t := l.st.tunnel; t != nil {
		return t.place.Held()
	}
	return l.Link.OnLoop()
}

// Go implements conn.Link: the owner starts Serve when Data has returned.
func (l *link) Go() bool {
	l.st.tunnel.serve = true
	return true
}

// Enter and Leave implement conn.Link.
func (l *link) Enter() bool {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return !l.st.closed && s.over == nil
}

func (l *link) Leave() {}

// Post implements conn.Link.
func (l *link) Post(f func() conn.Next) {
	s, t := l.st.s, l.st.tunnel
	s.Link.Post(func() conn.Next {
		t.call(f)
		return s.after(true)
	})
}

// SetDeadline implements conn.Link.
func (l *link) SetDeadline(ns int64) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limitTunnel(l.st.tunnel, ns)
}

// Now implements conn.Link. The session may be called beside the connection's owner.
func (l *link) Now() int64 { return sys.Nanotime() }
