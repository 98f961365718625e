package bridge

import (
	"sync"
	"time"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/sys"
)

// This file notifies the watcher of a response of its delivery.

// Outcome is what the watcher of a response will be told about its delivery. The
// zero value has no watcher.
type Outcome struct {
	watcher wire.Watcher
	c       *Client       // set before the watcher is called
	d       wire.Delivery // if none of it is lost
}

// OutcomeOf returns the Outcome of a complete answer.
func OutcomeOf(a *wire.Answer) Outcome {
	return Outcome{watcher: a.Watcher, d: wire.Delivery{Status: a.Status, Body: a.Length(), Complete: true}}
}

// Abandoned returns the Outcome of a direct answer that is not sent, because its
// handler has panicked.
func Abandoned(x *wire.Exchange) Outcome { return Outcome{watcher: x.TakeWatcher()} }

// Cut sets that of the body only n bytes were passed to the Link.
func (o *Outcome) Cut(n int64) { o.d.Body, o.d.Complete = n, false }

// Watched reports whether there is a watcher.
func (o *Outcome) Watched() bool { return o.watcher != nil }

// Watch implements the method that wire.Watch calls.
func (w *Response) Watch(watcher wire.Watcher) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked() {
		e := w.x.ending()
		return e != nil && e.watch(watcher)
	}
	if w.Done {
		return false
	}
	w.begin()
	w.watcher = wire.Both(w.watcher, watcher)
	return true
}

// Arrived implements the method that wire.Arrived calls.
func (w *Response) Arrived() (t time.Time, ok bool) {
	since := w.x.Time.Since
	return sys.Epoch().Add(time.Duration(since)), since != 0
}

// end is after the last use of Progress, and returns the Outcome. mu is held, and nothing more
// is sent.
func (w *Response) end() (o Outcome) {
	p := w.Progress
	if p == nil {
		return o
	}
	w.Progress = nil
	o.watcher, o.c = p.watcher, w.x.c
	if o.d.Body = p.Given; p.HeadOut {
		o.d.Status = p.Status
	}
	// p is the Message's again.
	o.d.Body = max(o.d.Body-w.x.m.End(), 0)
	return o
}

// Follow notifies the watcher of o, if there is one, of the delivery of the
// response, whose last byte has been passed to the Link and is in t, if it waits. Only the
// Link's owner may call it, without holding a lock.
func (c *Client) Follow(t Tail, o *Outcome) {
	if o.watcher == nil {
		return
	}
	o.c = c
	waiting, lost := t.Unsent()
	if waiting == 0 {
		o.notify(lost)
		return
	}
	if o.keep() {
		f := follows.Get().(*Outcome)
		*f = *o
		t.Follow(f)
	}
}

// FollowAlone is Follow of the connection by an owner that runs no user code, which the watcher is.
func (c *Client) FollowAlone(o *Outcome) {
	f := follows.Get().(*Outcome)
	*f = *o
	f.c = c
	if ran, _ := c.Link.Do(f); !ran {
		f.Run()
	}
	*f = Outcome{}
	follows.Put(f)
}

// Run and Ended implement conn.UserCode.
func (o *Outcome) Run()             { o.c.Follow(o.c.Link.Out(), o) }
func (o *Outcome) Ended(e exec.End) { o.c.LogEnd(e) }

// keep reports whether the watcher can be notified later. If not, what it has taken is given
// back now.
func (o *Outcome) keep() (kept bool) {
	if kept = o.call(o.watcher.Keep); !kept {
		o.call(func() { wire.Forget(o.watcher) })
	}
	return kept
}

var follows = sync.Pool{New: func() any { return new(Outcome) }}

// Sent implements conn.Follower.
func (o *Outcome) Sent(lost int64) {
	own := *o
	*o = Outcome{}
	follows.Put(o)
	own.notify(lost)
}

// call calls the watcher, whose panic is not the handler's.
func (o *Outcome) call(f func()) (returned bool) {
	return exec.Call(f, o.c.LogEnd)
}

// notify notifies the watcher, if there is one.
func (o *Outcome) notify(lost int64) {
	if o.watcher == nil {
		return
	}
	if lost > 0 {
		o.d.Body, o.d.Complete = max(o.d.Body-lost, 0), false
	}
	o.call(func() { o.watcher.Sent(o.d) })
}
