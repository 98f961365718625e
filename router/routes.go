package router

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/pattern"
)

// Routes registers patterns with a common prefix and common middleware.
type Routes struct {
	root       *Router
	parent     *Routes // nil for the Router's own
	prefix     string  // [HOST][/PATH], without a slash at the end
	middleware []Middleware
	used       bool // a route is registered: middleware can no longer be added
}

// Group returns a group within g: its patterns have prefix, "[HOST][/PATH]",
// before their host and path, and their handlers are wrapped in middleware,
// inside g's.
//
// The prefix "/api" makes "GET /users" the pattern "GET /api/users". It may
// have wildcards. A prefix without a leading slash, such as
// "api.example.com/v1", begins with a host. A host of one label must be the
// whole prefix, with a slash after it: "intranet/". Group panics for "api",
// which is probably a path without its slash. A group has no pattern for the
// prefix itself, without a slash: register that outside of the group.
func (g *Routes) Group(prefix string, middleware ...Middleware) *Routes {
	checkMiddleware(middleware)
	if g.prefix == "" {
		if err := checkPrefix(prefix); err != nil {
			panic("router: Group: " + err.Error())
		}
	}
	return &Routes{root: g.root, parent: g, prefix: join(g.prefix, strings.TrimSuffix(prefix, "/")),
		middleware: middleware}
}

// With returns a group without a prefix of its own:
//
//	r.With(auth).Handle("GET /private", h)
func (g *Routes) With(middleware ...Middleware) *Routes { return g.Group("", middleware...) }

// Use wraps the handlers of g and its groups in middleware; the first is the
// outermost. It panics if a route of g is already registered.
//
// The path values and the pattern of the request are set when the middleware
// runs. The Router's own middleware also wraps responses without a route: 404,
// 405, redirects and those to OPTIONS.
func (g *Routes) Use(middleware ...Middleware) {
	checkMiddleware(middleware)
	g.root.mu.Lock()
	defer g.root.mu.Unlock()
	if g.used {
		panic("router: Use must come before the routes it is for")
	}
	g.middleware = append(g.middleware, middleware...)
	g.root.table.Store(nil)
}

// wrap wraps h in the middleware of g and of the groups around g.
func (g *Routes) wrap(h http.Handler) http.Handler {
	for ; g != nil; g = g.parent {
		for i := len(g.middleware) - 1; i >= 0; i-- {
			if h = g.middleware[i](h); h == nil {
				panic("router: a middleware returned a nil handler")
			}
		}
	}
	return h
}

// checkMiddleware panics in the caller's call, not at the first route.
func checkMiddleware(all []Middleware) {
	for i, m := range all {
		if m == nil {
			panic(fmt.Sprintf("router: nil middleware (number %d of %d)", i+1, len(all)))
		}
	}
}

// Handle registers h for pattern, "[METHOD ][HOST]/PATH" in the syntax of
// http.ServeMux. It panics if the pattern is malformed, has wildcards of other
// routers (":id", "*"), or conflicts with another.
func (g *Routes) Handle(pattern string, h http.Handler) *Route {
	return g.root.register(g, pattern, h)
}

// HandleFunc registers f for pattern.
func (g *Routes) HandleFunc(pattern string, f func(http.ResponseWriter, *http.Request)) *Route {
	if f == nil {
		panic("router: nil handler")
	}
	return g.root.register(g, pattern, http.HandlerFunc(f))
}

// HandleDirect registers a direct handler function. It works on every server;
// x.PathValue returns path values.
func (g *Routes) HandleDirect(pattern string, f func(x *direct.Exchange)) *Route {
	if f == nil {
		panic("router: nil handler")
	}
	return g.root.register(g, pattern, direct.HandlerFunc(f))
}

// register adds a route to g.
func (r *Router) register(g *Routes, text string, h http.Handler) *Route {
	if h == nil {
		panic("router: nil handler")
	}
	if f, ok := h.(http.HandlerFunc); ok && f == nil {
		panic("router: nil handler")
	}
	text = underPrefix(g.prefix, text)
	p, err := pattern.Parse(text)
	if err != nil {
		panic(fmt.Sprintf("router: pattern %q: %v", text, err))
	}
	rt := &Route{pattern: p, at: caller(), text: text, own: h, root: r}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.routes {
		if why := p.Conflict(other.pattern); why != "" {
			panic(fmt.Sprintf("router: pattern %q (registered at %s) conflicts with pattern %q (registered at %s): %s",
				p.Text, rt.at, other.pattern.Text, other.at, why+wayOut(rt, other)))
		}
	}
	rt.handler = g.wrap(h)
	rt.direct, _ = rt.handler.(direct.Handler)
	for _, s := range p.Segments {
		if s.Kind == pattern.Single || s.Kind == pattern.Multi {
			rt.names = append(rt.names, s.Text)
		}
	}
	rt.multi = p.Last().Kind == pattern.Multi
	r.routes = append(r.routes, rt)
	for ; g != nil; g = g.parent {
		g.used = true
	}
	r.table.Store(nil)
	return rt
}

// join puts prefix before host and path.
func join(prefix, rest string) string {
	if prefix == "" {
		return rest
	}
	if rest != "" && rest[0] != '/' {
		panic(fmt.Sprintf("router: %q under the prefix %q must begin with a slash", rest, prefix))
	}
	return prefix + rest
}

// underPrefix puts prefix into a pattern.
func underPrefix(prefix, text string) string {
	i := strings.IndexAny(text, " \t")
	if i < 0 || prefix == "" {
		return join(prefix, text)
	}
	return text[:i+1] + join(prefix, strings.TrimLeft(text[i+1:], " \t"))
}

// caller returns the location outside this package that called one of its functions.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "chert/router.(*Routes).") &&
			!strings.Contains(f.Function, "chert/router.(*Router).") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}
