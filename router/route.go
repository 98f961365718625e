package router

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/view"
)

// A Route is a pattern and its handler. It is immutable except for its name.
type Route struct {
	pattern *pattern.Pattern
	at      string         // where it was registered
	text    string         // the pattern's
	handler http.Handler   // with its middleware around it
	direct  direct.Handler // handler, if it is one
	own     http.Handler   // without middleware; of Mount, a *mounted
	root    *Router
	name    string // guarded by root.mu

	names []string // of the wildcards; "" for a slash at the end
	multi bool     // the last wildcard is a multi one, or a slash at the end
}

// Pattern returns the pattern with its group's prefix.
func (rt *Route) Pattern() string { return rt.text }

// Handler returns the handler that was registered or mounted, without middleware.
func (rt *Route) Handler() http.Handler {
	if m, ok := rt.own.(*mounted); ok {
		return m.Handler
	}
	return rt.own
}

// exact reports whether no multi wildcard has matched a part of the path.
func (rt *Route) exact(m *match, path string) bool {
	return !rt.multi || m.value(m.n-1, path) == ""
}

// set sets r's pattern and path values.
func (rt *Route) set(r *http.Request, m *match, path string) {
	r.Pattern = rt.text
	for i, name := range rt.names {
		if name != "" {
			r.SetPathValue(name, plainValue(m.value(i, path)))
		}
	}
}

// setDirect is set on an exchange, for a path without a percent sign.
func (rt *Route) setDirect(x *direct.Exchange, m *match, path string) {
	w := x.Wire()
	w.SetPattern(rt.text)
	for i, name := range rt.names {
		if name != "" {
			w.SetPathValue(name, view.Bytes(m.value(i, path)))
		}
	}
}
