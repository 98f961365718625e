package router

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/view"
)

// A table finds routes. It is immutable once it is built.
type table struct {
	any   site
	hosts map[string]*site // nil if no pattern has a host
	// folders: a path without a slash at its end may have a route with one.
	folders bool

	// What handles requests without a route.
	otherwise         http.Handler   // wrapped in the Router's middleware
	otherwiseDirect   direct.Handler // otherwise, if it is one
	bare              bool           // it has no middleware
	missing, notAllow http.Handler   // nil: the default
}

// A site has the routes of a host, or those without one.
type site struct {
	usual   [usualMethods]*node // nil if no pattern has the method
	unusual map[string]*node
	any     *node // patterns without a method
}

// The usual methods have numbers.
const (
	get = iota
	head
	post
	put
	patch
	del
	connect
	options
	usualMethods
)

var methodNames = [usualMethods]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS"}

func methodNumber(m string) int {
	switch m {
	case "GET":
		return get
	case "HEAD":
		return head
	case "POST":
		return post
	case "PUT":
		return put
	case "PATCH":
		return patch
	case "DELETE":
		return del
	case "CONNECT":
		return connect
	case "OPTIONS":
		return options
	}
	return usualMethods
}

// newTable builds the table of routes.
func newTable(routes []*Route) *table {
	t := new(table)
	for _, rt := range routes {
		s := &t.any
		if h := rt.pattern.Host; h != "" {
			if t.hosts == nil {
				t.hosts = map[string]*site{}
			}
			if s = t.hosts[h]; s == nil {
				s = new(site)
				t.hosts[h] = s
			}
		}
		last := rt.pattern.Last().Kind
		t.folders = t.folders || (last == pattern.Multi || last == pattern.End) && len(rt.pattern.Segments) > 1
		n := s.tree(rt.pattern.Method)
		if *n == nil {
			*n = new(node)
		}
		(*n).add(rt.pattern.Segments, rt)
		if rt.pattern.Method != "" && methodNumber(rt.pattern.Method) == usualMethods {
			s.unusual[rt.pattern.Method] = *n
		}
	}
	return t
}

// tree returns where a method's tree is stored, for newTable.
func (s *site) tree(method string) **node {
	if method == "" {
		return &s.any
	}
	if i := methodNumber(method); i < usualMethods {
		return &s.usual[i]
	}
	if s.unusual == nil {
		s.unusual = map[string]*node{}
	}
	n := s.unusual[method]
	return &n
}

// find returns the best route, nil if there is none. host has no port; path is
// in normal form.
func (t *table) find(m *match, host, method, path string) *Route {
	m.n = 0
	if t.hosts != nil && host != "" {
		if s := t.hosts[host]; s != nil {
			if rt := s.find(m, method, path); rt != nil {
				return rt
			}
			m.n = 0
		}
	}
	return t.any.find(m, method, path)
}

func (s *site) find(m *match, method, path string) *Route {
	var n *node
	i := methodNumber(method)
	if i < usualMethods {
		n = s.usual[i]
	} else {
		n = s.unusual[method]
	}
	if n != nil {
		if rt := n.find(m, path); rt != nil {
			return rt
		}
		m.n = 0
	}
	if n = s.usual[get]; i == head && n != nil {
		if rt := n.find(m, path); rt != nil {
			return rt
		}
		m.n = 0
	}
	if s.any == nil {
		return nil
	}
	return s.any.find(m, path)
}

// folder returns the route that matches path with a slash added, unless a multi
// wildcard after an earlier slash matches it.
func (t *table) folder(host, method, path string) *Route {
	if !t.folders || path == "" || path[len(path)-1] == '/' {
		return nil
	}
	var buf [128]byte
	var m match
	path = view.String(append(append(buf[:0], path...), '/'))
	if rt := t.find(&m, host, method, path); rt != nil && rt.exact(&m, path) {
		return rt
	}
	return nil
}

// allowed adds the methods that have a route for path, sorted.
func (t *table) allowed(to []string, host, path string) []string {
	if s := t.hosts[host]; s != nil && host != "" {
		to = s.allowed(to, path, t.folders)
	}
	to = t.any.allowed(to, path, t.folders)
	if slices.Contains(to, "GET") {
		to = append(to, "HEAD")
	}
	slices.Sort(to)
	return slices.Compact(to)
}

func (s *site) allowed(to []string, path string, folders bool) []string {
	for i, n := range s.usual {
		if n != nil && n.either(path, folders) {
			to = append(to, methodNames[i])
		}
	}
	for m, n := range s.unusual {
		if n.either(path, folders) {
			to = append(to, m)
		}
	}
	return to
}

// either reports whether path has a route or, with folders, one with a slash
// added. That of CONNECT may be empty.
func (n *node) either(path string, folders bool) bool {
	var m match
	m.n = 0
	if n.find(&m, path) != nil {
		return true
	}
	if !folders && path != "" || strings.HasSuffix(path, "/") {
		return false
	}
	var buf [128]byte
	m.n = 0
	return n.find(&m, view.String(append(append(buf[:0], path...), '/'))) != nil
}

// allow returns the value of Allow for path, "" if no method has a route.
func (t *table) allow(host, path string) string {
	var buf [usualMethods + 2]string
	ms := t.allowed(buf[:0], host, path)
	if len(ms) == 0 {
		return ""
	}
	if i, found := slices.BinarySearch(ms, http.MethodOptions); !found {
		ms = slices.Insert(ms, i, http.MethodOptions)
	}
	return strings.Join(ms, ", ")
}

// withoutPort returns the host name of a Host field.
func withoutPort(host string) string {
	if strings.IndexByte(host, ':') < 0 {
		return host
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		return h
	}
	return host
}
