package h3

import (
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http3"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// This file ends connections, for their server and because they are idle.

// noGoAway is the ID of a first GOAWAY: the largest of a request. All requests are served.
const noGoAway = 1<<62 - 4

// drain is how far a graceful end is (RFC 9114 section 5.2).
type drain struct {
	begun bool // the first GOAWAY is out
	last  bool // the second one is: when the requests have ended the connection does
	// slow: the server does not end the connection to give its place to another, so that a slow client gets more
	// time for the last responses.
	slow bool
}

// Drain ends the connection when the requests have been answered that the client has sent before
// it can know. What has outlived its handler is told to stop if the server does.
func (s *Session) Drain() {
	s.startDrain()
	if s.Ending() {
		for _, st := range s.all() {
			st.stop()
		}
	}
}

// startDrain is Drain that leaves alone what has outlived its handler.
func (s *Session) startDrain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drain.begun || s.over {
		return
	}
	s.drain.begun, s.drain.slow = true, true
	s.goAwayLocked(noGoAway)
	s.hastenLocked(conn.DrainNew)
	time.AfterFunc(s.transit(), s.drainLast)
}

// awaitLocked begins the time for the fields of st.
func (s *Session) awaitLocked(st *stream) {
	st.awaited = sys.Nanotime()
	d := time.Duration(s.cfg.HeadTime)
	if s.drain.begun && (d <= 0 || d > conn.DrainNew) {
		d = conn.DrainNew
	}
	if d > 0 {
		st.str.SetReadDeadline(time.Now().Add(d))
	}
}

// hastenLocked has the fields that are awaited come in d, if they need not sooner.
func (s *Session) hastenLocked(d time.Duration) {
	now := sys.Nanotime()
	for _, st := range s.streams {
		if st.awaited != 0 && (s.cfg.HeadTime <= 0 || st.awaited+s.cfg.HeadTime-now > int64(d)) {
			st.str.SetReadDeadline(time.Now().Add(d))
		}
	}
}

// transit is how long what is on its way may take.
func (s *Session) transit() time.Duration {
	return min(max(2*s.qc.RTT(), 20*time.Millisecond), time.Second)
}

// drainLast rejects what the client sends from now on.
func (s *Session) drainLast() {
	s.mu.Lock()
	if s.over || s.drain.last {
		s.mu.Unlock()
		return
	}
	s.drain.begun, s.drain.last = true, true
	s.last = s.next
	s.goAwayLocked(s.last)
	idle := len(s.streams) == 0
	s.mu.Unlock()
	if idle {
		s.linger()
	}
}

func (s *Session) goAwayLocked(id uint64) {
	if s.control != nil {
		s.control.TryWrite(http3.AppendGoAway(nil, id))
	}
}

// linger ends the connection, on which no request is under way, when QUIC has had time to send
// the last answers again, and GOAWAY: a client whose request is on its way learns that it was not
// served. Most clients close the connection themselves before.
func (s *Session) linger() {
	s.mu.Lock()
	wait := lingerFor - time.Duration(sys.Nanotime()-s.since)
	end := s.Kill
	switch {
	case s.next == 0:
		wait = 0
	case s.drain.slow:
		end = func() { s.lingerOn(sys.Nanotime() + int64(lingerSlow)) }
	}
	s.mu.Unlock()
	time.AfterFunc(max(wait, s.transit()), end)
}

// lingerOn ends the connection when nothing is sent any more, or at a time of sys.Nanotime. What handlers have
// written may still wait in the transport, which does not tell what a client has acknowledged: it goes on sending
// until that is all.
func (s *Session) lingerOn(until int64) {
	sent := s.qc.Sent()
	left := time.Duration(until - sys.Nanotime())
	time.AfterFunc(min(lingerTransits*s.transit(), left), func() {
		if s.qc.Sent() == sent || sys.Nanotime() >= until {
			s.Kill()
			return
		}
		s.lingerOn(until)
	})
}

// all returns the streams.
func (s *Session) all() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		all = append(all, st)
	}
	return all
}

// expired is called when no request may have been under way for IdleTime.
func (s *Session) expired() {
	s.mu.Lock()
	left := time.Duration(s.cfg.IdleTime)
	if s.since != 0 {
		left -= time.Duration(sys.Nanotime() - s.since)
	}
	if s.over || left > 0 {
		if !s.over {
			s.idle.Reset(left)
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.tally.Late(false, tally.LateIdle)
	s.drainLast()
}

// CloseIdle ends the connection if it is idle, and leaves it alone otherwise.
func (s *Session) CloseIdle() {
	if _, idle := s.Spare(); idle {
		s.Drain()
	}
}

// Spare reports whether the connection could give way to another, and since when, as loop.Spare does.
func (s *Session) Spare() (since int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.drain.last {
		return 0, false
	}
	if s.since != 0 {
		return s.since, true
	}
	now := sys.Nanotime()
	oldest := now
	for _, st := range s.streams {
		if st.awaited == 0 {
			return 0, false
		}
		oldest = min(oldest, st.awaited)
	}
	return conn.SpareHead(oldest, now)
}

// GiveWay ends the connection soon if it is still spare.
func (s *Session) GiveWay() bool {
	_, ok := s.Spare()
	if ok {
		s.drainLast()
		s.mu.Lock()
		s.hastenLocked(s.transit())
		s.mu.Unlock()
	}
	return ok
}

// Active reports whether the connection has a request in progress.
func (s *Session) Active() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since == 0
}

// Kill ends the connection immediately; calls of user code that runs on it fail.
func (s *Session) Kill() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.qc.Close(http3.NoError, "")
}
