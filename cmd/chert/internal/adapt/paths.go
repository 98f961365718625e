package adapt

import (
	"regexp"
	"slices"
	"strings"
)

// tryFiles translates try_files: names of files, of which the last may be a status. They begin at the root of the site,
// here of the route.
func (t *inServer) tryFiles(d *directive, l *level) {
	var all []string
	for i, w := range d.words[1:] {
		w = strings.ReplaceAll(withoutQuery(w), "$uri", "{path}")
		if w == "" {
			continue
		}
		switch {
		case w[0] == '@':
			t.note(d.line, "try_files %s is left out: files are not looked for before a request is forwarded; want "+
				"proxy, and routes with root for folders of files", w)
			return
		case strings.ContainsAny(w, "$@?"):
			t.note(d.line, "try_files %s is left out: want try, with {path} and names of files", w)
			return
		case w[:min(1, len(w))] == "=" && i < len(d.words)-2:
			t.note(d.line, "try_files has a status that is not the last")
			return
		case w[0] != '=' && !strings.HasPrefix(w, "{path}") && l.path != "":
			rest, in := strings.CutPrefix(w, l.path)
			if !in || rest == "" || rest[0] != '/' || strings.Contains(rest, "{path}") {
				t.note(d.line, "try_files %s is left out: it is not in %s/", w, l.path)
				return
			}
			w = rest
		}
		all = append(all, w)
	}
	if slices.Equal(all, []string{"{path}", "=404"}) || slices.Equal(all, []string{"{path}", "{path}/", "=404"}) {
		return // what a folder does
	}
	l.key("try", list(all))
}

// withoutQuery returns a word of try_files without the query of the request, of which a page makes nothing.
func withoutQuery(w string) string {
	for _, query := range []string{"$is_args$args", "$is_args$query_string", "?$args", "?$query_string"} {
		if page, ok := strings.CutSuffix(w, query); ok && strings.HasSuffix(page, ".html") {
			return page
		}
	}
	return w
}

var captures = regexp.MustCompile(`\$([1-9])`)

// rewrites translates rewrite of the server, without a redirect. nginx selects the location after it, so that it is for
// one if what it begins with is, before and after.
func (t *inServer) rewrites() {
	for i := range t.moved {
		d := &t.moved[i]
		from, to := d.arg(0), captures.ReplaceAllString(d.arg(1), "{$1}")
		redirects := strings.HasPrefix(to, "http") || d.arg(2) == "redirect" || d.arg(2) == "permanent"
		if _, err := regexp.Compile(from); err != nil || len(d.words) < 3 || redirects || strings.Contains(to, "$") {
			t.note(d.line, "rewrite is left out: want [[site.rewrite]] or a route with redirect")
			continue
		}
		begin, whole := beginningOf(from)
		r, one := t.site.routeOf(begin, whole)
		begin, _, captured := strings.Cut(to, "{")
		begin, _, _ = strings.Cut(begin, "?")
		target, same := t.site.routeOf(begin, !captured)
		if !one || !same || r != target || r != nil && !r.rewritable() ||
			r == nil && t.whole && !hasKey(t.site.keys, "proxy") {
			t.note(d.line, "rewrite %s is left out: it leads from or to other locations; want "+
				"[[site.route.rewrite]] or redirect of a route", from)
			continue
		}
		table, name := t.site.table, "[site.rewrite]"
		if r != nil {
			table, name = r.table, "[site.route.rewrite]"
		}
		table(name, "from = "+quote(from), "to = "+quote(to))
	}
}

// shifts is a rewrite of all below a path: the path, whether the slash after it is captured or need not be there.
var shifts = regexp.MustCompile(`^\^(/[a-zA-Z0-9_/-]*)(/\?)?\((/)?\.\*\)\$?$`)

// shifted returns the lines of the rewrite of a location that forwards what it has below another path, nil if it has
// none that is no more than that.
func shifted(d, pass *directive, how, path string) []string {
	var only *directive
	for i := range d.block {
		if in := &d.block[i]; in.name() == "rewrite" && only == nil {
			only = in
		} else if in.name() == "rewrite" {
			return nil
		}
	}
	if only == nil || pass == nil || how == "=" || only.arg(2) != "break" {
		return nil
	}
	target, ok := parseTarget(pass.arg(0))
	m := shifts.FindStringSubmatch(only.arg(0))
	to, captured := strings.CutSuffix(only.arg(1), "$1")
	if !ok || target.uri != "" || m == nil || !captured {
		return nil
	}
	begin := m[1]
	if m[2] != "" && !strings.HasSuffix(path, "/") {
		return nil // it is for the path itself too
	}
	if m[2]+m[3] != "" {
		begin += "/"
	}
	if m[3] != "" {
		to += "/"
	}
	if begin != strings.TrimSuffix(path, "/")+"/" || !strings.HasPrefix(to, "/") || !strings.HasSuffix(to, "/") ||
		!routable(to) {
		return nil
	}
	return moved(begin, to)
}

