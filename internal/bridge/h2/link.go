package h2

import (
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/conn"
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
// stream to the Link and that has sent it, or when it is known that it will not.
func (l *link) Follow(f conn.Follower) {
	s := l.st.s
	s.mu.Lock()
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
