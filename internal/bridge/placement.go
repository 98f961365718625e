package bridge

import (
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/stats"
)

// Placement is where the handlers of connections on loops run.
type Placement uint8

const (
	Adaptive Placement = iota // as the table of past runs predicts
	Inline
	Pooled
)

// Place records what the request is known by from now on, and decides where its handler
// runs, unless m is nil: then the connection is not on a loop. route is the pattern that a
// router has matched, "" without a router.
func (x *Exchange) Place(route string, m *place.Memo) (quick bool) {
	x.target, x.route, x.method = x.Req.RequestURI, route, place.MethodOf(x.Req.Method)
	if m == nil {
		return false
	}
	if p := x.c.Placement; p != Adaptive {
		x.quick = p == Inline
		return x.quick
	}
	// Unusual methods share a number, and would share their records.
	x.learns = x.method != 0
	if x.learns {
		t, method, key := x.record()
		x.quick = t.Quick(method, key, m)
	}
	return x.quick
}

// Quick is what Place has said.
func (x *Exchange) Quick() bool { return x.quick }

// record is where the records of x are.
func (x *Exchange) record() (t *place.Table, method, key string) {
	if x.route != "" {
		return x.c.Routes, x.method.String(), x.route
	}
	return x.c.Places, x.method.String(), x.target
}

func (x *Exchange) run() {
	h := x.c.handler(&x.Req)
	if x.Way == stats.Goroutine {
		t := x.c.Link.Tally()
		t.Add(false, tally.HandlersBegun, 1)
		defer t.Add(false, tally.HandlersEnded, 1)
	}
	if x.Way != stats.Inline {
		x.facts.Or(handling)
		defer x.facts.Or(returned)
	}
	x.Time.Begin()
	defer x.Time.End() // also after a panic
	h.ServeHTTP(x.writer(), &x.Req)
}

// writer is what the handler writes to.
func (x *Exchange) writer() http.ResponseWriter {
	if x.Shared {
		return streamWriter{&x.Res}
	}
	return hijackable{&x.Res}
}

// Late records that the handler has held a loop for some time. It may continue for
// long: other requests of its route must not hold their loops meanwhile. It is
// called as conn.Session.Late is.
func (x *Exchange) Late(held time.Duration) {
	x.Time.Held(held)
	if x.learns && held > place.Quick {
		records, method, key := x.record()
		records.Overstayed(method, key, held)
	}
}

// Learn records how the handler has run, which has waited for the peer or not.
func (x *Exchange) Learn(waited bool) {
	// Not if it waited for the peer, which must not be able to spoil a record;
	// nor for 404 and 405, which any client can cause under any name.
	if t := &x.Time; x.learns && t.took != 0 && !t.late && !x.Res.missing() && !waited {
		records, method, key := x.record()
		records.Ran(method, key, time.Duration(t.took))
	}
}

func (cfg *Config) handler(r *http.Request) http.Handler {
	if cfg.GeneralOptions && r.RequestURI == "*" && r.Method == http.MethodOptions {
		return generalOptions
	}
	return cfg.UserHandler()
}

// PlaceDirect decides whether a request may go the direct way: on a loop, whether its handler may run there. A
// direct handler promises to be quick, so it needs no proof until it has once been late.
func (cfg *Config) PlaceDirect(onLoops bool, method string, target []byte) bool {
	if !onLoops || cfg.Placement == Inline {
		return true
	}
	return cfg.Placement != Pooled && (!cfg.DirectLate.Load() || !cfg.Places.Struck(method, view.String(target)))
}

// LateDirect records that a direct handler has held a loop for some time.
func (cfg *Config) LateDirect(method string, target []byte, held time.Duration) {
	if cfg.Placement == Adaptive && cfg.Places.Late(method, view.String(target), held) {
		cfg.DirectLate.Store(true)
	}
}

// UserHandler returns the server's current Handler.
func (cfg *Config) UserHandler() http.Handler {
	if h := *cfg.Handler; h != nil {
		return h
	}
	return http.DefaultServeMux
}

// generalOptions is net/http's response to "OPTIONS *".
var generalOptions = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "0")
	if r.ContentLength != 0 {
		// Read a little, so that a well-meant body does not cost the connection.
		const little = 4 << 10
		n, _ := io.Copy(io.Discard, io.LimitReader(r.Body, little+1))
		if _, ok := w.(hijackable); ok && n > little {
			w.Header().Set("Connection", "close")
		}
	}
})
