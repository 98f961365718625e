package bridge

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// reqContext is a request's context. It is made with every request, so it
// holds nothing until somebody asks: the channel is made by the first Done,
// and only then are the parent and the peer watched for its sake.
//
// It is done when the handler has returned, when the peer is gone, or when the
// parent is done.
type reqContext struct {
	x      *exchange       // immutable
	parent context.Context // immutable

	mu      sync.Mutex
	done    chan struct{} // nil until asked for
	err     error
	watched bool
	stop    func() bool // ends the watch on the parent
	after   map[*afterCall]struct{}
}

type afterCall struct{ f func() }

// Deadline implements context.Context.
func (c *reqContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Value implements context.Context.
func (c *reqContext) Value(key any) any {
	switch key {
	case http.ServerContextKey:
		return c.x.c.cfg.HTTPServer()
	case http.LocalAddrContextKey:
		if a := c.x.c.t.LocalAddr(); a != nil {
			return a
		}
		return nil
	}
	return c.parent.Value(key)
}

// Done implements context.Context.
func (c *reqContext) Done() <-chan struct{} {
	c.mu.Lock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	done, first := c.done, c.beginWatch()
	c.mu.Unlock()
	if first {
		c.watch()
	}
	return done
}

// Err implements context.Context.
func (c *reqContext) Err() error {
	c.mu.Lock()
	first := c.beginWatch()
	c.mu.Unlock()
	if first {
		c.watch()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc makes package context call f when this is done instead of keeping
// a goroutine for every derived context.
func (c *reqContext) AfterFunc(f func()) (stop func() bool) {
	call := &afterCall{f}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[*afterCall]struct{})
	}
	c.after[call] = struct{}{}
	first := c.beginWatch()
	c.mu.Unlock()
	if first {
		c.watch()
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := c.after[call]
		delete(c.after, call)
		return ok
	}
}

// beginWatch reports whether the caller is the first to care. c.mu is held.
func (c *reqContext) beginWatch() bool {
	if c.watched || c.err != nil {
		return false
	}
	c.watched = true
	return true
}

func (c *reqContext) watch() {
	if c.parent.Done() != nil {
		if err := c.parent.Err(); err != nil {
			c.cancel(err)
			return
		}
		stop := context.AfterFunc(c.parent, func() { c.cancel(c.parent.Err()) })
		c.mu.Lock()
		over := c.err != nil
		c.stop = stop
		c.mu.Unlock()
		if over {
			stop()
		}
	}
	c.x.watchPeer()
}

// isWatched reports whether somebody cares.
func (c *reqContext) isWatched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watched
}

// cancel ends the context; only the first call counts.
func (c *reqContext) cancel(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	after, stop := c.after, c.stop
	c.after = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	for call := range after {
		go call.f()
	}
}
