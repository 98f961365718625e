package adapt

import (
	"path"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/filename"
)

// location translates a location of a server.
func (t *inServer) location(d *directive) {
	how, path := "", d.arg(0)
	if len(d.words) > 2 {
		how, path = d.arg(0), d.arg(1)
	}
	if how == "=" && t.folders[path] != "" {
		t.internalHeaders(d)
		return
	}
	if all := prefixes(how, path, d.block); all != nil && !t.within(d, all) {
		before := len(t.site.routes)
		for _, p := range all {
			t.location(&directive{words: []string{d.name(), p.how, p.path}, block: d.block, line: d.line})
		}
		for _, r := range t.site.routes[before:] { // nginx takes the first expression that matches
			r.hidden = append(r.hidden, t.matched...)
		}
		return
	}
	regular := how == "~" || how == "~*"
	if regular && t.inherits(d) {
		t.stricter = append(t.stricter, *d)
	}
	if i := slices.IndexFunc(d.block, func(in directive) bool {
		return foreign(in) || regular && in.name() == "proxy_pass" || in.name() == "internal"
	}); i >= 0 {
		t.unknown(&d.block[i])
		t.leave(d, how, path, t.site.level())
		return
	}
	switch {
	case regular:
		t.matching(d, how, path)
	case t.falls && how != "=" && path != "/" && routable(path) && onlyFields(d.block):
		t.folder(d, how, path)
	case how != "=" && path != "/" && strings.HasSuffix(path, "/") && onlyFields(d.block) && !t.relaxed(d, path) &&
		!t.hiddenBeside(path):
		t.files(d, []string{strings.Trim(path, "/") + "/**"}, t.site.level())
	case how == "=" && routable(path) && onlyFields(d.block) && !t.relaxed(d, path) && t.isFile(d, path) &&
		!t.hiddenBeside(path):
		t.files(d, []string{literal.Replace(path)}, t.site.level())
	case (how == "=" || how == "" || how == "^~") && routable(path):
		t.route(d, how, path)
	default:
		t.leave(d, how, path, t.site.level())
	}
}

// isFile reports whether a path is the same file without the location that is for it alone.
func (t *inServer) isFile(d *directive, path string) bool {
	others := *t
	others.around = slices.DeleteFunc(slices.Clone(t.around), func(o directive) bool {
		return &o.words[0] == &d.words[0]
	})
	return !strings.HasSuffix(path, "/") && others.fileOf(path) == join(t.outer, path)
}

// foreign reports whether requests are passed to what chert does not speak to.
func foreign(d directive) bool {
	return strings.HasSuffix(d.name(), "_pass") && d.name() != "proxy_pass"
}

// leave leaves a location out, which is in what l is. What it keeps from some clients, all do not get.
func (t *inServer) leave(d *directive, how, path string, l *level) {
	t.note(d.line, "location %s is left out", path)
	status := refusal(d.block)
	if status == "" && l.name == "site" && t.relaxed(d, path) {
		status = forbidden
	}
	if status == "" {
		return
	}
	if how == "~" || how == "~*" {
		patterns := endings(path)
		switch {
		case patterns != nil:
			t.hide(patterns, status != unpassed || passes(d.block) == nil)
		case status == unpassed && hasKey(t.site.keys, "proxy"): // there are no files to keep
		default:
			t.denied(d, l)
		}
		return
	}
	if !routable(path) {
		if !strings.HasPrefix(path, "@") { // those are for other locations
			t.denied(d, l)
		}
		return
	}
	if how == "=" {
		t.site.keep(path, "")
		t.site.refuse(exactly(path), status)
		return
	}
	switch {
	case path == "/":
		t.whole = true
	case !strings.HasSuffix(path, "/"):
		t.site.keep(path, "", "*?")
	case status != internal: // which what nginx does itself leads to
		t.site.keep(path, "**")
	}
	t.site.refuse(below(path), status)
}

// routable reports whether routes can be for a path.
func routable(name string) bool {
	return strings.HasPrefix(name, "/") && !strings.ContainsAny(name, "{}?#% \t\r\n") &&
		path.Clean(name) == "/"+strings.Trim(name, "/")
}

