package wire

import (
	"net/http"
	"sync"
)

// This file is how somebody learns what became of an answer: an access log, a
// counter.

// A Delivery is what became of an answer.
type Delivery struct {
	// Status is that of the final answer; 0 if none was begun, because the handler
	// has panicked.
	Status int
	// Body is how many bytes of the body have been handed to the operating system,
	// without what frames chunks. Of an answer with chunks that was cut off it may
	// be a few bytes less than that. The client may have received less.
	Body int64
	// Complete: all of the answer has been handed over. Otherwise the client has
	// left or was too slow, or the handler has given up.
	Complete bool
}

// A Watcher is told what became of one answer. Sent is called once and last.
//
// If the client takes the answer as quickly as it is given, Sent is called when
// the handler has returned, on its goroutine, while all that the request and the
// answer consist of is still there; it may wait as the handler may. Otherwise
// Keep is called then, and Sent later by any goroutine, which must not wait: it
// may be an event loop's.
type Watcher interface {
	// Keep says that nothing of the request and the answer may be used any more
	// when it has returned. It must not wait.
	Keep()
	Sent(d Delivery)
}

// Watch has watcher told what becomes of the answer that w is for. It is to be
// called before the handler returns. It reports false, and watcher is not told
// anything, if no writer inside of w, by Unwrap, can tell: on servers other than
// chert, and after Hijack. Then all that can be known is known when the handler
// returns. It does not allocate.
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

// Watch has watcher told what becomes of the answer of x. It is to be called when
// there is an answer, or the handler has panicked: a watcher of an exchange that
// ServeDirect leaves unanswered in the end is forgotten.
func (x *Exchange) Watch(watcher Watcher) { x.watcher = Both(x.watcher, watcher) }

// TakeWatcher is who Watch was given, for a server that does not Finish x.
func (x *Exchange) TakeWatcher() Watcher {
	w := x.watcher
	x.watcher = nil
	return w
}

// Both is a and b as one Watcher. Either may be nil. For servers.
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

// kept is w, whose Keep has been called, as a Watcher.
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
