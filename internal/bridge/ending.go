package bridge

import (
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/direct/wire"
)

// Ending notifies the watchers of a response that continues after its handler, such as
// an event stream or a WebSocket, when that has ended. It is part of what continues it,
// which counts the bytes and says when it is over. Its methods are safe for concurrent
// use.
type Ending struct {
	// body has the bytes of the body that were accepted, less those that were not sent.
	body atomic.Int64

	mu       sync.Mutex
	watcher  wire.Watcher
	status   int32
	full     bool // no watcher is added any more
	returned bool // the handler, and its watchers have been kept
	over     bool
	complete bool
}

// Given counts n bytes of the body that were accepted, and if n is negative some that
// will not be sent.
func (e *Ending) Given(n int) { e.body.Add(int64(n)) }

// begin continues o, the Outcome so far.
func (e *Ending) begin(o *Outcome, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.body.Add(o.d.Body)
	e.watcher, e.status = o.watcher, int32(status)
}

// Pass is begin and handed for a response that has not begun, and whose handler has returned: w,
// which may be nil, is notified. It is called once, with neither begin nor handed.
func (e *Ending) Pass(c *Client, w wire.Watcher) {
	e.watcher = w
	e.handed(c)
}

// SetStatus sets the status of a response that Pass was called for.
func (e *Ending) SetStatus(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = int32(n)
}

// watch adds a watcher, and reports whether the handler has not returned.
func (e *Ending) watch(w wire.Watcher) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.full {
		e.watcher = wire.Both(e.watcher, w)
	}
	return !e.full
}

// handed is called when the handler has returned: then the request and the response are
// valid for the last time, and whatever has already ended is over for the watchers. It reports
// whether there are any.
func (e *Ending) handed(c *Client) (watched bool) {
	e.mu.Lock()
	e.full = true
	o := Outcome{watcher: e.watcher, c: c}
	e.mu.Unlock()
	if o.watcher != nil && !o.keep() {
		o.watcher = nil
	}
	e.note(c, func() { e.watcher, e.returned = o.watcher, true })
	return o.watcher != nil
}

// Over is called when what continues the response has ended: complete, unless some of it
// was lost. Only the first call counts. No lock may be held, and it does not wait.
func (e *Ending) Over(c *Client, lost int64, complete bool) {
	e.note(c, func() {
		if !e.over {
			e.over, e.complete = true, complete && lost == 0
			e.body.Add(-lost)
		}
	})
}

// note makes a change with mu held, and notifies the watcher, once, when the handler has returned and all is over.
func (e *Ending) note(c *Client, change func()) {
	e.mu.Lock()
	change()
	o := Outcome{c: c}
	if e.returned && e.over {
		o.watcher, e.watcher = e.watcher, nil
		o.d = wire.Delivery{Status: int(e.status), Body: max(e.body.Load(), 0), Complete: e.complete}
	}
	e.mu.Unlock()
	o.notify(0)
}

// ending returns that of a response that was passed on, or nil. It is the handler's, as
// rare is.
func (x *Exchange) ending() *Ending { return x.few().ending }

// handOver is called when the handler has returned that has passed on the response, or has
// taken the connection from the server.
func (x *Exchange) handOver() {
	e := x.ending()
	if e == nil {
		return
	}
	x.removeFiles()
	watched := e.handed(x.c)
	if t, ok := x.rare.taken.(*taken); ok && !watched && !x.Shared {
		t.aside.Store(nil) // nothing watches for the end, and there is no stream
	}
}

// Lost counts n bytes of a response that was passed on which will not be sent.
func (x *Exchange) Lost(n int) {
	if e := x.ending(); e != nil {
		e.Given(-n)
	}
}
