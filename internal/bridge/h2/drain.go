package h2

import (
	"math"
	"slices"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http2"
	"github.com/chert-http/chert/internal/tally"
)

// This file is how a session ends in peace, and its times.

// drain is a graceful end (RFC 9113 section 6.8): a GOAWAY that promises all streams,
// so that requests which are on their way are served, and when the client is known
// to have it, or after drainTime, one that names the last.
type drain struct {
	by     int64  // when the second GOAWAY is due; 0 before the first
	last   bool   // it was sent
	lastID uint32 // that it has named
}

const drainTime = int64(time.Second)

// The data of our PINGs.
const (
	pingAlive  = "chert.lv"
	pingDrain  = "chert.dr"
	pingWindow = "chert.wd"
)

// Drain implements conn.Session.
func (s *Session) Drain(since int64) conn.Next {
	s.startDrain()
	if s.Ending() {
		s.stopStreams(since)
	}
	// Others may wait for the connection's place, in which case since is long ago.
	if by := since + int64(conn.DrainNew); by < s.drain.by {
		if s.drain.by = by; s.Link.Now() >= by {
			s.endDrain()
		}
	}
	return s.settle(conn.More)
}

func (s *Session) startDrain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginDrainLocked()
}

func (s *Session) beginDrainLocked() {
	if s.drain.by != 0 || s.closing {
		return
	}
	s.drain.by = s.Link.Now() + drainTime
	s.roomLocked(64)
	s.out.B = http2.AppendGoAway(s.out.B, math.MaxInt32, http2.NoError, "")
	s.pingLocked(false, []byte(pingDrain))
}

// endDrain sends the second GOAWAY: streams that come after it are refused.
func (s *Session) endDrain() {
	if s.drain.last {
		return
	}
	s.drain.last, s.drain.lastID = true, s.lastID
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goAwayLocked(http2.NoError, "")
}

// goAwayLocked appends a GOAWAY frame. It names no later stream than one before it has: the client
// may have sent the requests of those on another connection (RFC 9113 section 6.8).
func (s *Session) goAwayLocked(code http2.ErrCode, reason string) {
	last := s.lastID
	if s.drain.last {
		last = s.drain.lastID
	}
	s.roomLocked(32 + len(reason))
	s.out.B = http2.AppendGoAway(s.out.B, last, code, reason)
}

// endLingeringLocked resets the streams that linger on a connection that is to end, if there are no
// others.
func (s *Session) endLingeringLocked() {
	if s.lingering > 0 && (s.drain.last || s.leaving) && !s.busyLocked() && !s.full {
		for _, st := range slices.Backward(s.streams) { // which leave the Session
			st.lingeredLocked()
		}
	}
}

// endedLocked reports whether nothing is left to be done on a connection that is to end. What
// another goroutine is passing to the Link may be the end of an answer.
func (s *Session) endedLocked() bool {
	if !s.drain.last && !s.leaving || s.busyLocked() || s.full {
		return false
	}
	s.starved = s.sending
	return !s.sending
}

// setDeadlineLocked sets the time of Expired.
func (s *Session) setDeadlineLocked() {
	by := int64(0)
	sooner := func(t int64) { by = conn.Earlier(by, t) }
	sooner(s.headBy)
	if !s.drain.last {
		sooner(s.drain.by)
	}
	sooner(s.idleByLocked())
	if stall := s.Shared.Limits.WriteStall; stall > 0 {
		for _, st := range s.unsent {
			if st.rest == nil {
				continue // its goroutine has the time
			}
			if p := &st.rest.patience; p.by == 0 {
				*p = patience{s.Link.Now() + stall, st.sent, s.sentAll}
				s.expiresBy = conn.Earlier(s.expiresBy, p.by)
			}
		}
	}
	if s.cfg.PingAfter > 0 && s.settled {
		if s.pinged != 0 {
			sooner(s.pinged + s.cfg.PingTime)
		} else {
			sooner(s.heard + s.cfg.PingAfter)
		}
	}
	sooner(s.expiresBy)
	s.Link.SetDeadline(by)
}

// idleByLocked is when the connection has had no request for too long, 0 for never. A header
// block that has begun has a time of its own.
func (s *Session) idleByLocked() int64 {
	if s.cfg.IdleTime <= 0 || s.headBy != 0 || s.busyLocked() {
		return 0
	}
	return s.since + s.spread.Of(s.cfg.IdleTime)
}

// leastProgress is how much of an answer a client must take in the time of
// Limits.WriteStall, in bytes, unless it is all that is left: one that opens its
// window byte by byte holds what the answer is made of.
const leastProgress = 4 << 10

