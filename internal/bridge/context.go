package bridge

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert/internal/takeover"
)

// reqContext is a request's context. It is made with every request, so it
// allocates nothing before it is used: the first Done makes the channel, and
// only then are the parent and the peer watched.
//
// It is done when the handler has returned, when the peer is gone, or when the
// parent is done.
type reqContext struct {
	x *Exchange // immutable

	mu    sync.Mutex
	err   error
	cares *cares // nil until Done, Err or AfterFunc is called
}

// cares is the state of a context whose end is awaited.
type cares struct {
	done  chan struct{} // nil until requested
	stop  func() bool   // ends the watch on the parent
	after map[*afterCall]struct{}
}

type afterCall struct{ f func() }

// StoppingKey is the key of Config.Stopping in requests' contexts.
type StoppingKey = takeover.StoppingKey

// parent returns the context that this one derives from.
func (c *reqContext) parent() context.Context { return c.x.c.context() }

// care returns c.cares and whether the caller is the first to need it: the
// first one must call watch. c.mu is held.
func (c *reqContext) care() (_ *cares, first bool) {
	if c.cares == nil {
		c.cares = new(cares)
		first = c.err == nil
	}
	return c.cares, first
}

// Deadline implements context.Context.
func (c *reqContext) Deadline() (time.Time, bool) { return c.parent().Deadline() }

// Value implements context.Context.
func (c *reqContext) Value(key any) any {
	switch key {
	case http.ServerContextKey:
		return c.x.c.HTTPServer()
	case http.LocalAddrContextKey:
		if a := c.x.c.Link.LocalAddr(); a != nil {
			return a
		}
		return nil
	case StoppingKey{}:
		return c.x.c.Stopping
	}
	return c.parent().Value(key)
}

// Done implements context.Context.
func (c *reqContext) Done() <-chan struct{} {
	c.mu.Lock()
	cares, first := c.care()
	if cares.done == nil {
		cares.done = make(chan struct{})
		if c.err != nil {
			close(cares.done)
		}
	}
	done := cares.done
	c.mu.Unlock()
	if first {
		c.watch()
	}
	return done
}

// Err implements context.Context.
func (c *reqContext) Err() error {
	c.mu.Lock()
	_, first := c.care()
	c.mu.Unlock()
	if first {
		c.watch()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// AfterFunc lets package context register f instead of starting a goroutine for
// every derived context.
func (c *reqContext) AfterFunc(f func()) (stop func() bool) {
	call := &afterCall{f}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		go f()
		return func() bool { return false }
	}
	cares, first := c.care()
	if cares.after == nil {
		cares.after = make(map[*afterCall]struct{})
	}
	cares.after[call] = struct{}{}
	c.mu.Unlock()
	if first {
		c.watch()
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, ok := cares.after[call]
		delete(cares.after, call)
		return ok
	}
}

// watch starts to watch the parent and the peer.
func (c *reqContext) watch() {
	if parent := c.parent(); parent.Done() != nil {
		if err := parent.Err(); err != nil {
			c.cancel(err)
			return
		}
		stop := context.AfterFunc(parent, func() { c.cancel(parent.Err()) })
		c.mu.Lock()
		over := c.err != nil
		c.cares.stop = stop
		c.mu.Unlock()
		if over {
			stop()
		}
	}
	c.x.watchPeer()
}

// isWatched reports whether the context's end is awaited.
func (c *reqContext) isWatched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cares != nil
}

// cancel ends the context; only the first call counts.
func (c *reqContext) cancel(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	cares := c.cares
	if cares == nil {
		c.mu.Unlock()
		return
	}
	if cares.done != nil {
		close(cares.done)
	}
	after, stop := cares.after, cares.stop
	cares.after = nil
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	for call := range after {
		go call.f()
	}
}
