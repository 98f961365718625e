package chert

import (
	"runtime"
	"sync"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/park"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// loopSet is one loop for each of GOMAXPROCS, shared by the Serve calls of a
// server. It lives until the last of them has returned and its connections
// have ended.
type loopSet struct {
	loops  []*loop.Loop
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
	s.begunSets++
	set := &loopSet{number: s.begunSets}
	n, open := runtime.GOMAXPROCS(0), openPoller
	if s.kernel != nil {
		n, open = s.kernel.Loops, s.kernel.Poller
	}
	for range n {
		l, err := newLoop(open)
		if err != nil {
			for _, l := range set.loops {
				l.Discard()
			}
			return nil, err
		}
		l.Tally.Init(&s.observed.Names)
		set.loops = append(set.loops, l)
	}
	s.sets[set] = struct{}{}
	var running sync.WaitGroup
	for _, l := range set.loops {
		running.Go(func() {
			err := l.Run()
			s.observed.Over(l)
			if err != nil {
				s.logf("chert: an event loop failed: %v", err)
			}
		})
	}
	go func() {
		running.Wait()
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

func newLoop(open func() (poll.Poller, error)) (*loop.Loop, error) {
	p, err := open()
	if err != nil {
		return nil, err
	}
	return loop.On(p), nil
}

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
		for _, l := range set.loops {
			l.Do(l.Retire)
		}
	}
}

// each runs f on every loop's goroutine and does not wait for it.
func (set *loopSet) each(f func(l *loop.Loop)) {
	for _, l := range set.loops {
		l.Do(func() { f(l) })
	}
}

// broadcast sends a message to every connection, and to listeners, which ignore
// it.
func (set *loopSet) broadcast(what conn.Command) {
	set.each(func(l *loop.Loop) { l.Broadcast(what) })
}

// listen gives each loop its socket. stop closes them and waits until it is
// done; it may be called once.
func (set *loopSet) listen(fds []int, a *loop.Accept) (stop func(), err error) {
	var (
		mu        sync.Mutex
		listeners = make([]*loop.Listener, len(fds))
		wait      sync.WaitGroup
	)
	for i, l := range set.loops {
		wait.Add(1)
		ok := l.Do(func() {
			defer wait.Done()
			ln, e := l.Listen(fds[i], a)
			mu.Lock()
			defer mu.Unlock()
			if listeners[i] = ln; e != nil {
				err = e
				sys.Close(fds[i])
			}
		})
		if !ok {
			sys.Close(fds[i])
			wait.Done()
		}
	}
	wait.Wait()
	stop = func() {
		for i, l := range set.loops {
			if ln := listeners[i]; ln != nil {
				wait.Add(1)
				if !l.Do(func() { defer wait.Done(); ln.Close() }) {
					wait.Done()
				}
			}
		}
		wait.Wait()
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
