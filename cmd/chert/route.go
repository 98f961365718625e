package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
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
		h, err := s.proxied("/", site.Proxy, site.Policy, nil)
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
	r := router.New()
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
		choices, err := s.choices(site.Routes, route, policies, errs)
		if err != nil {
			return nil, err
		}
		if len(choices) == 0 {
			if err := s.route(r, route, site.Routes, errs); err != nil {
				return nil, err
			}
			continue
		}
		otherwise, err := s.alone(route, site.Routes, own, errs)
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
		h, err := s.proxied("/", site.Proxy, site.Policy, site.Routes)
		if err != nil {
			return nil, err
		}
		r.Handle("/", h)
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
func (s *sites) choices(all []config.Route, route *config.Route, policies *policies, errs *slog.Logger) (
	choices []middleware.Choice, err error) {
	for i := range all {
		c := &all[i]
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
func (s *sites) alone(route *config.Route, all []config.Route, around func(http.Handler) http.Handler,
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
func (s *sites) route(r *router.Router, route *config.Route, all []config.Route, errs *slog.Logger) error {
	var h direct.Handler
	switch {
	case route.Root != "":
		not := reservedIn(route.Path, route.Policy, all)
		files, err := s.folder(rootFolder{route.Root, route.Options, route.Rewrite, not}, errs)
		if err != nil {
			return err
		}
		h = s.trace.note("root", route.Root, inFolder{files})
	case route.Proxy != nil:
		var err error
		if h, err = s.proxied(route.Path, route.Proxy, route.Policy, all); err != nil {
			return err
		}
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

// proxied returns what forwards the requests of a path.
func (s *sites) proxied(path string, p *config.Proxy, policy config.Policy, routes []config.Route) (direct.Handler,
	error) {
	var h direct.Handler
	var err error
	if s.trace != nil {
		h, err = s.trace.forward(p)
	} else {
		h, err = s.forward.handler(p, s.logs.showsUpstreams(policy.Log))
	}
	if err == nil && len(reservedIn(path, policy, routes)) > 0 {
		h = inFolder{h} // an upstream may decode a path before it looks at it, too
	}
	return h, err
}

// inFolder is a folder beside routes. The router matches a path segment by segment, and a
// folder resolves it as a whole: "/x%2f..%2fadmin/f" and "/%2e/admin/f" are not in
// "/admin/{path...}", but would be the file admin/f, without what protects that route. No
// file has such a name, so they are not found. The same is true of an upstream that is beside
// routes with other protection.
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
