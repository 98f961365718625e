package bridge

import (
	"io"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/place"
	"github.com/chert-http/chert/internal/sys"
)

// Placement is where the handlers of connections on loops run.
type Placement uint8

const (
	Adaptive Placement = iota // as the table of past runs predicts
	Inline
	Pooled
)

// sampleEvery: one in so many runs on the loop is timed.
const sampleEvery = 64

// Place decides where the handler of x runs, for a connection on a loop. route is
// the pattern that a router has matched, "" without a router.
func (x *Exchange) Place(route string, m *place.Memo) (quick bool) {
	cfg := x.c.Config
	if cfg.Placement != Adaptive {
		x.quick = cfg.Placement == Inline
		return x.quick
	}
	x.target, x.method = x.Req.RequestURI, place.MethodOf(x.Req.Method)
	if x.routed = route != ""; x.routed {
		x.target = route
	}
	// Unusual methods share a number, and would share their records.
	x.quick = x.method != 0 && x.table().Quick(x.method.String(), x.target, m)
	return x.quick
}

// Quick is what Place has said.
func (x *Exchange) Quick() bool { return x.quick }

func (x *Exchange) table() *place.Table {
	if x.routed {
		return x.c.Routes
	}
	return x.c.Places
}

// run runs the handler, and times it if that is useful.
func (x *Exchange) run() {
	h := x.c.handler(&x.Req)
	if x.c.runs++; x.method == 0 || x.quick && x.c.runs%sampleEvery != 0 {
		h.ServeHTTP(x.writer(), &x.Req)
		return
	}
	x.began = sys.Nanotime()
	defer func() { x.began = max(sys.Nanotime()-x.began, 1) }() // also after a panic
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
	if x.method != 0 && held > place.Quick {
		x.late = true
		x.table().Overstayed(x.method.String(), x.target, held)
	}
}

// Learn records how the handler has run, after the Link's Leave.
func (x *Exchange) Learn(l conn.Link) {
	// Not if it waited for the peer, which must not be able to spoil a record;
	// nor for 404 and 405, which any client can cause under any name.
	if x.began != 0 && !x.late && !x.Res.missing && !l.Waited() {
		x.table().Ran(x.method.String(), x.target, time.Duration(x.began))
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
