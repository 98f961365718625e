package router

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/chert-http/chert/internal/pattern"
)

// Named names rt, for URL. It panics if another route has that name.
func (rt *Route) Named(name string) *Route {
	r := rt.root
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.names[name]; other != nil && other != rt {
		panic(fmt.Sprintf("router: pattern %q (registered at %s) has the name %q of pattern %q (registered at %s)",
			rt.text, rt.at, name, other.text, other.at))
	}
	if r.names == nil {
		r.names = map[string]*Route{}
	}
	delete(r.names, rt.name)
	r.names[name], rt.name = rt, name
	return rt
}

// Name returns the route's name, "" if it has none.
func (rt *Route) Name() string {
	rt.root.mu.Lock()
	defer rt.root.mu.Unlock()
	return rt.name
}

// URL builds a URL that the named route matches. values are the names and values
// of its wildcards, alternating; URL escapes the values. A pattern with a host
// gives "//host/path". It returns an error if there is no such route, if a
// wildcard has no value or a value no wildcard, and if a value is impossible in
// a path: a single segment must not be empty, ".", ".." or "/", and the value of
// {name...} must be clean.
func (r *Router) URL(name string, values ...string) (string, error) {
	r.mu.Lock()
	rt := r.names[name]
	r.mu.Unlock()
	if rt == nil {
		return "", fmt.Errorf("router: no route has the name %q", name)
	}
	given := map[string]string{}
	for i := 0; i+1 < len(values); i += 2 {
		given[values[i]] = values[i+1]
	}
	if len(given)*2 != len(values) {
		return "", fmt.Errorf("router: URL of %q: not pairs of different names and their values: %q", name, values)
	}
	var b strings.Builder
	if rt.pattern.Host != "" {
		b.WriteString("//" + rt.pattern.Host)
	}
	for _, s := range rt.pattern.Segments {
		text := s.Text
		if s.Kind == pattern.Single || s.Kind == pattern.Multi && text != "" {
			v, ok := given[text]
			if !ok || !takes(s, v) {
				return "", fmt.Errorf("router: URL of %q: %q of wildcard %q cannot be in %s", name, v, text, rt.text)
			}
			delete(given, text)
			text = v
		}
		b.WriteByte('/')
		b.WriteString(escape(s, text))
	}
	if len(given) > 0 {
		return "", fmt.Errorf("router: URL of %q: %s has no wildcards for %v", name, rt.text, given)
	}
	return b.String(), nil
}

// takes reports whether the wildcard s can stand for v.
func takes(s pattern.Segment, v string) bool {
	if s.Kind == pattern.Multi {
		return pattern.CleanRest(v)
	}
	return v != "/" && !pattern.Dots(v)
}

// escape returns text, a value of s, escaped for a URL.
func escape(s pattern.Segment, text string) string {
	if s.Kind != pattern.Multi {
		if text == "." || text == ".." {
			return "%2E" + strings.Repeat("%2E", len(text)-1) // of a pattern; must not be cleaned
		}
		return url.PathEscape(text)
	}
	parts := strings.Split(text, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// Walk calls f for each route in the order of registration, and for the routes
// of mounted Routers after the route they are mounted at. pattern is the
// route's pattern with the prefix it is mounted at. Walk stops at f's first
// error and returns it.
func (r *Router) Walk(f func(pattern string, rt *Route) error) error {
	return r.walk("", "", f)
}

func (r *Router) walk(host, prefix string, f func(pattern string, rt *Route) error) error {
	r.mu.Lock()
	routes := r.routes[:len(r.routes):len(r.routes)]
	r.mu.Unlock()
	for _, rt := range routes {
		p := rt.pattern
		_, path, _ := strings.Cut(p.Text[strings.LastIndexAny(p.Text, " \t")+1:], "/")
		h := p.Host
		if h == "" {
			h = host
		}
		text := h + prefix + "/" + path
		if p.Method != "" {
			text = p.Method + " " + text
		}
		if err := f(text, rt); err != nil {
			return err
		}
		m, _ := rt.own.(*mounted)
		if m == nil {
			continue
		}
		if inner, ok := m.Handler.(*Router); ok {
			if err := inner.walk(h, strings.TrimSuffix(prefix+"/"+path, "/"), f); err != nil {
				return err
			}
		}
	}
	return nil
}
