package bridge

import (
	"context"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/takeover"
)

// reqContext is an Exchange as its request's context. It is made with every request,
// so it allocates nothing before it is used: the first Done makes the channel, and
// only then are the parent and the peer watched.
//
// It is done when the handler has returned, when the peer is gone, or when the
// parent is done.
type reqContext Exchange

// cares is the state of a context whose end is awaited.
type cares struct {
	done  chan struct{} // nil until requested
	stop  func() bool   // ends the watch on the parent
	after map[*afterCall]struct{}
	err   error // why it has ended, unless that is context.Canceled
}

type afterCall struct{ f func() }

// StoppingKey is the key of Config.Stopping in requests' contexts.
type StoppingKey = takeover.StoppingKey

// parent returns the context that this one derives from.
func (c *reqContext) parent() context.Context { return c.c.context() }

// care returns c.cares and whether the caller is the first to need it: the
// first one must call watch. c.caring is held.
func (c *reqContext) care() (_ *cares, first bool) {
	if c.cares == nil {
		c.cares = new(cares)
		first = !c.ended
	}
	return c.cares, first
}

// Deadline implements context.Context.
func (c *reqContext) Deadline() (time.Time, bool) { return c.parent().Deadline() }

// Value implements context.Context.
func (c *reqContext) Value(key any) any {
	switch key {
	case http.ServerContextKey:
		return c.c.HTTPServer()
	case http.LocalAddrContextKey:
		if a := c.c.LocalAddr(); a != nil {
			return a
		}
		return nil
	case StoppingKey{}:
		return c.c.Stopping
	}
	return c.parent().Value(key)
}

// Done implements context.Context.
func (c *reqContext) Done() <-chan struct{} {
	c.caring.Lock()
	cares, first := c.care()
	if cares.done == nil {
		cares.done = make(chan struct{})
		if c.ended {
			close(cares.done)
		}
	}
	done := cares.done
	c.caring.Unlock()
	if first {
		c.watch()
	}
	return done
}

// Err implements context.Context.
func (c *reqContext) Err() error {
	c.caring.Lock()
	cares, first := c.care()
	c.caring.Unlock()
	if first {
		c.watch()
	}
	c.caring.Lock()
	defer c.caring.Unlock()
	switch {
	case !c.ended:
		return nil
	case cares.err != nil:
		return cares.err
	}
	return context.Canceled
}

// AfterFunc lets package context register f instead of starting a goroutine for
// every derived context.
func (c *reqContext) AfterFunc(f func()) (stop func() bool) {
	call := &afterCall{f}
	c.caring.Lock()
	if c.ended {
		c.caring.Unlock()
		go f()
		return func() bool { return false }
	}
	cares, first := c.care()
	if cares.after == nil {
		cares.after = make(map[*afterCall]struct{})
	}
	cares.after[call] = struct{}{}
	c.caring.Unlock()
	if first {
		c.watch()
	}
	return func() bool {
		c.caring.Lock()
		defer c.caring.Unlock()
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
		c.caring.Lock()
		over := c.ended
		c.cares.stop = stop
		c.caring.Unlock()
		if over {
			stop()
		}
	}
	(*Exchange)(c).watchPeer()
}

// isWatched reports whether the context's end is awaited.
func (c *reqContext) isWatched() bool {
	c.caring.Lock()
	defer c.caring.Unlock()
	return c.cares != nil
}

// cancel ends the context; only the first call counts.
func (c *reqContext) cancel(err error) {
	c.caring.Lock()
	if c.ended {
		c.caring.Unlock()
		return
	}
	c.ended = true
	cares := c.cares
	if cares == nil { // then nobody but the server has called this
		c.caring.Unlock()
		return
	}
	if err != context.Canceled {
		cares.err = err
	}
	if cares.done != nil {
		close(cares.done)
	}
	after, stop := cares.after, cares.stop
	cares.after = nil
	c.caring.Unlock()
	if stop != nil {
		stop()
	}
	for call := range after {
		go call.f()
	}
}