// Expired implements conn.Session.
func (s *Session) Expired() conn.Next {
	now := s.Link.Now()
	passed := func(t int64) bool { return t > 0 && now >= t }
	if passed(s.headBy) {
		s.Link.Tally().Late(s.Link.OnLoop(), tally.LateHead)
		s.fail(errTimeout)
		return s.settle(conn.Linger)
	}
	if passed(s.drain.by) {
		s.endDrain()
	}
	if s.cfg.PingAfter > 0 {
		switch {
		case s.pinged != 0 && passed(s.pinged+s.cfg.PingTime):
			s.Link.Tally().Late(s.Link.OnLoop(), tally.LatePing)
			if f := s.cfg.CountError; f != nil {
				f("conn_close_lost_ping") // net/http's name
			}
			s.logf("http2: timeout waiting for PING response from %s")
			return conn.Reset
		case s.pinged == 0 && passed(s.heard+s.cfg.PingAfter):
			s.pinged = now
			s.mu.Lock()
			s.pingLocked(false, []byte(pingAlive))
			s.mu.Unlock()
		}
	}
	s.expireStreams(now)
	next := conn.More
	s.mu.Lock()
	if passed(s.idleByLocked()) {
		s.Link.Tally().Late(s.Link.OnLoop(), tally.LateIdle)
		s.goAwayLocked(http2.NoError, "")
		next = conn.Linger
	}
	s.mu.Unlock()
	return s.settle(next)
}

var errTimeout = &http2.ConnError{Code: http2.ProtocolError, Reason: "what was begun did not come in time"}

// expireByLocked has Expired look at the streams by then; 0 is never.
func (s *Session) expireByLocked(by int64) {
	if by <= 0 || s.expiresBy != 0 && s.expiresBy <= by {
		return
	}
	if s.expiresBy = by; !s.inData.Load() {
		s.settleSoonLocked() // which sets the Link's deadline
	}
}

// expireStreams calls the sessions of tunnels whose deadlines have passed, ends the exchanges whose clients have not
// sent their bodies in time, and resets streams: of answers that the client has left without a window for too long,
// or that are pending beyond their write deadlines, of handlers that run beyond theirs, also if they do not
// write: as with net/http, their contexts end; and those that have lingered for long enough.
func (s *Session) expireStreams(now int64) {
	s.mu.Lock()
	s.expiresBy = 0
	due := func(by int64) bool {
		if by > now {
			s.expiresBy = conn.Earlier(s.expiresBy, by)
		}
		return by > 0 && by <= now
	}
	for _, st := range slices.Backward(s.streams) { // some of which leave the Session
		if t := st.tunnel; t != nil && due(t.deadline) && t.session != nil {
			t.deadline = 0
			s.freed = append(s.freed, func() { t.call(t.session.Expired) })
		}
		if u := st.upload; u != nil && due(u.by) {
			u.by = 0
			s.freed = append(s.freed, u.expired)
		}
		switch {
		case st.rest != nil && !st.closed(): // it is in unsent
			overdue := due(st.writeBy)
			if p := &st.rest.patience; due(p.by) { // settle measures again
				p.by = 0
				overdue = overdue || st.stuckLocked(p)
			}
			if overdue {
				s.freed = append(s.freed, func() {
					s.Link.Tally().Late(s.Link.OnLoop(), tally.LateStall)
					s.resetStream(st.id, http2.Cancel, errStall)
				})
			}
		case st.state == stateRunning && due(st.writeBy):
			s.rstLocked(st.id, http2.InternalError)
			counted := st.late
			st.closeLocked(bridge.ErrLate)
			s.freed = append(s.freed, func() {
				if !counted {
					s.Link.Tally().Late(s.Link.OnLoop(), tally.LateWrite)
				}
				st.Gone(true)
			})
		case due(st.lingerBy):
			st.lingeredLocked()
		}
	}
	s.mu.Unlock()
	s.free()
}

// stopStreams tells the sessions of tunnels, once, and the sources of answers that the server stops.
func (s *Session) stopStreams(since int64) {
	s.mu.Lock()
	for _, st := range s.streams {
		if t := st.tunnel; t != nil && t.session != nil && !t.stopped {
			t.stopped = true
			s.freed = append(s.freed, func() { t.call(func() conn.Next { return t.session.Drain(since) }) })
		}
		if st.lasting.open() {
			s.freed = append(s.freed, st.lasting.source.Stop)
		}
	}
	s.mu.Unlock()
	s.free()
}
