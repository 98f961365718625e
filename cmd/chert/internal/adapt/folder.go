package adapt

import (
	"slices"
	"strings"
)

// folder is a route for the files of a folder.
type folder struct {
	*route
	path  string
	first bool // regular expressions are not looked at
}

// folder is a location for what is below a path, whose files have header fields, and that try_files of others is not
// for.
func (t *inServer) folder(d *directive, how, path string) {
	bare := *d
	bare.block = slices.DeleteFunc(slices.Clone(d.block), func(in directive) bool {
		return in.name() == "expires" || in.name() == "add_header"
	})
	before := len(t.site.routes)
	if t.route(&bare, how, path); len(t.site.routes) == before { // there is one
		return
	}
	r := t.site.routes[before]
	t.files(d, []string{"**"}, r.level())
	t.ruled = append(t.ruled, folder{r, path, how == "^~"})
}

// rule has the fields of locations for single files, and for files with some extensions, hold in folders too: they come
// first in nginx.
func (t *inServer) rule() {
	const head, match = "[[site.", "rules]]\nmatch = [\""
	for _, table := range t.site.tables {
		own, ok := strings.CutPrefix(table, head+match)
		if !ok {
			continue
		}
		single := strings.HasPrefix(own, "/")
		for i := range t.ruled {
			f := &t.ruled[i]
			if inside := f.inside(own); inside != "" && (single || !f.first) {
				f.tables = append(f.tables, head+"route."+match+inside)
			}
		}
	}
}

// inside returns what begins with a pattern of the site as one of f, which is for paths below its own; "" if it is for
// others.
func (f *folder) inside(pattern string) string {
	if strings.HasPrefix(pattern, "*.") {
		return pattern
	}
	own := quote(literal.Replace(strings.Trim(f.path, "/")))
	below, ok := strings.CutPrefix(strings.TrimPrefix(pattern, "/"), own[1:len(own)-1]+"/")
	if !ok {
		return ""
	}
	return "/" + below
}
