package router

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/pattern"
	"github.com/chert-http/chert/internal/view"
)

// Mount registers h for all paths below prefix, "[METHOD ][HOST]/PATH", and for
// all methods without one. h sees the path without prefix and g's own, as with
// http.StripPrefix, and the pattern and path values of the outer route until it
// sets its own. A request for prefix without a slash at its end is redirected.
//
// Together with "GET /", which has fewer methods and more paths,
// Mount("/files", h) panics, as the patterns would with ServeMux: neither is
// more specific. Write "GET /{$}" if that route is for one page only, or
// Mount("GET /files", h).
func (g *Routes) Mount(prefix string, h http.Handler) *Route {
	if h == nil {
		panic("router: nil handler")
	}
	below := prefix[strings.LastIndexAny(prefix, " \t")+1:]
	if g.prefix == "" {
		if err := checkPrefix(below); err != nil {
			panic("router: Mount: " + err.Error())
		}
	}
	if all, ok := strings.CutSuffix(prefix, "/*"); ok {
		panic(fmt.Sprintf("router: Mount(%q): it takes all paths below its prefix; write Mount(%q)", prefix, all))
	}
	text := strings.TrimSuffix(prefix, "/") + "/"
	_, path, _ := strings.Cut(g.prefix+text, "/")
	return g.root.register(g, text, &mounted{h, strings.Count(path, "/")})
}

// mounted removes segments from the path.
type mounted struct {
	http.Handler
	segments int
}

// ServeHTTP implements http.Handler.
func (m *mounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r2, u := *r, *r.URL
	r2.URL = &u
	if u.RawPath == "" {
		u.Path = u.Path[m.cut(u.Path):]
	} else {
		raw := u.EscapedPath()
		raw = raw[m.cut(raw):]
		path, err := url.PathUnescape(raw)
		if err != nil { // which EscapedPath rules out
			http.NotFound(w, r)
			return
		}
		u.Path, u.RawPath = path, raw
	}
	defer func() {
		r2.Pattern = cmp.Or(r2.Pattern, r.Pattern) // as on the fast path
		wire.PassBack(r, &r2)
	}()
	m.Handler.ServeHTTP(w, &r2)
}

// TakesAhead is what wire.TakesAhead asks.
func (m *mounted) TakesAhead() bool { return wire.TakesAhead(m.Handler) }

// ServeDirect implements direct.Handler.
func (m *mounted) ServeDirect(x *direct.Exchange) bool {
	d, ok := m.Handler.(direct.Handler)
	if !ok {
		return false
	}
	w := x.Wire()
	path := w.Path()
	w.SetPath(path[m.cut(view.String(path)):])
	done := d.ServeDirect(x)
	w.SetPath(path)
	return done
}

// cut is how many bytes of path are m's segments.
func (m *mounted) cut(path string) int {
	at := 0
	for range m.segments {
		at += 1 + pattern.SegmentEnd(path[at+1:])
	}
	return at
}
