package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
)

// open makes the handler of a site. Its folders are closed by s.close, also after an
// error.
func (s *sites) open(site config.Site, errs *slog.Logger) (direct.Handler, error) {
	policies := s.policies(errs)
	around, err := policies.of(site.Policy)
	if err != nil {
		return nil, err
	}
	if len(site.Routes) == 0 && site.Proxy != nil {
		h, err := s.proxied(site.Proxy, site.Policy)
		if err != nil {
			return nil, err
		}
		return around(h).(direct.Handler), nil
	}
	if len(site.Routes) == 0 {
		h, err := s.folder(rootFolder{site.Root, site.Options, site.Rewrite, nil}, errs)
		if err != nil {
			return nil, err
		}
		return around(s.trace.note("root", site.Root, h)).(direct.Handler), nil
	}
	r, routes := router.New(), siteRoutes{site.Routes, paths(&site)}
	// The router calls it for each route when that is added, and in the end for what it
	// responds itself: 404, 405, OPTIONS and redirects to clean paths.
	own := around
	r.Use(func(next http.Handler) http.Handler { return own(next) })
	for i := range site.Routes {
		route := &site.Routes[i]
		if route.When != nil {
			continue // with the one that it is in the place of
		}
		if own, err = s.around(route, policies); err != nil {
			return nil, err
		}
		choices, err := s.choices(routes, route, policies, errs)
		if err != nil {
			return nil, err
		}
		if len(choices) == 0 {
			if err := s.route(r, route, routes, errs); err != nil {
				return nil, err
			}
			continue
		}
		otherwise, err := s.alone(route, routes, own, errs)
		if err != nil {
			return nil, err
		}
		h, err := middleware.Choose(otherwise, choices...)
		if err != nil {
			return nil, err
		}
		own = func(h http.Handler) http.Handler { return h } // each choice has its own
		for _, pattern := range route.Patterns() {
			r.Handle(pattern, h)
		}
	}
	own = func(h http.Handler) http.Handler {
		return s.trace.note("route", "none", around(h).(direct.Handler))
	}
	if site.Proxy != nil {
		h, err := s.proxied(site.Proxy, site.Policy)
		if err != nil {
			return nil, err
		}
		r.Handle("/", asDecoded{h, routes.paths, "/"})
	}
	if site.Root != "" {
		not := reservedIn("/", site.Policy, site.Routes)
		h, err := s.folder(rootFolder{site.Root, site.Options, site.Rewrite, not}, errs)
		if err != nil {
			return nil, err
		}
		r.Handle("/", s.trace.note("root", site.Root, inFolder{h}))
	}
	return r, nil
}

// around returns the middleware of a route.
func (s *sites) around(route *config.Route, policies *policies) (func(http.Handler) http.Handler, error) {
	policy, err := policies.of(route.Policy)
	return func(h http.Handler) http.Handler {
		return s.trace.note("route", route.Path+" in "+route.At.String(), policy(h).(direct.Handler))
	}, err
}

// choices returns the routes with a condition that are tried before route.
func (s *sites) choices(all siteRoutes, route *config.Route, policies *policies, errs *slog.Logger) (
	choices []middleware.Choice, err error) {
	for i := range all.routes {
		c := &all.routes[i]
		if c.When == nil || c.Key() != route.Key() {
			continue
		}
		around, err := s.around(c, policies)
		if err != nil {
			return nil, err
		}
		h, err := s.alone(c, all, around, errs)
		if err != nil {
			return nil, err
		}
		choices = append(choices, middleware.Choice{When: *c.When, Handler: h})
	}
	return choices, nil
}

// alone returns the handler of a route in a router of its own, which finds the wildcards
// of its path.
func (s *sites) alone(route *config.Route, all siteRoutes, around func(http.Handler) http.Handler,
	errs *slog.Logger) (http.Handler, error) {
	r := router.New()
	r.Use(around)
	return r, s.route(r, route, all, errs)
}

// A rootFolder is the root of a site or of a route.
type rootFolder struct {
	root    string
	options static.Options
	rewrite []middleware.RewriteRule
	not     reserved
}

// folder opens a folder.
func (s *sites) folder(f rootFolder, errs *slog.Logger) (direct.Handler, error) {
	o := middleware.RewriteOptions{Rules: f.rewrite}
	f.options.Logger = errs
	if len(f.not) > 0 {
		f.options.Guarded, o.Not = f.not.has, f.not.has
	}
	rewrite, err := middleware.Rewrite(&o)
	if err != nil {
		return nil, err
	}
	files, err := static.New(f.root, &f.options)
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, files)
	h := rewrite(s.trace.path(files))
	if f.options.NotFound != "" {
		h = keep404(h)
	}
	return h.(direct.Handler), nil
}

// withErrorPages returns h with pages for its errors.
func withErrorPages(h http.Handler, pages map[int]*middleware.ErrorPage) (http.Handler, error) {
	wrap, err := middleware.ErrorPages(&middleware.ErrorPagesOptions{Pages: pages})
	if err != nil {
		return nil, err
	}
	return wrap(h), nil
}

// keep404 keeps not_found's page from being replaced by that of a wider table of pages.
var keep404 = middleware.Must(middleware.ErrorPages(&middleware.ErrorPagesOptions{
	Pages: map[int]*middleware.ErrorPage{http.StatusNotFound: nil}}))

