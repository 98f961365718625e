package h3

import (
	"slices"
	"time"
)

// This file gives clients new streams for those that have ended. The transport tells them with a
// frame for each, which would be a packet of its own for most requests: it is due when a client has
// acknowledged an answer, just before its next request is answered. So places are given back many
// at a time.

const (
	// maxHeld is how many places are held back at most. The later half stays: those streams may
	// still wait for acknowledgements, and would have a packet each after all.
	maxHeld = 32
	// restAfter is how often is looked whether requests have ceased to come; then none are held.
	restAfter = time.Second
)

// places are the streams that have ended and that the client has no others for yet. Session.mu
// guards them.
type places struct {
	held  []Stream
	timed bool   // the session's timer comes within restAfter
	seen  uint64 // Session.next, when the timer came last
}

// leaveLocked holds the place of st, which has ended, and returns those that are given back now.
func (s *Session) leaveLocked(st *stream) (due []Stream) {
	if !st.eof || !st.ended.Load() { // the transport may have much of what it was sent
		return []Stream{st.str}
	}
	p := &s.places
	p.held = append(p.held, st.str)
	if due = s.crowdedLocked(); due == nil && len(p.held) == maxHeld {
		due = slices.Clone(p.held[:maxHeld/2])
		p.held = slices.Delete(p.held, 0, maxHeld/2)
	}
	if len(p.held) > 0 && !p.timed && !s.over {
		p.timed = true
		s.timer.Reset(restAfter)
	}
	return due
}

// crowdedLocked returns all that are held if the client uses many of its places, so that it can
// have MaxStreams at a time.
func (s *Session) crowdedLocked() (due []Stream) {
	p := &s.places
	if len(p.held) > 0 && len(s.streams)+len(p.held) > s.cfg.MaxStreams/2 {
		due, p.held = p.held, nil
	}
	return due
}

// restLocked returns all that are held if no request has come since it was called last. The timer
// has come.
func (s *Session) restLocked() (due []Stream) {
	p := &s.places
	if p.seen == s.next {
		due, p.held = p.held, nil
	}
	p.seen, p.timed = s.next, len(p.held) > 0
	return due
}

// release gives places back.
func release(due []Stream) {
	for _, str := range due {
		str.Release()
	}
}
