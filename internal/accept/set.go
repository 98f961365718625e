package accept

import (
	"errors"
	"net"
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

// Broadcast sends a message to every connection, and to listeners, which ignore
// it.
func (set *Set) Broadcast(what conn.Command) {
	for _, l := range set.Loops {
		l.Do(func() { l.Broadcast(what) })
	}
}

// listen gives each loop its socket, and the first loops another one if there are more sockets
// than loops. stop closes them and waits until it is done; it may be called once. copies
// duplicates those that are open; the caller owns the result.
func (set *Set) listen(fds []int, a *loop.Accept) (stop func(), copies func() ([]int, error), err error) {
	var (
		mu        sync.Mutex
		listeners = make([]*loop.Listener, len(fds))
		wait      sync.WaitGroup
	)
	loopOf := func(i int) *loop.Loop { return set.Loops[i%len(set.Loops)] }
	for i := range fds {
		wait.Add(1)
		l := loopOf(i)
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
		for i, ln := range listeners {
			if ln != nil {
				wait.Add(1)
				if !loopOf(i).Do(func() { ln.Close(wait.Done) }) {
					wait.Done()
				}
			}
		}
		wait.Wait()
	}
	if err != nil {
		stop()
		return nil, nil, err
	}
	copies = func() ([]int, error) {
		all := make([]int, len(fds))
		errs := make([]error, len(fds))
		var wait sync.WaitGroup
		for i, ln := range listeners {
			wait.Add(1)
			all[i], errs[i] = -1, net.ErrClosed
			if !loopOf(i).Do(func() {
				defer wait.Done()
				all[i], errs[i] = ln.Dup()
			}) {
				wait.Done()
			}
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			closeAll(all)
			return nil, err
		}
		return all, nil
	}
	return stop, copies, nil
}
