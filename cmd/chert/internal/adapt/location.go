package adapt

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// extensions is a regular expression for the ends of names.
	extensions = regexp.MustCompile(`^\\\.\(?(?:\?:)?([a-zA-Z0-9|]+)\)?\$$`)
	// below is one for a prefix and what follows it.
	below = regexp.MustCompile(`^\^(/[a-zA-Z0-9_/-]*)\(\.\*\)\$?$`)
	// names is one for files in a folder.
	names = regexp.MustCompile(`^\^/([a-zA-Z0-9_/-]+/)\[\^/\]\*\\\.([a-zA-Z0-9]+)\$$`)
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
	for i := range d.block {
		name := d.block[i].name()
		if (name == "proxy_pass" || name == "proxy_pass_header") && how != "~" && how != "~*" && path != "" &&
			path[0] == '/' {
			continue
		}
		if strings.Contains(name, "_pass") || name == "if" || name == "location" {
			t.unknown(&d.block[i])
			t.note(d.line, "location %s is left out", path)
			t.withheld(path)
			return
		}
	}
	switch {
	case how == "~" || how == "~*":
		t.matching(d, path)
	case how == "" && path == "/" && t.alone && !has(d.block, "return") && !has(d.block, "alias"):
		t.everything(d)
	case how != "=" && strings.HasSuffix(path, "/") && passes(d.block) == nil && onlyFields(d.block):
		t.files(d, []string{strings.Trim(path, "/") + "/**"})
	case how == "=" || how == "" || how == "^~":
		if !strings.HasPrefix(path, "/") {
			t.note(d.line, "location %s is left out", path)
			return
		}
		t.route(d, how, path)
	default:
		t.note(d.line, "location %s %s is left out", how, path)
	}
}