// exactly is the pattern of a route for a path.
func exactly(path string) string {
	if strings.HasSuffix(path, "/") {
		return path + "{$}"
	}
	return path
}

// below is the pattern of a route for a path and what is below it.
func below(path string) string { return strings.TrimSuffix(path, "/") + "/{path...}" }

// hide hides what a location keeps from some, or does not pass on: files, but for those that are hidden without it, and
// what others forward, unless it is only forwarded elsewhere.
func (t *inServer) hide(patterns []string, forwarded bool) {
	for _, p := range patterns {
		if all, err := filename.NewSet([]string{p}); p[0] != '.' || err == nil && all.Has(".well-known") {
			t.site.hidden = append(t.site.hidden, p)
		}
	}
	if forwarded {
		t.matched = append(t.matched, patterns...)
	}
}

// passes returns the proxy_pass of a location, nil if there is none.
func passes(all []directive) *directive {
	for i := range all {
		if all[i].name() == "proxy_pass" {
			return &all[i]
		}
	}
	return nil
}

// onlyFields reports whether directives set nothing but header fields of files.
func onlyFields(all []directive) bool {
	fields := false
	for i := range all {
		d := &all[i]
		switch {
		case d.name() == "expires" || d.name() == "add_header" && !slices.Contains(d.words, "always"):
			fields = true
		case !slices.Contains(unneeded, d.name()):
			return false
		}
	}
	return fields
}

// falls reports whether try_files of a server, or of its location /, ends in a file: in nginx that answers only for
// what is missing there, in chert for what is missing and has no route of its own.
func falls(all []directive) bool {
	return slices.ContainsFunc(all, func(d directive) bool {
		last := d.words[len(d.words)-1]
		return d.name() == "try_files" && strings.HasPrefix(last, "/") ||
			d.name() == "location" && len(d.words) == 2 && last == "/" && falls(d.block)
	})
}

// isPrefix reports whether a location is for paths below one.
func isPrefix(d *directive) bool {
	return (len(d.words) == 2 || d.arg(0) == "^~") && d.words[len(d.words)-1] != "/"
}

// internalHeaders: the fields of an error page's location are those of the routes that answer with it.
func (t *inServer) internalHeaders(d *directive) {
	for i := range d.block {
		in := &d.block[i]
		if n := in.name(); n != "internal" && n != "root" && n != "default_type" && !slices.Contains(unneeded, n) {
			t.note(in.line, "%s of an internal location is left out: want headers of the route that has the error", n)
		}
	}
}

// route is a location with a path.
func (t *inServer) route(d *directive, how, path string) {
	r := &route{sole: how == "^~" || how == "=", relaxes: t.relaxes(d)}
	l := r.level()
	l.path = strings.TrimSuffix(path, "/")
	pattern := exactly(path)
	if how != "=" {
		pattern = below(path)
		t.beside(d, path)
	}
	if how != "=" && path == "/" {
		if t.whole = true; has(d.block, "return") {
			pattern = "/"
		}
	}
	r.key("path", quote(pattern))
	root, done, outer := "", false, len(t.matched)
	pass := passes(d.block)
	shift := shifted(d, pass, how, path)
	for i := range d.block {
		switch in := &d.block[i]; in.name() {
		case "proxy_pass":
		case "alias":
			if root = in.arg(0); how != "=" && strings.HasSuffix(path, "/") && !strings.HasSuffix(root, "/") {
				t.note(in.line, "alias %s does not end in a slash as the location does, so that nginx appends names "+
					"to its own; here they are 404", root)
				r.key("respond", internal)
				done = true
			}
		case "root":
			root = join(in.arg(0), path)
		case "return":
			done = t.answer(in, r, d.block) || done
		case "rewrite":
			if shift == nil {
				t.note(in.line, "rewrite of a location is left out: want [[site.route.rewrite]]")
			}
		case "location":
			t.nested(in, l)
		default:
			t.common(in, l)
		}
	}
	r.hidden, t.matched = slices.Clone(t.matched[outer:]), t.matched[:outer] // of the locations in it
	if pass != nil && !done {
		if done = true; !t.forward(d, pass, how == "=", path, l) {
			r.key("respond", unpassed)
		} else if shift != nil {
			r.table("[site.route.rewrite]", shift...)
		}
	}
	if !done && deniesAll(l.access) {
		done = true
		r.key("respond", forbidden) // there may be no folder
	}
	if !done {
		if how == "=" {
			t.leave(d, how, path, t.site.level())
			return
		}
		if root == "" {
			root = join(t.root, path)
		}
		r.key("root", quote(strings.TrimSuffix(root, "/")))
	}
	if done {
		r.keys = slices.DeleteFunc(r.keys, ofFiles)
		if how != "=" && !strings.HasSuffix(path, "/") {
			r.itself = path
		}
	}
	t.finish(l, !done)
	t.replaces(r, len(l.access) > 0, !done)
	t.site.add(r)
}

