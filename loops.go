package chert

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/park"
	"github.com/chert-http/chert/internal/poll"
)

// loopSet is one loop for each of GOMAXPROCS, shared by the Serve calls of a
// server. It lives until the last of them has returned and its connections
// have ended.
type loopSet struct {
	*accept.Set
	number int // in the order of their beginning; immutable
	users  int // Serve calls; guarded by Server.mu
}

// useLoops returns the running loops, starting them if there are none.
func (s *Server) useLoops() (*loopSet, error) {
	s.lock()
	defer s.mu.Unlock()
	if s.current == nil {
		set, err := s.startLoops()
		if err != nil {
			return nil, err
		}
		s.current = set
	}
	s.current.users++
	return s.current, nil
}

func (s *Server) startLoops() (*loopSet, error) {
	n, open := runtime.GOMAXPROCS(0), openPoller
	if s.kernel != nil {
		n, open = s.kernel.Loops, s.kernel.Poller
	}
	all, err := accept.NewSet(n, open)
	if err != nil {
		return nil, err
	}
	for _, l := range all.Loops {
		l.Tally.Init(&s.observed.Names)
	}
	s.begunSets++
	set := &loopSet{Set: all, number: s.begunSets}
	s.sets[set] = struct{}{}
	go func() {
		set.Run(func(l *loop.Loop, err error) {
			s.observed.Over(l)
			if err != nil {
				s.logf("chert: an event loop failed: %v", err)
			}
		})
		s.mu.Lock()
		delete(s.sets, set)
		s.quiet.Broadcast()
		s.mu.Unlock()
	}()
	return set, nil
}

// openPoller opens a poller that leaves the processor to what handles the events of parked
// connections.
func openPoller() (poll.Poller, error) { return poll.New(park.Busy()) }

// releaseLoops ends a Serve call's use. The last one lets the loops end when
// their connections have.
func (s *Server) releaseLoops(set *loopSet) {
	s.lock()
	set.users--
	last := set.users == 0
	if last && s.current == set {
		s.current = nil
	}
	s.mu.Unlock()
	if last {
		for _, l := range set.Loops {
			l.Do(l.Retire)
		}
	}
}

// loopSets returns the sets of loops that have not ended, the oldest first. The lock is
// held.
func (s *Server) loopSets() (sets []*loopSet) {
	for set := range s.sets {
		sets = append(sets, set)
	}
	slices.SortFunc(sets, func(a, b *loopSet) int { return cmp.Compare(a.number, b.number) })
	return sets
}

// allLoops returns the loops that have not ended, the oldest first. The lock is held.
func (s *Server) allLoops() (all []*loop.Loop) {
	for _, set := range s.loopSets() {
		all = append(all, set.Loops...)
	}
	return all
}

// openLoops is allLoops without the lock.
func (s *Server) openLoops() []*loop.Loop {
	s.lock()
	defer s.mu.Unlock()
	return s.allLoops()
}

// someStreams returns up to most connections on goroutines, in a random order.
func (s *Server) someStreams(most int) []conn.Driven {
	s.lock()
	defer s.mu.Unlock()
	some := make([]conn.Driven, 0, min(len(s.streams), most))
	for c := range s.streams { // starts at a random one
		if len(some) == cap(some) {
			break
		}
		some = append(some, c)
	}
	return some
}
