package bridge

import (
	"context"
	"fmt"
	"net/http"
	"sync"
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

// clientContext is what the contexts of a client's requests, and that of its TLS handshake, have in common.
type clientContext struct {
	context.Context
	c *Client
}

func (x clientContext) Value(key any) any {
	switch key {
	case http.ServerContextKey:
		return x.c.HTTPServer()
	case http.LocalAddrContextKey:
		return x.c.LocalAddr()
	case StoppingKey{}:
		return x.c.Stopping
	}
	return x.Context.Value(key)
}

// cares is the state of a context whose end is awaited.
type cares struct {
	mu    sync.Mutex
	done  chan struct{} // nil until requested
	stop  func() bool   // ends the watch on the parent
	after map[*afterCall]struct{}
	err   error // why the context has ended; nil before
}

type afterCall struct{ f func() }

// StoppingKey is the key of Config.Stopping in requests' contexts.
type StoppingKey = takeover.StoppingKey

// parent returns the context that this one derives from.
func (c *reqContext) parent() context.Context { return c.c.context() }

// care returns c.cares, which the first call makes. That one also watches for the context's end.
func (c *reqContext) care() *cares {
	if k := c.cares.Load(); k != nil {
		return k
	}
	k := new(cares)
	k.mu.Lock() // a goroutine that finds k waits until it is known whether the context has ended
	if !c.cares.CompareAndSwap(nil, k) {
		return c.cares.Load()
	}
	// After the swap; see cancel.
	over := (*Exchange)(c).is(cancelled)
	if over {
		k.err = context.Canceled
	}
	k.mu.Unlock()
	if !over {
		c.watch(k)
	}
	return k
}

func (c *reqContext) Deadline() (time.Time, bool) { return c.parent().Deadline() }

func (c *reqContext) Value(key any) any { return clientContext{c.parent(), c.c}.Value(key) }

func (c *reqContext) Done() <-chan struct{} {
	k := c.care()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done == nil {
		k.done = make(chan struct{})
		if k.err != nil {
			close(k.done)
		}
	}
	return k.done
}

func (c *reqContext) Err() error {
	k := c.care()
	err := k.ended()
	if err == nil {
		// What watches the parent is another goroutine.
		if err = c.parent().Err(); err != nil {
			c.cancel(err)
			err = k.ended()
		}
	}
	return err
}

// ended returns why the context has ended, or nil.
func (k *cares) ended() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// String is what package context shows of a context of net/http's server: not the request.
func (c *reqContext) String() string { return fmt.Sprint(c.parent()) + ".WithCancel" }

// AfterFunc lets package context register f instead of starting a goroutine for
// every derived context.
func (c *reqContext) AfterFunc(f func()) (stop func() bool) {
	call := &afterCall{f}
	k := c.care()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		go f()
		return func() bool { return false }
	}
	if k.after == nil {
		k.after = make(map[*afterCall]struct{})
	}
	k.after[call] = struct{}{}
	return func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		_, ok := k.after[call]
		delete(k.after, call)
		return ok
	}
}

// watch starts to watch the parent and the peer.
func (c *reqContext) watch(k *cares) {
	if parent := c.parent(); parent.Done() != nil {
		if err := parent.Err(); err != nil {
			c.cancel(err)
			return
		}
		stop := context.AfterFunc(parent, func() { c.cancel(parent.Err()) })
		k.mu.Lock()
		over := k.err != nil
		k.stop = stop
		k.mu.Unlock()
		if over {
			stop()
		}
	}
	(*Exchange)(c).watchPeer()
}

// cancel ends the context; only the first call counts.
func (c *reqContext) cancel(err error) {
	c.facts.Or(cancelled) // before it loads cares: care stores that first, and loads the fact then
	if k := c.cares.Load(); k != nil {
		k.end(err)
	}
}

func (k *cares) end(err error) {
	k.mu.Lock()
	if k.err != nil {
		k.mu.Unlock()
		return
	}
	k.err = err
	if k.done != nil {
		close(k.done)
	}
	after, stop := k.after, k.stop
	k.after = nil
	k.mu.Unlock()
	if stop != nil {
		stop()
	}
	for call := range after {
		go call.f()
	}
}
