package router

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/view"
)

// Middleware wraps a handler. If it returns a direct.Handler, the routes it
// wraps keep the fast path of package direct.
type Middleware = func(http.Handler) http.Handler

// A Router is an http.Handler, and a direct.Handler, that calls the handler of
// the route whose pattern matches a request best. Its methods are safe for
// concurrent use, also while it serves; after a registration the next request
// rebuilds the lookup table, so register before serving.
//
// A lookup does not allocate. For a plain http.Handler, r.SetPathValue makes a map
// if the pattern has wildcards: two allocations, and several times the lookup's
// time. Paths with a percent sign are decoded segment by segment first and take
// longer; they are always served as an http.Handler.
//
// A route for GET also matches HEAD. A handler that streams until its client
// disconnects, such as one that sends events, should set its fields and return
// when r.Method is HEAD: what it writes is discarded.
//
// chert tracks for each route, by its pattern, whether its handler is quick.
type Router struct {
	Routes // the patterns without a prefix

	table atomic.Pointer[table] // nil after a registration, until it is built

	mu       sync.Mutex // guards what follows
	routes   []*Route
	names    map[string]*Route
	answer   http.Handler // miss with the Router's middleware around it
	missing  http.Handler // nil: the default
	notAllow http.Handler // nil: the default
}

// New returns a Router without routes.
func New() *Router {
	r := new(Router)
	r.Routes.root = r
	return r
}

// NotFound sets the handler of requests that no pattern matches, instead of a
// plain 404. The Router's middleware wraps it.
func (r *Router) NotFound(h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing = h
	r.table.Store(nil)
}

// MethodNotAllowed sets the handler of requests that patterns match except for
// the method, instead of a plain 405. The field Allow is set when h is called.
// The Router's middleware wraps it.
func (r *Router) MethodNotAllowed(h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notAllow = h
	r.table.Store(nil)
}

// ServeHTTP implements http.Handler.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m match
	t := r.current()
	path := req.URL.Path
	plain := strings.IndexByte(path, '%') < 0 && strings.IndexByte(req.URL.RawPath, '%') < 0 && req.RequestURI != "*"
	if plain {
		if rt, sure := t.quick(&m, req.Method, req.Host, path); rt != nil && sure {
			rt.set(req, &m, path)
			rt.handler.ServeHTTP(w, req)
			return
		}
	}
	o := t.decide(&m, req)
	if o.route == nil {
		req.Pattern = o.pattern
		t.otherwise.ServeHTTP(w, req)
		return
	}
	o.route.set(req, &m, o.path)
	o.route.handler.ServeHTTP(w, req)
}

// TakesAhead is what wire.TakesAhead asks: whether a route's handler takes a request is asked when it is found.
func (r *Router) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler. It reports false if the route's handler
// does, or is no direct.Handler; for redirects; and for paths with a percent
// sign, which ServeHTTP decodes.
func (r *Router) ServeDirect(x *direct.Exchange) bool {
	if escaped(x) {
		return false
	}
	var m match
	t := r.current()
	rt, sure := t.quick(&m, x.Method(), view.String(x.Host()), view.String(x.Path()))
	if rt == nil && x.Wire().Ahead() {
		return false
	}
	if rt == nil && t.bare {
		return t.missDirect(x)
	}
	if rt != nil && !x.Wire().Admits(rt.direct) {
		return false
	}
	if rt == nil || !sure {
		return !x.Wire().Ahead() && t.otherwiseDirect != nil && t.otherwiseDirect.ServeDirect(x)
	}
	rt.setDirect(x, &m, view.String(x.Path()))
	return rt.direct != nil && rt.direct.ServeDirect(x)
}

// escaped reports whether the path had a percent sign when received, or has one that
// middleware has put there: then it is not in normal form.
func escaped(x *direct.Exchange) bool {
	if bytes.IndexByte(x.Path(), '%') >= 0 {
		return true
	}
	i := bytes.IndexByte(x.Wire().Target(), '%')
	return i >= 0 && bytes.IndexByte(x.Wire().Target()[:i], '?') < 0
}

// current returns the table in use.
func (r *Router) current() *table {
	if t := r.table.Load(); t != nil {
		return t
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := newTable(r.routes)
	t.missing, t.notAllow = r.missing, r.notAllow
	if r.answer == nil {
		r.answer = r.wrap(miss{r})
		r.used = true
	}
	t.otherwise = r.answer
	t.otherwiseDirect, _ = t.otherwise.(direct.Handler)
	_, t.bare = t.otherwise.(miss)
	r.table.Store(t)
	return t
}

// quick finds the route of a path that has no percent sign. Unless sure, a
// redirect may take precedence.
func (t *table) quick(m *match, method, host, path string) (rt *Route, sure bool) {
	if t.hosts != nil {
		host = withoutPort(host)
	}
	rt = t.find(m, host, method, path)
	return rt, rt != nil && !m.unclean && method != http.MethodConnect &&
		(!rt.multi || rt.exact(m, path) || t.folder(host, method, path) == nil)
}