// beginningOf returns what all that a regular expression matches begins with, and whether that is all of it.
func beginningOf(expression string) (begin string, whole bool) {
	anchored, ok := strings.CutPrefix(expression, "^")
	anchored, end := strings.CutSuffix(anchored, "$")
	e, err := regexp.Compile(anchored)
	if !ok || err != nil || strings.Contains(expression, "|") {
		return "", false
	}
	begin, complete := e.LiteralPrefix()
	return begin, complete && end
}

// routeOf returns the route that is for all that begins with a text, or is it, nil for the site itself. It is not ok if
// there may be several.
func (s *site) routeOf(begin string, whole bool) (found *route, ok bool) {
	longest := 0
	for _, r := range s.routes {
		path, below := r.path()
		switch {
		case strings.HasPrefix(begin, path) && (below || whole && path == begin):
			if len(path) > longest {
				found, longest = r, len(path)
			}
		case !whole && strings.HasPrefix(path, begin):
			return nil, false
		}
	}
	return found, true
}

// path returns the path of a route without a wildcard, and whether it is for what is below.
func (r *route) path() (path string, below bool) {
	path, wildcard, _ := strings.Cut(strings.Trim(strings.TrimPrefix(r.keys[0], "path = "), `"`), "{")
	return path, path == "/" && wildcard == "" || strings.HasSuffix(wildcard, "...}")
}

// rewritable reports whether rewrites of a route are of paths as they are requested, and none of its own is there.
func (r *route) rewritable() bool {
	path, _ := r.path()
	own := slices.ContainsFunc(r.tables, func(table string) bool { return strings.HasPrefix(table, r.moving()) })
	return !own && !hasKey(r.keys, "strip") && (hasKey(r.keys, "proxy") || hasKey(r.keys, "root") && path == "/")
}

// moving is what the table begins with that forwards what a route has below another path, up to that path.
func (r *route) moving() string {
	path, _ := r.path()
	return "[[site.route.rewrite]]\nfrom = " + quote("(?s)^"+regexp.QuoteMeta(path)+"(.*)$") + "\nto = \""
}

// errorPage translates error_page with a file.
func (t *inServer) errorPage(d *directive, l *level) {
	last := len(d.words) - 1
	uri := d.words[last]
	file := t.fileOf(uri)
	if !strings.HasPrefix(uri, "/") || strings.Contains(uri, "$") || file == "" {
		t.note(d.line, "error_page is left out: want the name of a file")
		return
	}
	var lines []string
	for _, status := range d.words[1:last] {
		if n, ok := number(status); !ok || n < 400 || n > 599 {
			t.note(d.line, "error_page %s is left out: pages have the status of the error", status)
			continue
		}
		lines = append(lines, status+" = "+quote(file))
	}
	if lines != nil {
		l.table(l.name+".errors", lines...)
	}
}

// fileOf returns the file of a path, in the folder of the location that has it; "" if that has none.
func (t *inServer) fileOf(uri string) string {
	in, path := directive{words: []string{""}}, ""
	for _, d := range t.around {
		exact := d.arg(0) == "=" && d.arg(1) == uri
		prefix := d.words[len(d.words)-1]
		below := (len(d.words) == 2 || d.arg(0) == "^~") && strings.HasPrefix(uri, prefix) && len(prefix) > len(path)
		if d.name() == "location" && (exact || below && in.arg(0) != "=") {
			in, path = d, prefix
		}
	}
	file := join(t.root, uri)
	if in.block == nil && t.whole { // location / has it
		return ""
	}
	for _, d := range in.block {
		switch {
		case d.name() == "root":
			file = join(d.arg(0), uri)
		case d.name() == "alias":
			file = d.arg(0) + strings.TrimPrefix(uri, path)
		case d.name() == "return" || strings.HasSuffix(d.name(), "_pass"):
			return ""
		}
	}
	return file
}

// accessLog translates access_log of a file.
func (t *inServer) accessLog(d *directive, l *level) {
	file := d.arg(0)
	switch {
	case file == "off":
		l.key("log", quote("off"))
		return
	case strings.HasPrefix(file, "syslog:") || strings.Contains(file, "$"):
		t.note(d.line, "access_log %s is left out: want the name of a file", file)
		return
	}
	for _, w := range d.words[min(2, len(d.words)):] {
		switch option, _, _ := strings.Cut(w, "="); option {
		case "combined", "buffer", "flush":
		case "if":
			t.note(d.line, "access_log ... if is left out: want skip of [site.log]")
		default:
			t.note(d.line, "access_log ... %s is left out: the format is combined", w)
		}
	}
	l.key("log", "{ file = "+quote(file)+`, format = "combined" }`)
}
