package bridge

import (
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/stats"
)

// Placement is where the handlers of connections on loops run.
type Placement uint8

const (
	Adaptive Placement = iota // as the table of past runs predicts
	Inline
	Pooled
)

// Place decides where the handler of x runs, for a connection on a loop. route is
// the pattern that a router has matched, "" without a router.
func (x *Exchange) Place(route string, m *place.Memo) (quick bool) {
	x.Note(route)
	if p := x.c.Placement; p != Adaptive {
		x.quick = p == Inline
		return x.quick
	}
	// Unusual methods share a number, and would share their records.
	x.learns = x.method != 0
	x.quick = x.learns && x.table().Quick(x.method.String(), x.key(), m)
	return x.quick
}

// Note records what the request is known by from now on. Place does.
func (x *Exchange) Note(route string) {
	x.target, x.route, x.method = x.Req.RequestURI, route, place.MethodOf(x.Req.Method)
}

// Quick is what Place has said.
func (x *Exchange) Quick() bool { return x.quick }

// table has the records of x, by key.
func (x *Exchange) table() *place.Table {
	if x.route != "" {
		return x.c.Routes
	}
	return x.c.Places
}

func (x *Exchange) key() string {
	if x.route != "" {
		return x.route
	}
	return x.target
}

// run runs the handler.
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
		return (*StreamWriter)(&x.Res)
	}
	return &x.Res
}

// Late records that the handler has held a loop for some time. It may continue for
// long: other requests of its route must not hold their loops meanwhile. It is
// called as conn.Session.Late is.
func (x *Exchange) Late(held time.Duration) {
	x.Time.Held(held)
	if x.learns && held > place.Quick {
		x.table().Overstayed(x.method.String(), x.key(), held)
	}
}

// Learn records how the handler has run, which has waited for the peer or not.
func (x *Exchange) Learn(waited bool) {
	// Not if it waited for the peer, which must not be able to spoil a record;
	// nor for 404 and 405, which any client can cause under any name.
	if t := &x.Time; x.learns && t.took != 0 && !t.late && !x.Res.missing() && !waited {
		x.table().Ran(x.method.String(), x.key(), time.Duration(t.took))
	}
}

func (cfg *Config) handler(r *http.Request) http.Handler {
	if cfg.GeneralOptions && r.RequestURI == "*" && r.Method == http.MethodOptions {
		return generalOptions
	}
	return cfg.UserHandler()
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
		if w, ok := w.(*Response); ok && n > little {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.TooLarge()
		}
	}
})
