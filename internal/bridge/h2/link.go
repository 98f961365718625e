package h2

import (
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/takeover"
)

// link is a stream as a bridge.Stream: what its exchange has of the connection.
type link struct{ st *stream }

var _ bridge.Sharer = (*stream)(nil)

func (st *stream) Stream() bridge.Stream    { return link{st} }
func (st *stream) Budget() *takeover.Budget { return &st.s.budget }

func (l link) SetReadDeadline(t time.Time) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.st.readBy = conn.Nanotime(t)
	l.st.wakeLocked() // it may concern a goroutine that waits
}

func (l link) SetWriteDeadline(t time.Time) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.st.writeBy = conn.Nanotime(t)
	l.st.wakeLocked()
	s.expireByLocked(l.st.writeBy)
}

// WatchPeer implements bridge.Stream: the session reads all the time.
func (l link) WatchPeer() (gone bool) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.st.err != nil
}

// Unsent implements bridge.Stream. Frames of other streams may wait too, which
// only delays the notification.
func (l link) Unsent() (waiting, lost int64) {
	s := l.st.s
	s.mu.Lock()
	rest := int64(l.st.rest.len())
	ended := s.over != nil || l.st.err != nil
	here := !s.allQueuedLocked()
	s.mu.Unlock()
	switch {
	case ended:
		return 0, rest
	case rest > 0 || here:
		return rest + 1, 0
	}
	return l.st.s.Link.Out().Unsent()
}

// Follow implements bridge.Stream. f is notified when the connection's Link has
// sent the end of the stream, or will not send it. On a tunnel it is notified when nothing
// is queued of what has been offered.
func (l link) Follow(f conn.Follower) {
	s := l.st.s
	s.mu.Lock()
	if t := l.st.tunnel; t != nil {
		wait := !t.closed && !l.st.closed() && l.st.rest != nil
		if wait {
			t.marks = append(t.marks, mark{l.st.sent + int64(l.st.rest.len()), f})
		}
		if s.mu.Unlock(); !wait {
			f.Sent(0)
		}
		return
	}
	if l.st.state < stateAnswered && s.over == nil && l.st.err == nil {
		l.st.follower = f
		s.mu.Unlock()
		return
	}
	gone, queued, left := s.gone, s.allQueuedLocked(), int64(l.st.rest.len())
	if !gone && !queued && left == 0 {
		s.followers = append(s.followers, f)
	}
	s.mu.Unlock()
	switch {
	case left > 0: // it was cut off since Unsent
		f.Sent(left)
	case gone:
		f.Sent(1)
	case queued:
		l.st.s.Link.Out().Follow(f)
	}
}

// What follows is for the session that has taken the stream over, from Share on.

// Share implements bridge.Stream: it makes the stream a tunnel.
func (l link) Share() {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.st.tunnel = &tunnel{offers: offers{st: l.st}, running: true, inside: true}
	l.st.readBy, l.st.writeBy = 0, 0 // the request's
	if l.st.closed() {
		l.st.dropBodyLocked()
	}
}

func (l link) Buffered() []byte { return l.st.tunnel.in.Bytes() }

func (l link) Discard(n int) {
	t := l.st.tunnel
	t.used += uint32(n)
	t.in = t.in.Consume(n)
}

func (l link) Offer(a, b []byte, limit int) (full bool, err error) {
	return l.st.tunnel.offer(a, b, limit, nil)
}

func (l link) OnLoop() bool { return l.st.tunnel.place.Held() }

func (l link) Do(u conn.UserCode) (ran, waited bool) {
	s := l.st.s
	s.mu.Lock()
	ran = !l.st.closed() && s.over == nil
	s.mu.Unlock()
	if ran {
		exec.Call(u.Run, u.Ended)
	}
	return ran, l.st.waited()
}

func (l link) Post(f func() conn.Next) {
	s, t := l.st.s, l.st.tunnel
	s.Link.Post(func() conn.Next {
		t.call(f)
		return s.after(true)
	})
}

func (l link) SetDeadline(ns int64) {
	s := l.st.s
	s.mu.Lock()
	defer s.mu.Unlock()
	l.st.tunnel.deadline = ns
	s.expireByLocked(ns)
}

// Now implements bridge.Stream. The session may be called beside the connection's owner.
func (l link) Now() int64 { return sys.Nanotime() }