// beside hides what a location such as /a that keeps it from some is for and the route for /a/ and below is not.
func (t *inServer) beside(d *directive, path string) {
	if strings.HasSuffix(path, "/") {
		return
	}
	also := ""
	if t.besideHidden(d, path) {
		also = "; what is not is 404"
		t.site.keep(path, "*?")
	}
	t.note(d.line, "location %s is for all that begins with it, %s- too; here for it and what is below%s", path, path,
		also)
}

func (t *inServer) besideHidden(d *directive, path string) bool {
	return refusal(d.block) != "" || t.relaxed(d, path)
}

// hiddenBeside reports whether beside hides a path for another location, so that it needs a route of its own.
func (t *inServer) hiddenBeside(path string) bool {
	for i := range t.around {
		d := &t.around[i]
		prefix := d.words[len(d.words)-1]
		if d.name() == "location" && (len(d.words) == 2 || d.arg(0) == "^~") && !strings.HasSuffix(prefix, "/") &&
			strings.HasPrefix(path, prefix) && t.besideHidden(d, prefix) {
			return true
		}
	}
	return false
}

func deniesAll(access []directive) bool {
	return len(access) > 0 && access[0].name() == "deny" && access[0].arg(0) == "all"
}

// nested leaves out a location that is in that of l.
func (t *inServer) nested(d *directive, l *level) {
	how, path := "", d.arg(0)
	if len(d.words) > 2 {
		how, path = d.arg(0), d.arg(1)
	}
	t.leave(d, how, path, l)
}

// ofFiles reports whether a line is a key of files, which mean nothing where requests are forwarded.
func ofFiles(line string) bool {
	key, _, _ := strings.Cut(line, " = ")
	return key == "listing" || key == "index" || key == "try" || key == "root"
}

// answer translates return of a location, with what is beside it.
func (t *inServer) answer(d *directive, r *route, beside []directive) bool {
	if status, to, ok := t.returned(d); ok {
		// Of plain HTTP, as the server is; chert's is of the request's own scheme.
		if rest, ok := strings.CutPrefix(to, "http://{host}/"); ok {
			to = "/" + rest
		}
		r.key("redirect", quote(to))
		r.key("status", status)
		return true
	}
	n, ok := number(d.arg(0))
	if !ok || n < 200 || n > 599 || n/100 == 3 {
		t.unknown(d)
		return false
	}
	if n == 444 {
		t.note(d.line, "return 444 closes connections in nginx; here it is the status")
	}
	r.key("respond", d.arg(0))
	switch body := d.arg(1); {
	case strings.Contains(body, "$") && n < 400:
		t.unknown(d)
	case strings.Contains(body, "$"):
		t.note(d.line, "the text of return is left out: it has no variables")
	case body != "":
		r.key("body", quote(body))
		if text := t.textType(beside); text != "" && !slices.ContainsFunc(beside, func(o directive) bool {
			return o.name() == "add_header" && strings.EqualFold(o.arg(0), "Content-Type")
		}) {
			r.table("[site.route.response_headers]", "set = { "+quote("Content-Type")+" = "+quote(text)+" }")
		}
	}
	return true
}

// textType returns default_type for the text of return, "" if chert needs none: that of http is often for files alone.
func (t *inServer) textType(beside []directive) string {
	found := t.defaultType(beside)
	own := t.own != nil && has(beside, "default_type")
	if strings.HasPrefix(found, "text/plain") || found == "application/octet-stream" && !own {
		return ""
	}
	return found
}
