package accept

import (
	"sync"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/poll"
	"github.com/chert-http/chert/internal/sys"
)

// Set is event loops that serve the same listeners.
type Set struct {
	Loops []*loop.Loop // immutable
}

// NewSet makes n loops, which do not run yet.
func NewSet(n int, open func() (poll.Poller, error)) (*Set, error) {
	set := new(Set)
	for range n {
		p, err := open()
		if err != nil {
			for _, l := range set.Loops {
				l.Discard()
			}
			return nil, err
		}
		set.Loops = append(set.Loops, loop.On(p))
	}
	return set, nil
}

// Run runs the loops until all have ended.
func (set *Set) Run(ended func(l *loop.Loop, err error)) {
	var running sync.WaitGroup
	for _, l := range set.Loops {
		running.Go(func() { ended(l, l.Run()) })
	}
	running.Wait()
}

// Each runs f on every loop's goroutine and does not wait for it.
func (set *Set) Each(f func(l *loop.Loop)) {
	for _, l := range set.Loops {
		l.Do(func() { f(l) })
	}
}

// Broadcast sends a message to every connection, and to listeners, which ignore
// it.
func (set *Set) Broadcast(what conn.Command) {
	set.Each(func(l *loop.Loop) { l.Broadcast(what) })
}

// listen gives each loop its socket. stop closes them and waits until it is
// done; it may be called once.
func (set *Set) listen(fds []int, a *loop.Accept) (stop func(), err error) {
	var (
		mu        sync.Mutex
		listeners = make([]*loop.Listener, len(fds))
		wait      sync.WaitGroup
	)
	for i, l := range set.Loops {
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
		for i, l := range set.Loops {
			if ln := listeners[i]; ln != nil {
				wait.Add(1)
				if !l.Do(func() { ln.Close(wait.Done) }) {
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
