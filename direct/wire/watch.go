package wire

import (
	"net/http"
	"sync"
)

// This file lets access logs and counters learn what became of a response.

// A Delivery reports what became of a response.
type Delivery struct {
	// Status is that of the final response; 0 if none was begun, because the
	// handler panicked.
	Status int
	// Body is the number of bytes of the body that have been handed to the
	// operating system, without the framing of chunks. For a chunked response
	// that was cut off it may be a few bytes too low. The client may have
	// received less.
	Body int64
	// Complete: the whole response has been handed over. Otherwise the client
	// has left or was too slow, or the handler has given up.
	Complete bool
}

// A Watcher is notified of the delivery of one response. Sent is called once
// and last.
//
// If the operating system accepts the response at once, Sent is called when the
// handler has returned, on its goroutine, while the request and the response
// are still valid; it may block as the handler may. Otherwise Keep is called
// then, and Sent later on any goroutine, where it must not block: it may be an
// event loop's.
//
// A response that continues after its handler, such as an event stream or a
// WebSocket, is delivered when that has ended. The body of a WebSocket are its
// frames.
type Watcher interface {
	// Keep means that nothing of the request and the response may be used after
	// it has returned. It must not block.
	Keep()
	Sent(d Delivery)
}

// Watch registers watcher for the response of w. It must be called before the
// handler returns. It reports false, and watcher is not called, if no writer
// inside of w, by Unwrap, supports it: on servers other than chert, and after
// Hijack. Then everything that can be known is known when the handler returns.
// It does not allocate.
func Watch(w http.ResponseWriter, watcher Watcher) bool {
	for {
		switch v := w.(type) {
		case interface{ Watch(watcher Watcher) bool }:
			return v.Watch(watcher)
		case interface{ Unwrap() http.ResponseWriter }:
			w = v.Unwrap()
		default:
			return false
		}
	}
}

// Watch registers watcher for the response of x. It must be called when there
// is a response, or when the handler has panicked: the watcher of an exchange
// that ServeDirect finally leaves to the ordinary path is forgotten.
func (x *Exchange) Watch(watcher Watcher) { x.watcher = Both(x.watcher, watcher) }

// A Forgetter is a Watcher that must learn if its response is never sent: one that has
// taken something which Sent gives back.
type Forgetter interface {
	Watcher
	// Forget is called instead of Sent if ServeDirect leaves the request to the
	// ordinary path after all, if the response is discarded, or if Keep of another Watcher
	// of the response has panicked. It must not block.
	Forget()
}

// Forget forgets the Forgetters of x; other Watchers stay until Reset. Servers call it
// when ServeDirect has returned false.
func (x *Exchange) Forget() {
	if x.watcher != nil {
		x.watcher = forget(x.watcher)
	}
}

// forget returns what is left of w, nil if that is nothing.
func forget(w Watcher) Watcher {
	switch v := w.(type) {
	case *pair:
		if v.kept {
			break
		}
		a, b := v.a, v.b
		*v = pair{}
		pairs.Put(v)
		return Both(forget(a), forget(b))
	case Forgetter:
		v.Forget()
		return nil
	}
	return w
}

// Forget calls Forget of the Forgetters that Both has combined in w, nothing of which is
// notified otherwise. For servers, after a Keep that has panicked.
func Forget(w Watcher) {
	switch v := w.(type) {
	case *pair:
		Forget(v.a)
		if v.b != nil {
			Forget(v.b)
		}
	case Forgetter:
		v.Forget()
	}
}

// keep calls Keep, and Forget if that panics.
func keep(w Watcher) {
	returned := false
	defer func() {
		if !returned {
			Forget(w)
		}
	}()
	w.Keep()
	returned = true
}

// TakeWatcher removes and returns the Watcher of x. For a server that does not
// call Finish.
func (x *Exchange) TakeWatcher() Watcher {
	w := x.watcher
	x.watcher = nil
	return w
}

// Both combines a and b into one Watcher. Either may be nil. For servers.
func Both(a, b Watcher) Watcher {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	p := pairs.Get().(*pair)
	p.a, p.b = a, b
	return p
}

// kept returns w, whose Keep has been called, as a Watcher.
func kept(w Watcher) Watcher {
	p := pairs.Get().(*pair)
	p.a, p.kept = w, true
	return p
}

type pair struct {
	a, b Watcher // b may be nil
	kept bool    // Keep was called already
}

var pairs = sync.Pool{New: func() any { return new(pair) }}

// Keep implements Watcher.
func (p *pair) Keep() {
	if p.kept {
		return
	}
	p.a.Keep()
	p.b.Keep()
}

// Sent implements Watcher.
func (p *pair) Sent(d Delivery) {
	a, b := p.a, p.b
	*p = pair{}
	pairs.Put(p)
	if b != nil {
		defer b.Sent(d) // also if a panics
	}
	a.Sent(d)
}
