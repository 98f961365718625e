package chert

import (
	"cmp"
	"slices"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
)

// This file is how idle connections give way at the limit. A listener on a loop
// first asks its own loop; what is here asks everybody else.

// seekFor bounds how long one search keeps others from beginning, in nanoseconds,
// should the loop that it waits for have ended.
const seekFor = 10 * loop.BarrenFor

// seekRoom has connections that could be spared closed, on goroutines or on one of
// the loops, and does not wait for it. The gate tells who awaits a place. There is
// one search at a time, and after one in vain, or whose finds are about to end, none
// for a while.
func (s *Server) seekRoom() {
	now, until := sys.Nanotime(), s.seeking.Load()
	if until != 0 && now < until || !s.seeking.CompareAndSwap(until, now+seekFor) {
		return
	}
	// Not here: a loop must not wait for the server's lock.
	go func() {
		if s.streamsGiveWay() {
			s.seeking.Store(sys.Nanotime() + loop.BarrenFor) // until they have ended
			return
		}
		var loops []*loop.Loop
		s.lock()
		for set := range s.sets {
			loops = append(loops, set.loops...)
		}
		s.mu.Unlock()
		s.seekOn(loops)
	}()
}

// seekOn goes from loop to loop until one has found something.
func (s *Server) seekOn(loops []*loop.Loop) {
	for i, l := range loops {
		if l.Do(func() {
			if l.GiveWay() {
				s.seeking.Store(0)
			} else {
				s.seekOn(loops[i+1:])
			}
		}) {
			return
		}
	}
	s.seeking.Store(sys.Nanotime() + loop.BarrenFor)
}

const (
	// streamSample is how many connections on goroutines are looked at.
	streamSample = 256
	// streamsAtOnce bounds how many of them give way in one go: each takes some
	// milliseconds to see that no request has come meanwhile.
	streamsAtOnce = 32
)

// streamsGiveWay is Loop.GiveWay for connections on goroutines. An eighth of those
// that could be spared goes at once, as with nginx.
func (s *Server) streamsGiveWay() bool {
	s.lock()
	some := make([]*stream.Conn, 0, min(len(s.streams), streamSample))
	for c := range s.streams { // begins anywhere
		if len(some) == cap(some) {
			break
		}
		some = append(some, c)
	}
	s.mu.Unlock()
	type spare struct {
		c     *stream.Conn
		since int64
	}
	var spares []spare
	for _, c := range some {
		if since, ok := c.Spare(); ok {
			spares = append(spares, spare{c, since})
		}
	}
	slices.SortFunc(spares, func(a, b spare) int { return cmp.Compare(a.since, b.since) })
	n := min(max(len(spares)/8, 1), streamsAtOnce)
	done := false
	for _, x := range spares {
		if n > 0 && x.c.GiveWay() {
			done = true
			n--
		}
	}
	return done
}
