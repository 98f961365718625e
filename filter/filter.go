package filter

import (
	"net/http"
	"slices"
	"sync"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// An Outcome is the decision of a filter.
type Outcome uint8

const (
	_ Outcome = iota
	// Pass passes the request to the handler.
	Pass
	// OnPlain leaves the request to the ordinary path, where the filter is called
	// again and may block. It is only for calls that are Direct; the filter
	// panics otherwise.
	OnPlain
	// Responded means that the filter has responded. It is what Call.Refuse and
	// Call.Respond return; a filter that writes to the response writer of
	// Call.Plain returns it too.
	Responded
)

// New makes middleware from a function that decides before the handler runs.
// decide must be safe for concurrent use.
func New(decide func(c *Call) Outcome) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		all := []func(c *Call) Outcome{decide}
		// Adjacent filters share one Call and one loop.
		switch inner := next.(type) {
		case *decider:
			all, next = append(all, inner.all...), inner.next
		case *directDecider:
			all, next = append(all, inner.all...), inner.next
		}
		h := &decider{slices.Clip(all), next}
		if d, ok := next.(direct.Handler); ok {
			return &directDecider{h, d}
		}
		return h
	}
}

// A decider is immutable.
type decider struct {
	all  []func(c *Call) Outcome // the first is the outermost
	next http.Handler
}

const undecided = "filter: a filter neither passed nor responded to a call that was not Direct"

var calls = sync.Pool{New: func() any { return new(Call) }}

// ServeHTTP implements http.Handler.
func (h *decider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*Call)
	c.Wire().View(w, r)
	inner := r
	defer func() {
		if c != nil { // a filter has panicked, and may still hold it: it is not pooled again
			inner = c.request()
		}
		if inner != r {
			wire.PassBack(r, inner)
		}
	}()
	for _, decide := range h.all {
		if o := decide(c); o == Responded {
			inner = c.request()
			c.free()
			c = nil
			return
		} else if o != Pass {
			panic(undecided)
		}
	}
	w, inner = c.Plain()
	c.free()
	c = nil
	h.next.ServeHTTP(w, inner)
}

func (c *Call) free() {
	c.Wire().Reset(wire.Request{})
	calls.Put(c)
}

// A directDecider is a decider whose next is direct.
type directDecider struct {
	*decider
	direct direct.Handler
}

// TakesAhead is what wire.TakesAhead asks.
func (h *directDecider) TakesAhead() bool { return wire.TakesAhead(h.direct) }

// ServeDirect implements direct.Handler.
func (h *directDecider) ServeDirect(x *direct.Exchange) bool {
	for _, decide := range h.all {
		switch decide((*Call)(x)) {
		case Pass:
		case Responded:
			return true
		default:
			x.Wire().ResetRemoteAddr()
			return false
		}
	}
	if h.direct.ServeDirect(x) {
		return true
	}
	x.Wire().ResetRemoteAddr() // the ordinary path decides again
	return false
}

// Next is the handler inside a filter of Around.
type Next struct{ h *around }

// Serve serves the call, and returns Responded, or OnPlain if the handler leaves
// it to the ordinary path.
func (n Next) Serve(c *Call) Outcome {
	if !c.Direct() {
		n.h.servePlain(c)
	} else if !n.h.direct.ServeDirect((*direct.Exchange)(c)) {
		return OnPlain
	}
	return Responded
}

// Around makes middleware from a function that also runs after the handler: it
// calls next.Serve and returns its result.
//
//	filter.Around(func(c *filter.Call, next filter.Next) filter.Outcome {
//		active.Add(1)
//		defer active.Add(-1)
//		return next.Serve(c)
//	})
//
// serve calls next.Serve at most once. It may return Pass without calling it,
// which is cheaper if there is nothing to do afterwards. It must be safe for
// concurrent use. For a request that next leaves to the ordinary path it is called
// again. The response cannot be changed after next has responded: on the ordinary path it
// may have been sent.
func Around(serve func(c *Call, next Next) Outcome) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		h := &around{serve: serve, next: next}
		if d, ok := next.(direct.Handler); ok {
			h.direct = d
			return directAround{h}
		}
		return h
	}
}

// An around is immutable.
type around struct {
	serve  func(c *Call, next Next) Outcome
	next   http.Handler
	direct direct.Handler // next, or nil
}

func (h *around) servePlain(c *Call) { h.next.ServeHTTP(c.Plain()) }

// ServeHTTP implements http.Handler.
func (h *around) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := calls.Get().(*Call)
	c.Wire().View(w, r)
	returned := false
	defer func() {
		if _, inner := c.Plain(); inner != r {
			wire.PassBack(r, inner)
		}
		if returned {
			c.free()
		}
	}()
	o := h.serve(c, Next{h})
	if o == Pass {
		o = Next{h}.Serve(c)
	}
	if o != Responded {
		panic(undecided)
	}
	returned = true
}

// A directAround is an around whose next is direct.
type directAround struct{ *around }

// TakesAhead is what wire.TakesAhead asks.
func (h directAround) TakesAhead() bool { return wire.TakesAhead(h.direct) }

// ServeDirect implements direct.Handler.
func (h directAround) ServeDirect(x *direct.Exchange) bool {
	o := h.serve((*Call)(x), Next{h.around})
	if o == Pass {
		o = Next{h.around}.Serve((*Call)(x))
	}
	if o != Responded {
		x.Wire().ResetRemoteAddr()
	}
	return o == Responded
}
