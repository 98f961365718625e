package router

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/view"
)

// This file decides what the quick lookup cannot: redirects, methods, escapes.
// Its order is that of http.ServeMux.

// An outcome is the decision on a request: a route to call, or a status to
// respond with.
type outcome struct {
	route    *Route
	path     string // in normal form, for the route's values
	status   int
	location string // for 307
	pattern  string // of the route that the redirect leads to
	allow    string // for 405 and 204
}

// decide finds what to do with r. m is that of the route.
func (t *table) decide(m *match, r *http.Request) outcome {
	if r.RequestURI == "*" {
		return outcome{status: http.StatusBadRequest}
	}
	raw := r.URL.EscapedPath()
	if (raw == "" || raw[0] != '/') && strings.HasSuffix(removed(r, raw), "/") {
		raw = "/" + raw // http.StripPrefix took the slash too: a redirect that adds it would lead here again
	}
	path, host := raw, r.URL.Host
	if r.Method != http.MethodConnect {
		path, host = pattern.CleanPath(raw), withoutPort(r.Host)
	}
	normal := normalPath(path)
	rt := t.find(m, host, r.Method, normal)
	if rt == nil || !rt.exact(m, normal) {
		if to := t.folder(host, r.Method, normal); to != nil {
			return outcome{status: http.StatusTemporaryRedirect, pattern: to.text,
				location: location(r, raw, pattern.CleanPath(path)+"/")}
		}
	}
	switch {
	case r.Method == http.MethodConnect:
		// RFC 9110 section 9.3.6: the Host field is the target's own.
		rt = t.find(m, r.Host, r.Method, normal)
	case path != raw:
		o := outcome{status: http.StatusTemporaryRedirect, location: location(r, raw, path)}
		if rt != nil {
			o.pattern = rt.text
		}
		return o
	}
	if rt != nil {
		return outcome{route: rt, path: normal}
	}
	return t.refuse(host, r.Method, normal)
}

// refuse returns the outcome if there is no route.
func (t *table) refuse(host, method, path string) outcome {
	o := outcome{status: http.StatusNotFound}
	if o.allow = t.allow(host, path); o.allow != "" {
		o.status = http.StatusMethodNotAllowed
		if method == http.MethodOptions {
			o.status = http.StatusNoContent
		}
	}
	return o
}

// location is where a redirect of r from raw to path leads. A prefix that was
// removed from the path before it came here is restored.
func location(r *http.Request, raw, path string) string {
	if prefix := removed(r, raw); prefix != "" {
		path = pattern.CleanPath(prefix + path) // one slash at its beginning: it names no host
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return path
}

// removed returns the prefix of the path that was removed before r came here, so that raw
// remains; "" if there is none, or it is not known.
func removed(r *http.Request, raw string) string {
	whole, _, _ := strings.Cut(r.RequestURI, "?")
	prefix, ok := strings.CutSuffix(whole, raw)
	if !ok || prefix != "" && prefix[0] != '/' {
		// It names a host, or has bytes that EscapedPath, where raw comes from, escapes.
		if u, err := url.ParseRequestURI(r.RequestURI); err == nil {
			prefix, ok = strings.CutSuffix(u.EscapedPath(), raw)
		}
	}
	if !ok || prefix == "" || prefix[0] != '/' {
		return ""
	}
	return prefix
}

// miss answers requests that have no route. It decides again, since middleware
// may have changed the request.
type miss struct{ r *Router }

// ServeHTTP implements http.Handler.
func (m miss) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := m.r.current()
	o := t.decide(new(match), r)
	if o.allow != "" {
		w.Header().Set("Allow", o.allow)
	}
	switch {
	case o.status == http.StatusTemporaryRedirect:
		http.Redirect(w, r, o.location, o.status)
	case o.status == http.StatusBadRequest:
		if r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		w.WriteHeader(o.status)
	case o.status == http.StatusNoContent:
		w.WriteHeader(o.status)
	case o.status == http.StatusMethodNotAllowed && t.notAllow != nil:
		t.notAllow.ServeHTTP(w, r)
	case o.status == http.StatusMethodNotAllowed:
		http.Error(w, http.StatusText(o.status), o.status)
	case t.missing != nil:
		t.missing.ServeHTTP(w, r)
	default:
		// Also if there is a route now: middleware has changed the path.
		http.NotFound(w, r)
	}
}

// ServeDirect implements direct.Handler. It leaves redirects to ServeHTTP.
func (m miss) ServeDirect(x *direct.Exchange) bool {
	var ma match
	t := m.r.current()
	return !escaped(x) && t.find(&ma, withoutPort(view.String(x.Host())), x.Method(), view.String(x.Path())) == nil &&
		t.missDirect(x)
}

// missDirect answers x if its path is clean and has no route.
func (t *table) missDirect(x *direct.Exchange) bool {
	path, host := view.String(x.Path()), withoutPort(view.String(x.Host()))
	if x.Method() == http.MethodConnect || !pattern.IsClean(path) || t.folder(host, x.Method(), path) != nil {
		return false
	}
	o := t.refuse(host, x.Method(), path)
	own := t.missing
	if o.allow != "" {
		own = t.notAllow
	}
	if d, ok := own.(direct.Handler); own != nil && o.status != http.StatusNoContent {
		if !ok {
			return false
		}
		if o.allow != "" {
			x.SetHeader("Allow", o.allow)
		}
		return d.ServeDirect(x)
	}
	switch o.status {
	case http.StatusNotFound:
		x.Send(refusal.NotFound)
	case http.StatusNoContent:
		x.SetStatus(o.status)
		x.SetHeader("Allow", o.allow)
	default:
		x.SetStatus(o.status)
		x.SetHeader("Allow", o.allow)
		x.SetHeader("Content-Type", "text/plain; charset=utf-8")
		x.SetHeader("X-Content-Type-Options", "nosniff")
		io.WriteString(x, http.StatusText(o.status)+"\n")
	}
	return true
}