// route adds a route, one of all of its site, whose pattern config has checked.
func (s *sites) route(r *router.Router, route *config.Route, all siteRoutes, errs *slog.Logger) error {
	var h direct.Handler
	switch {
	case route.Root != "":
		not := reservedIn(route.Path, route.Policy, all.routes)
		files, err := s.folder(rootFolder{route.Root, route.Options, route.Rewrite, not}, errs)
		if err != nil {
			return err
		}
		h = s.trace.note("root", route.Root, inFolder{files})
	case route.Proxy != nil:
		proxied, err := s.proxied(route.Proxy, route.Policy)
		if err != nil {
			return err
		}
		h = asDecoded{proxied, all.paths, route.Path}
	case route.Respond != nil && len(route.Respond.Wire().Body()) > 0:
		h = s.trace.note("respond", strconv.Itoa(route.Respond.Wire().Status()),
			middleware.OwnErrors(route.Respond).(direct.Handler))
	case route.Respond != nil:
		h = s.trace.note("respond", strconv.Itoa(route.Respond.Wire().Status()), route.Respond)
	default:
		h = s.trace.note("redirect", route.To, &redirect{route.Target, route.Status})
	}
	for _, pattern := range route.Patterns() {
		if route.Root != "" {
			// The path in the folder is what the wildcard at the end has matched.
			r.Mount(pattern[:strings.LastIndexByte(pattern, '/')+1], h)
		} else {
			r.Handle(pattern, h)
		}
	}
	return nil
}

// proxied returns what forwards requests.
func (s *sites) proxied(p *config.Proxy, policy config.Policy) (direct.Handler, error) {
	var h direct.Handler
	var err error
	if s.trace != nil {
		h, err = s.trace.forward(p)
	} else {
		h, err = s.forward.handler(p, s.logs.showsUpstreams(policy.Log))
	}
	if err != nil {
		return nil, err
	}
	return s.trace.hide(p, h)
}

// siteRoutes are the routes of a site, and the same as a router that finds their paths.
type siteRoutes struct {
	routes []config.Route
	paths  *router.Router
}

// paths returns a router whose handlers set a foundPath to the paths of the site's routes.
func paths(site *config.Site) *router.Router {
	r := router.New()
	for i := range site.Routes {
		route := &site.Routes[i]
		if route.When != nil {
			continue // with the one that it is in the place of
		}
		for _, pattern := range route.Patterns() {
			r.Handle(pattern, routePath(route.Path))
		}
	}
	if site.Proxy != nil || site.Root != "" {
		r.Handle("/", routePath("/"))
	}
	return r
}

// A routePath notes that its route was found.
type routePath string

// ServeHTTP implements http.Handler.
func (p routePath) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.(*foundPath).path = string(p) }

// foundPath is an http.ResponseWriter for routePaths: it has the path of the route that was
// found, "" for none, or a redirect.
type foundPath struct{ path string }

func (*foundPath) Header() http.Header         { return http.Header{} }
func (*foundPath) Write(p []byte) (int, error) { return len(p), nil }
func (*foundPath) WriteHeader(int)             {}

// asDecoded forwards the requests of a route. The router matches a path segment by segment, and
// an upstream may decode it as a whole, and then clean it, before it looks at it: for that
// "/public/..%2fadmin" is "/admin". So such a path is only forwarded if its route is the same
// when it is decoded, and not found otherwise.
//
// On the fast path there are no such paths, as with inFolder.
type asDecoded struct {
	direct.Handler
	paths *router.Router
	path  string // of the route
}

// ServeHTTP implements http.Handler.
func (a asDecoded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.IndexByte(r.URL.EscapedPath(), '%') >= 0 && !a.sameDecoded(r) {
		http.NotFound(w, r)
		return
	}
	a.Handler.ServeHTTP(w, r)
}

// TakesAhead is what wire.TakesAhead asks.
func (a asDecoded) TakesAhead() bool { return wire.TakesAhead(a.Handler) }

// sameDecoded reports whether the path of r has the same route when it is decoded and cleaned.
func (a asDecoded) sameDecoded(r *http.Request) bool {
	// A backslash separates segments too on Windows.
	decoded := strings.ReplaceAll(r.URL.Path, `\`, "/")
	clean := path.Clean("/" + decoded)
	switch last := decoded[strings.LastIndexByte(decoded, '/')+1:]; last {
	case "", ".", "..":
		if clean != "/" {
			clean += "/"
		}
	}
	var found foundPath
	a.paths.ServeHTTP(&found, &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: clean}})
	return found.path == a.path
}

// inFolder is a folder beside routes. The router matches a path segment by segment, and a
// folder resolves it as a whole: "/x%2f..%2fadmin/f" and "/%2e/admin/f" are not in
// "/admin/{path...}", but would be the file admin/f, without what protects that route. No
// file has such a name, so they are not found.
//
// On the fast path there are no such paths: the router leaves those with a percent sign,
// and unclean ones, to the ordinary path.
type inFolder struct{ direct.Handler }

// ServeHTTP implements http.Handler.
func (f inFolder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !segmentsAsWritten(r.URL.EscapedPath()) {
		http.NotFound(w, r)
		return
	}
	f.Handler.ServeHTTP(w, r)
}

// segmentsAsWritten reports whether decoding leaves a path, as the client wrote it, with
// the same segments. A backslash separates them too on Windows.
func segmentsAsWritten(path string) bool {
	if strings.IndexByte(path, '%') < 0 {
		return true
	}
	for segment := range strings.SplitSeq(path, "/") {
		name, err := url.PathUnescape(segment)
		if err != nil || name == "." || name == ".." || strings.ContainsAny(name, `/\`) {
			return false
		}
	}
	return true
}
