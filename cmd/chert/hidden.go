package main

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/filename"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/middleware"
)

// hiding is an action that does not forward what is hidden: such paths are not found. It is immutable.
type hiding struct {
	direct.Handler
	hidden  filename.Set
	noDots  bool
	strip   string
	rewrite func(http.Handler) http.Handler // nil: without
	trace   *trace
}

// hide returns h itself if p hides nothing.
func (t *trace) hide(p *config.Proxy, h direct.Handler) (direct.Handler, error) {
	if len(p.Hidden) == 0 && !p.NoDotfiles {
		return h, nil
	}
	set, err := filename.NewSet(p.Hidden)
	if err != nil {
		return nil, err
	}
	d := &hiding{Handler: h, hidden: set, noDots: p.NoDotfiles, strip: p.Strip, trace: t}
	if len(p.Rewrite) > 0 {
		d.rewrite, err = middleware.Rewrite(&middleware.RewriteOptions{Rules: p.Rewrite})
	}
	return d, err
}

// TakesAhead is what wire.TakesAhead asks.
func (d *hiding) TakesAhead() bool { return wire.TakesAhead(d.Handler) }

// ServeDirect implements direct.Handler.
func (d *hiding) ServeDirect(x *direct.Exchange) bool {
	if d.rewrite != nil {
		return false
	}
	_, hidden := d.hides(view.String(x.Path()))
	return !hidden && d.Handler.ServeDirect(x)
}

// ServeHTTP implements http.Handler.
func (d *hiding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, hidden := d.hides(r.URL.Path)
	if !hidden {
		d.Handler.ServeHTTP(w, r)
		return
	}
	if d.trace != nil {
		d.trace.add("hidden", fmt.Sprintf("/%s, which is not forwarded", name))
	}
	http.NotFound(w, r)
}

// hides returns the name that is hidden of those that an upstream may take a decoded path for, if there is one.
func (d *hiding) hides(path string) (string, bool) {
	path = strings.TrimPrefix(path, d.strip)
	if d.rewrite != nil {
		path = d.rewritten(path)
	}
	all := [...]string{strings.Trim(path, "/")}
	names := all[:]
	if strings.ContainsAny(path, ";\\\x00") || strings.Contains(path, "//") || strings.Contains(path, "/.") {
		names = readings(path)
	}
	i := slices.IndexFunc(names, func(name string) bool {
		return d.hidden.Has(name) || d.noDots && filename.Dotfile(name)
	})
	if i < 0 {
		return "", false
	}
	return names[i], true
}

func (d *hiding) rewritten(path string) string {
	d.rewrite(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		path = r.URL.Path
	})).ServeHTTP(nil, &http.Request{URL: &url.URL{Path: path}})
	return path
}

// parameter is one of a segment, which some servers leave out before they resolve dots, and what others take for the
// end of a name.
var parameter = regexp.MustCompile(`[;\x00][^/]*`)

// readings are the names that upstreams may find in a decoded path: cleaned, cleaned with empty segments taken for
// folders (RFC 3986 section 5.2.4), and with dots that lead nowhere, each with and without parameters.
func readings(p string) (names []string) {
	p = strings.ReplaceAll(p, `\`, "/")
	for _, p := range []string{p, parameter.ReplaceAllString(p, "")} {
		var resolved, kept []string
		for segment := range strings.SplitSeq(p, "/") {
			switch segment {
			case ".":
			case "..":
				resolved = resolved[:max(len(resolved)-1, 0)]
			default:
				resolved, kept = append(resolved, segment), append(kept, segment)
			}
		}
		for _, s := range []string{p, strings.Join(resolved, "/"), strings.Join(kept, "/")} {
			if name := path.Clean("/" + s)[1:]; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