// withheld hides the files of a location with a regular expression that is left out, such as scripts: what
// nginx passes on is not to be sent as it is.
func (t *inServer) withheld(expression string) {
	if m := extensions.FindStringSubmatch(expression); m != nil {
		for _, e := range strings.Split(m[1], "|") {
			t.site.hidden = append(t.site.hidden, "*."+e)
		}
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

// internalHeaders: the fields of an error page's location are those of the routes that answer with it.
func (t *inServer) internalHeaders(d *directive) {
	for i := range d.block {
		if in := &d.block[i]; in.name() != "internal" && in.name() != "root" && !slices.Contains(unneeded, in.name()) {
			t.note(in.line, "%s of an internal location is left out: want headers of the route that has the error",
				in.name())
		}
	}
}

// everything is location / of a server without others that become routes: its directives are the
// site's. Those of several locations are not inherited by one another.
func (t *inServer) everything(d *directive) {
	var access []directive
	if pass := passes(d.block); pass != nil {
		t.whole = true // also if it is left out: files are not in its place
		t.site.keys = slices.DeleteFunc(t.site.keys, func(line string) bool {
			return strings.HasPrefix(line, "root = ")
		})
		if !t.forward(d, pass, false, "/", t.site.key, t.site.table, "site") {
			t.refuse(d)
		}
	}
	for i := range d.block {
		in := &d.block[i]
		switch in.name() {
		case "proxy_pass":
		case "allow", "deny":
			access = append(access, *in)
		case "root":
			t.root = in.arg(0)
			t.site.keys = append([]string{"root = " + quote(t.root)}, t.site.keys...)
		case "error_page":
			t.errorPage(in, t.site.table)
		default:
			t.common(in, t.site.key, t.site.table, t.site.headers)
		}
	}
	if len(access) > 0 { // they replace the server's
		t.site.keys = slices.DeleteFunc(t.site.keys, func(line string) bool {
			return strings.HasPrefix(line, "allow = ") || strings.HasPrefix(line, "deny = ") && !t.guarded
		})
	}
	t.access(access, t.site.key)
}

// matching is a location with a regular expression, of those that rules and routes can express.
func (t *inServer) matching(d *directive, expression string) {
	if m := extensions.FindStringSubmatch(expression); m != nil {
		var patterns []string
		for _, e := range strings.Split(m[1], "|") {
			patterns = append(patterns, "*."+e)
		}
		t.files(d, patterns)
		return
	}
	if m := names.FindStringSubmatch(expression); m != nil {
		t.files(d, []string{m[1] + "*." + m[2]})
		return
	}
	if expression == `/\.` || expression == `/\.ht` || expression == `/\.(?!well-known)` {
		return // names that begin with a dot are hidden
	}
	if m := below.FindStringSubmatch(expression); m != nil && len(d.block) == 1 && d.block[0].name() == "return" {
		in := d.block[0]
		in.words = slices.Clone(in.words)
		for i := range in.words {
			in.words[i] = strings.ReplaceAll(in.words[i], "$1", "{rest}")
		}
		if status, to, ok := returned(&in); ok && strings.HasSuffix(m[1], "/") {
			r := new(route)
			r.key("path", quote(m[1]+"{rest...}"))
			r.key("redirect", quote(to))
			r.key("status", status)
			t.site.routes = append(t.site.routes, r)
			return
		}
	}
	t.note(d.line, "location ~ %s is left out: routes have patterns of paths, and rules those of files", expression)
}

// files is a location for the names of files.
func (t *inServer) files(d *directive, patterns []string) {
	headers := make(map[string]string)
	for i := range d.block {
		in := &d.block[i]
		switch {
		case in.name() == "add_header" && !strings.Contains(in.arg(1), "$"):
			headers[in.arg(0)] = in.arg(1)
		case in.name() == "expires":
			t.expires(in, headers)
		case in.name() == "return" && in.arg(0) == "404" || in.name() == "deny" && in.arg(0) == "all":
			if in.name() == "deny" {
				t.note(in.line, "deny all of files is 403 in nginx; hidden files are 404")
			}
			t.site.hidden = append(t.site.hidden, patterns...)
		case in.name() == "default_type" && strings.HasPrefix(patterns[0], "*."):
			for _, p := range patterns {
				t.site.key("types."+quote(p[1:]), quote(in.arg(0)))
			}
		case in.name() == "access_log" && in.arg(0) == "off":
			t.note(in.line, `access_log off of files is left out: want log = { skip = %s }`, list(patterns))
		case slices.Contains(unneeded, in.name()):
		default:
			t.unknown(in)
		}
	}
	if len(headers) == 0 {
		return
	}
	var lines []string
	for _, name := range slices.Sorted(mapsKeys(headers)) {
		lines = append(lines, quote(name)+" = "+quote(headers[name]))
	}
	t.site.table("[site.rules]", "match = "+list(patterns), "headers = { "+strings.Join(lines, ", ")+" }")
}

// route is a location with a path.
func (t *inServer) route(d *directive, how, path string) {
	r := new(route)
	pattern := path
	if how != "=" {
		if !strings.HasSuffix(path, "/") {
			t.note(d.line, "location %s is for all that begins with it; the route is for %s/ and below", path, path)
			pattern += "/"
		}
		pattern += "{path...}"
	} else if strings.HasSuffix(path, "/") {
		pattern += "{$}"
	}
	if how != "=" && path == "/" {
		if t.whole = true; has(d.block, "return") {
			pattern = "/"
		}
	}
	if strings.ContainsAny(path, "{}") {
		t.note(d.line, "location %s is left out", path)
		return
	}
	r.key("path", quote(pattern))
	var access []directive
	headers := make(map[string]string)
	var pages []string
	root, done := "", false
	pass := passes(d.block)
	for i := range d.block {
		in := &d.block[i]
		switch in.name() {
		case "proxy_pass":
		case "allow", "deny":
			access = append(access, *in)
		case "alias":
			root = in.arg(0)
		case "root":
			root = join(in.arg(0), path)
		case "return":
			done = t.answer(in, r) || done
		case "error_page":
			t.errorPage(in, func(_ string, lines ...string) { pages = append(pages, lines...) })
		case "rewrite":
			t.note(in.line, "rewrite of a location is left out: want [[site.route.rewrite]]")
		case "internal":
			t.note(d.line, "location %s is internal, and left out", path)
			return
		default:
			t.common(in, r.key, r.table, headers)
		}
	}
	if pass != nil && !done {
		if done = true; !t.forward(d, pass, how == "=", path, r.key, r.table, "site.route") {
			r.key("respond", "502")
		}
		r.keys = slices.DeleteFunc(r.keys, ofFiles)
	}
	if !done {
		if how == "=" {
			t.note(d.line, "location = %s with files is left out", path)
			return
		}
		if root == "" {
			root = join(t.root, path)
		}
		r.key("root", quote(strings.TrimSuffix(root, "/")))
	}
	t.access(access, r.key)
	t.replaces(r, len(access) > 0, !done)
	t.headers(headers, "site.route", r.key, r.table)
	if pages != nil {
		r.table("site.route.errors", pages...)
	}
	t.site.routes = append(t.site.routes, r)
}

// ofFiles reports whether a line is a key of files, which mean nothing where requests are forwarded.
func ofFiles(line string) bool {
	key, _, _ := strings.Cut(line, " = ")
	return key == "listing" || key == "index" || key == "try" || key == "root"
}

// refuse is for a location / that is left out: what it has passed on is not served by anything else.
func (t *inServer) refuse(d *directive) {
	r := new(route)
	r.key("path", quote("/"))
	r.key("respond", "502")
	t.site.routes = append(t.site.routes, r)
}

// replaces makes r keep nothing of what a location of nginx replaces, or does not inherit: all rules of
// access by any, and try_files.
func (t *inServer) replaces(r *route, access, files bool) {
	has := func(keys []string, key string) bool {
		return slices.ContainsFunc(keys, func(line string) bool { return strings.HasPrefix(line, key+" = ") })
	}
	if access && has(t.site.keys, "allow") && !has(r.keys, "allow") {
		r.key("allow", list([]string{"all"}))
	}
	if access && !t.guarded && has(t.site.keys, "deny") && !has(r.keys, "deny") {
		r.key("deny", "[]")
	}
	if files && has(t.site.keys, "try") && !has(r.keys, "try") {
		r.key("try", "[]")
	}
}

// answer translates return of a location.
func (t *inServer) answer(d *directive, r *route) bool {
	if status, to, ok := returned(d); ok {
		// Of plain HTTP, as the server is; chert's is of the request's own scheme.
		if rest, ok := strings.CutPrefix(to, "http://{host}/"); ok {
			to = "/" + rest
		}
		r.key("redirect", quote(to))
		r.key("status", status)
		return true
	}
	n, ok := number(d.arg(0))
	if !ok || n < 200 || n > 599 || strings.Contains(d.arg(1), "$") || n/100 == 3 {
		t.unknown(d)
		return false
	}
	r.key("respond", d.arg(0))
	if d.arg(1) != "" {
		r.key("body", quote(d.arg(1)))
	}
	return true
}
