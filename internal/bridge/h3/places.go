package h3

import (
	"slices"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/sys"
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
	// restTurn is the least time between two looks, which are at all connections that are due.
	restTurn = 10 * time.Millisecond
)

// places are the streams that have ended and that the client has no others for yet. Session.mu
// guards them.
type places struct {
	held   []Stream
	listed bool   // rests has the session
	seen   uint64 // Session.next, when it was looked at last
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
	if len(p.held) > 0 && !p.listed {
		p.listed = true
		s.cfg.rests.add(s)
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

// rest gives back all that are held if no request has come since it was called last.
func (s *Session) rest() {
	s.mu.Lock()
	p := &s.places
	var due []Stream
	if p.seen == s.next || s.over {
		due, p.held = p.held, nil
	}
	p.seen = s.next
	if p.listed = len(p.held) > 0; p.listed {
		s.cfg.rests.add(s)
	}
	s.mu.Unlock()
	release(due)
}

// release gives places back.
func release(due []Stream) {
	for _, str := range due {
		str.Release()
	}
}

// rests are the connections that hold places, in the order of when to look at them. A timer of each
// would be a goroutine of each when many come to rest together.
type rests struct {
	mu      sync.Mutex
	queue   []resting
	running bool
}

type resting struct {
	s  *Session
	at int64 // when to look, of sys.Nanotime
}

// add has s looked at after restAfter. Its mu is held.
func (r *rests) add(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, resting{s, sys.Nanotime() + int64(restAfter)})
	if !r.running {
		r.running = true
		time.AfterFunc(restAfter, r.look)
	}
}

// look looks at the connections that are due.
func (r *rests) look() {
	now := sys.Nanotime()
	r.mu.Lock()
	n := 0
	for n < len(r.queue) && r.queue[n].at <= now {
		n++
	}
	due := slices.Clone(r.queue[:n])
	r.queue = slices.Delete(r.queue, 0, n)
	r.mu.Unlock()
	for _, x := range due {
		x.s.rest()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running = len(r.queue) > 0; r.running {
		time.AfterFunc(max(time.Duration(r.queue[0].at-now), restTurn), r.look)
	} else {
		r.queue = nil
	}
}
