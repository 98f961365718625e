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
	policies := s.policies()
	around, err := policies.of(site.Policy)
	if err != nil {
		return nil, err
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
	for _, route := range site.Routes {
		policy, err := policies.of(route.Policy)
		if err != nil {
			return nil, err
		}
		own = func(h http.Handler) http.Handler {
			return s.trace.note("route", route.Path+" in "+route.At.String(), policy(h).(direct.Handler))
		}
		if err := s.route(r, &route, reservedIn(route.Path, route.Policy, site.Routes), errs); err != nil {
			return nil, err
		}
	}
	own = func(h http.Handler) http.Handler {
		return s.trace.note("route", "none", around(h).(direct.Handler))
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
		f.options.TryNot, o.Not = f.not.has, f.not.has
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
	h := rewrite(files)
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

// route adds a route, whose pattern config has checked.
func (s *sites) route(r *router.Router, route *config.Route, not reserved, errs *slog.Logger) error {
	var h direct.Handler
	switch {
	case route.Root != "":
		files, err := s.folder(rootFolder{route.Root, route.Options, route.Rewrite, not}, errs)
		if err != nil {
			return err
		}
		h = s.trace.note("root", route.Root, inFolder{files})
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
