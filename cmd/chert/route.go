package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/router"
	"github.com/chert-http/chert/static"
)

// open makes the handler of a site. Its folders are closed by s.close, also after an
// error.
func (s *sites) open(site config.Site, errs *slog.Logger) (direct.Handler, error) {
	policies := policies{logs: s.logs, auth: make(map[*basicauth.Options]func(http.Handler) http.Handler)}
	around, err := policies.of(site.Policy)
	if err != nil {
		return nil, err
	}
	if len(site.Routes) == 0 {
		h, err := s.folder(site.Root, site.Options, errs)
		if err != nil {
			return nil, err
		}
		return around(h).(direct.Handler), nil
	}
	r := router.New()
	// The router calls it for each route when that is added, and in the end for what it
	// responds itself: 404, 405, OPTIONS and redirects to clean paths.
	own := around
	r.Use(func(next http.Handler) http.Handler { return own(next) })
	for _, route := range site.Routes {
		if own, err = policies.of(route.Policy); err != nil {
			return nil, err
		}
		if err := s.route(r, &route, errs); err != nil {
			return nil, err
		}
	}
	if own = around; site.Root != "" {
		h, err := s.folder(site.Root, site.Options, errs)
		if err != nil {
			return nil, err
		}
		r.Handle("/", inFolder{h})
	}
	return r, nil
}

// folder opens a folder.
func (s *sites) folder(dir string, o static.Options, errs *slog.Logger) (*static.Handler, error) {
	o.Logger = errs
	h, err := static.New(dir, &o)
	if err == nil {
		s.files = append(s.files, h)
	}
	return h, err
}

// route adds a route, whose pattern config has checked.
func (s *sites) route(r *router.Router, route *config.Route, errs *slog.Logger) error {
	var h direct.Handler
	switch {
	case route.Root != "":
		files, err := s.folder(route.Root, route.Options, errs)
		if err != nil {
			return err
		}
		h = inFolder{files}
	case route.Respond != nil:
		h = route.Respond
	default:
		h = &redirect{route.Target, route.Status}
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

// policies makes the middleware of sites and routes. Those that share an authentication
// share what it remembers.
type policies struct {
	logs *logs
	auth map[*basicauth.Options]func(http.Handler) http.Handler
}

// of returns the middleware of a policy. Around a direct.Handler it is one.
func (p *policies) of(c config.Policy) (func(http.Handler) http.Handler, error) {
	all := p.logs.of(c.Log) // the first is the outermost
	if len(c.Headers) > 0 {
		headers, err := middleware.Headers(&middleware.HeadersOptions{Set: c.Headers})
		if err != nil {
			return nil, err
		}
		all = append(all, headers)
	}
	if c.Access != nil {
		access, err := middleware.Access(c.Access)
		if err != nil {
			return nil, err
		}
		all = append(all, access)
	}
	if c.Auth != nil {
		auth, ok := p.auth[c.Auth]
		if !ok {
			var err error
			if auth, err = basicauth.New(c.Auth); err != nil {
				return nil, err
			}
			p.auth[c.Auth] = auth
		}
		all = append(all, auth)
	}
	return func(h http.Handler) http.Handler { return middleware.Chain(h, all...) }, nil
}

// inFolder is a folder beside routes. The router matches a path segment by segment, and a
// folder resolves it as a whole: "/x%2f..%2fadmin/f" and "/%2e/admin/f" are not in
// "/admin/{path...}", but would be the file admin/f, without what protects that route. No
// file has such a name, so they are not found.
//
// On the fast path there are no such paths: the router leaves those with a percent sign,
// and unclean ones, to the ordinary path.
type inFolder struct{ *static.Handler }

// ServeHTTP implements http.Handler.
func (f inFolder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !segmentsAsWritten(r.URL.EscapedPath()) {
		notFound.ServeHTTP(w, r)
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
