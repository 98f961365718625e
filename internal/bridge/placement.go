package bridge

import (
	"net/http"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Placement is where the handlers of connections on loops run.
type Placement uint8

const (
	Adaptive Placement = iota // as the table of past runs says
	Inline
	Pooled
)

// sampleEvery is how many runs on the loop there are for one that is timed.
const sampleEvery = 64

// judge decides where the handler of x runs. route is the pattern that a router
// has found it has, "" if there was none to ask.
func (c *Conn) judge(x *exchange, route string) {
	switch {
	case !c.onLoop:
	case c.cfg.Placement == Adaptive:
		x.places, x.target, x.method = c.cfg.Places, x.req.RequestURI, place.MethodOf(x.req.Method)
		if route != "" {
			x.places, x.target = c.cfg.Routes, route
		}
		// Unusual methods share a number, and would share their records.
		c.quick = x.method != 0 && x.places.Quick(x.method.String(), x.target, &c.memo)
	default:
		c.quick = c.cfg.Placement == Inline
	}
}

// judgeDirect decides whether a request may go the direct way. A direct handler
// promises to be quick, so it needs no proof, until it has been late.
func (c *Conn) judgeDirect(method string, target []byte) bool {
	if !c.onLoop {
		return true
	}
	c.quick = c.cfg.Placement != Pooled &&
		(!c.cfg.directLate.Load() || c.cfg.Placement == Inline || !c.cfg.Places.Struck(method, stringOf(target)))
	return c.quick
}

// Quick implements conn.Proto.
func (c *Conn) Quick() bool { return c.quick || c.busy }

// Refuse implements conn.Proto.
func (c *Conn) Refuse() { c.busy = true }

// busyAnswer is that of a server without a slot for one more handler.
var busyAnswer = direct.NewResponse(http.StatusServiceUnavailable, http.Header{
	"Content-Type": {"text/plain; charset=utf-8"}, "Retry-After": {"1"},
}, []byte("503 Service Unavailable\n"))

// serve runs the handler, and times it if that is of use.
func (c *Conn) serve(x *exchange) {
	if c.learning {
		if c.runs++; !c.quick || c.runs%sampleEvery == 0 {
			c.began = sys.Nanotime()
		}
	}
	c.cfg.handler(&x.req).ServeHTTP(&x.res, &x.req)
	c.timed()
}

// timed makes began how long the handler has taken, if it is of use.
func (c *Conn) timed() {
	if c.began != 0 {
		c.began = max(sys.Nanotime()-c.began, 1)
	}
}

// Late implements conn.Proto. The handler may go on for long: others of its kind
// must not cost their loops a driver meanwhile.
func (c *Conn) Late() {
	if c.cfg.ReuseRequests {
		c.curLock().Lock()
		defer c.curLock().Unlock()
	}
	if x := c.cur.Load(); x != nil && c.learning && x.method != 0 && !x.late.Swap(true) {
		x.places.Overstayed(x.method.String(), x.target)
	}
}

// learn notes how the handler has run. missing says that it found nothing at
// this path or for this method.
func (c *Conn) learn(x *exchange, missing bool) {
	if x.method == 0 {
		return
	}
	switch c.t.Outcome() {
	case conn.Waited:
		// The peer's doing: it must not be able to spoil a record.
	case conn.Overstayed:
		if !x.late.Swap(true) {
			x.places.Overstayed(x.method.String(), x.target)
		}
	default:
		// Not of what is not there: anybody can ask for that under any name.
		if c.began != 0 && !missing {
			x.places.Ran(x.method.String(), x.target, time.Duration(c.began))
		}
	}
}
