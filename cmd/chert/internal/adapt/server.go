package adapt

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// inServer translates the directives of a server block.
type inServer struct {
	*nginx
	site   *site
	scheme string // of all addresses, "" for both
	root   string
	// outer is the root without that of location /, if its directives are the site's.
	outer string
	// folders are those of locations that requests cannot reach, by path.
	folders  map[string]string
	whole    bool        // a route is for all that no other is for
	guarded  bool        // deny is "all" in place of a directive that is left out
	falls    bool        // try_files ends in a file, which is not for what other locations are for
	ruled    []folder    // those in which rules of the site's files hold too
	around   []directive // what locations inherit
	own      *level      // the server's, for locations
	moved    []directive // rewrite of the server, which may be for locations
	stricter []directive // locations with regular expressions that say nothing of clients, of a server that does
	matched  []string    // patterns of what locations with regular expressions keep from some
}

// A level is what a server or a location says by itself.
type level struct {
	name   string // "site" or "site.route"
	path   string // of a route, without a slash at its end
	key    func(key, value string)
	table  func(name string, lines ...string)
	fields map[string][]string // of add_header and expires, by canonical names; with "always " for all responses
	rates  []string            // of limit_req
	access []directive         // allow and deny
	realm  string              // of auth_basic
	users  string              // the file
	types  []directive         // types and default_type

	address   *directive // set_real_ip_from that is left out, without which clients are not known
	hidden    []string   // of proxy_hide_header
	inherited bool       // add_header is that of the server
	strict    string     // Strict-Transport-Security of add_header
}

func (s *site) level() *level {
	return &level{name: "site", key: s.key, table: s.table, fields: make(map[string][]string)}
}

func (r *route) level() *level {
	return &level{name: "site.route", key: r.key, table: r.table, fields: make(map[string][]string)}
}

// replaced are directives that an inner level has instead of those of an outer one, not besides.
var replaced = [][]string{{"allow", "deny"}, {"add_header"}, {"limit_req"}, {"error_page"}, {"access_log"}, {"types"},
	{"proxy_set_header"}, {"proxy_hide_header"}, {"index"}, {"root", "alias"}, {"set_real_ip_from"}}

// inherit returns what holds in an inner block: its own, and those of the outer one that it does not replace.
func inherit(outer, inner []directive) []directive {
	all := slices.DeleteFunc(slices.Clone(outer), func(d directive) bool {
		return slices.ContainsFunc(replaced, func(names []string) bool {
			return slices.Contains(names, d.name()) && slices.ContainsFunc(inner, func(in directive) bool {
				return slices.Contains(names, in.name())
			})
		})
	})
	return append(all, inner...)
}

func (t *inServer) read(all []directive) {
	s, before := t.site, len(t.notes)
	for i := range all { // what locations need
		if all[i].name() == "root" {
			t.root = all[i].arg(0)
		}
	}
	t.folders, t.around, t.outer, t.falls = t.internal(all), all, t.root, falls(all)
	l := s.level()
	if rest, d := t.everything(all); d != nil {
		all, t.around = inherit(rest, d.block), nil
		if pass := passes(d.block); pass != nil {
			t.whole = true // also if it is left out: files are not in its place
			if !t.forward(&directive{words: d.words, block: all, line: d.line}, pass, false, "/", l) {
				s.refuse("/", unpassed)
			}
		}
		t.around = all
	}
	t.clients(all, l)
	t.realIP(all, l)
	var returned *directive
	served := false
	for i := range all {
		d := &all[i]
		switch d.name() {
		case "listen", "server_name", "location", "proxy_pass": // locations below: what the server has comes first
		case "root":
			served, t.root = true, d.arg(0)
		case "return":
			if returned == nil && t.returnAll(d) {
				returned = d
			}
		default:
			t.common(d, l)
		}
	}
	own := len(l.fields) > 0
	t.finish(l, !t.whole && returned == nil)
	for i := range all {
		d := &all[i]
		switch {
		case d.name() != "location":
		case returned != nil:
			t.note(d.line, "location %s is left out: return of the server answers before it",
				d.words[len(d.words)-1])
		default:
			t.location(d)
			if own && has(d.block, "add_header") {
				t.note(d.line, "add_header of a location replaces those of the server; here both are set")
			}
		}
	}
	t.nothing(l, served)
	t.rule()
	t.site.exact()
	t.rewrites()
	t.kept()
	if s.name == "redirect" {
		s.redirects()
		for i := range t.notes[before:] { // as in nginx, which answers before it looks who may have something
			note := &t.notes[before+i]
			note.Text = strings.Replace(note.Text, deniesNote, "; the redirect is for all", 1)
		}
	} else if served && returned == nil && !t.whole {
		s.keys = slices.DeleteFunc(s.keys, func(line string) bool { return strings.HasPrefix(line, "root = ") })
		s.keys = append([]string{"root = " + quote(t.root)}, s.keys...)
	}
}

// nothing answers for a server that has a root of nginx's own at most.
func (t *inServer) nothing(l *level, served bool) {
	s := t.site
	switch {
	case s.name != "site" || served || len(s.routes) > 0 || hasKey(s.keys, "proxy"):
	case deniesAll(l.access):
		s.refuse("/{path...}", forbidden)
	default:
		t.note(s.line, "the server has no root; all is %s", internal)
		s.refuse("/{path...}", internal)
	}
}

// everything returns location /, if no other location becomes a route, so that its directives are the site's, and what
// is around it.
func (t *inServer) everything(all []directive) (rest []directive, d *directive) {
	for i := range all {
		l := &all[i]
		switch {
		case l.name() != "location":
		case len(l.words) == 2 && l.arg(0) == "/":
			if d = l; has(d.block, "return") || has(d.block, "alias") || has(d.block, "location") ||
				has(d.block, "internal") || slices.ContainsFunc(d.block, foreign) {
				return nil, nil
			}
			continue
		case t.folders[l.arg(1)] == "" && !onlyFields(l.block) && !t.hides(l), t.falls && isPrefix(l):
			return nil, nil
		}
		rest = append(rest, *l)
	}
	if d != nil && t.relaxes(d) && slices.ContainsFunc(rest, func(o directive) bool {
		return o.name() == "location" && t.inherits(&o)
	}) {
		return nil, nil
	}
	return rest, d
}

// finish writes what a level has several directives for. files are what it serves.
func (t *inServer) finish(l *level, files bool) {
	t.access(l)
	switch len(l.rates) {
	case 0:
	case 1:
		l.key("limits.rate", quote(l.rates[0]))
	default:
		l.key("limits.rate", list(l.rates))
	}
	t.basicAuth(l)
	t.headers(l)
	if files && len(l.types) > 0 {
		t.types(l)
	}
	if t.own == nil {
		t.own = l
	}
}

var redirectKeys = strings.Fields(`to status headers tls_auto tls_self tls_cert tls_key tls_min client_ca hsts
	hsts_subdomains`)

// redirects leaves what a [[redirect]] can have.
func (s *site) redirects() {
	s.tables, s.routes, s.hidden, s.paths = nil, nil, nil, nil
	s.keys = slices.DeleteFunc(s.keys, func(line string) bool {
		key, _, _ := strings.Cut(line, " = ")
		return !slices.Contains(redirectKeys, key)
	})
}

// internal returns folders. Files of the site's own are hidden: error pages are read apart.
func (t *inServer) internal(all []directive) map[string]string {
	found := make(map[string]string)
	forwards := slices.ContainsFunc(all, func(d directive) bool {
		return d.name() == "location" && d.words[len(d.words)-1] == "/" && passes(d.block) != nil
	})
	for i := range all {
		d := &all[i]
		if d.name() != "location" || d.arg(0) != "=" || !has(d.block, "internal") {
			continue
		}
		found[d.arg(1)] = t.root
		for _, in := range d.block {
			if in.name() == "root" {
				found[d.arg(1)] = in.arg(0)
			}
		}
		switch path := d.arg(1); {
		case !strings.HasPrefix(path, "/"):
		case !routable(path), found[path] == t.root && !forwards && strings.Trim(path, "/") != "":
			t.site.keep(path, "")
		default:
			t.site.refuse(exactly(path), internal)
		}
	}
	return found
}

func has(all []directive, name string) bool {
	return slices.ContainsFunc(all, func(d directive) bool { return d.name() == name })
}

// returnAll is return of a whole server: a redirect of all its hosts, or a response. It reports whether it is one.
func (t *inServer) returnAll(d *directive) bool {
	if status, to, ok := t.returned(d); ok {
		t.site.name = "redirect"
		t.site.key("to", quote(to))
		t.site.key("status", status)
		return true
	}
	r := new(route)
	r.key("path", quote("/"))
	if !t.answer(d, r, t.around) {
		return false
	}
	t.site.add(r)
	return true
}

// placeholders are variables that targets of redirects have too.
var placeholders = map[string]string{"$request_uri": "{uri}", "$host": "{host}", "$http_host": "{host}",
	"$server_name": "{host}"}

// variables is a regular expression for variables of nginx, whose names may begin with those of others.
var variables = regexp.MustCompile(`\$[a-zA-Z0-9_]+`)

// returned reads a return that redirects.
func (t *inServer) returned(d *directive) (status, to string, ok bool) {
	status, to = d.arg(0), d.arg(1)
	if len(d.words) == 2 && (strings.HasPrefix(status, "http") || strings.HasPrefix(status, "$scheme://")) {
		status, to = "302", status
	}
	if !slices.Contains([]string{"301", "302", "303", "307", "308"}, status) {
		return "", "", false
	}
	to = variables.ReplaceAllStringFunc(to, func(name string) string {
		if name == "$scheme" && t.scheme != "" {
			return t.scheme
		}
		return cmp.Or(placeholders[name], name)
	})
	return status, to, to != "" && !strings.Contains(to, "$")
}

// common translates what servers and locations both have.
func (t *inServer) common(d *directive, l *level) {
	switch name, v := d.name(), d.arg(0); {
	case name == "types" && d.block != nil, name == "default_type":
		l.types = append(l.types, *d)
	case slices.Contains(unneeded, name):
	case name == "allow" || name == "deny":
		l.access = append(l.access, *d)
	case name == "autoindex":
		if on := v == "on"; on || hasKey(t.site.keys, "listing") {
			l.key("listing", strconv.FormatBool(on))
		}
	case name == "index":
		if l.name != "site" || !slices.Equal(d.words[1:], []string{"index.html"}) {
			l.key("index", list(d.words[1:]))
		}
	case name == "add_header":
		t.field(d, l)
	case name == "expires":
		t.expires(d, l)
	case name == "auth_basic":
		l.realm = v
	case name == "auth_basic_user_file":
		l.users = v
	case name == "access_log":
		t.accessLog(d, l)
	case strings.HasPrefix(name, "real_ip_") || name == "set_real_ip_from":
		if l.name != "site" { // see realIP
			t.unknown(d)
			l.address = d
		}
	case name == "try_files":
		t.tryFiles(d, l)
	case name == "rewrite":
		t.moved = append(t.moved, *d)
	case name == "error_page":
		t.errorPage(d, l)
	case name == "if":
		t.condition(d, l)
	case slices.Contains(proxied, name), slices.Contains(untouched, name): // of those that forward
	case isGuard(d):
		t.unknown(d)
		t.denied(d, l)
	case name == "auth_request" || name == "satisfy": // off, and what is so without it
	default:
		if !t.limit(d, l) && !t.connection(d, l.key) {
			t.unknown(d)
		}
	}
}

// limit translates limits of requests and responses, and reports whether d is one.
func (t *inServer) limit(d *directive, l *level) bool {
	v := d.arg(0)
	number, unit := strings.TrimRight(v, "kKmMgG"), strings.ToUpper(strings.TrimLeft(v, "0123456789"))
	if unit != "" {
		unit += "i"
	}
	switch d.name() {
	case "client_max_body_size":
		if strings.Trim(number, "0") == "" {
			l.key("limits.body", "0")
		} else {
			l.key("limits.body", quote(number+unit+"B"))
		}
	case "limit_rate":
		l.key("limits.bandwidth", quote(number+unit+"B"))
	case "limit_rate_after":
		l.key("limits.bandwidth_after", quote(number+unit+"B"))
	case "limit_req":
		if limit, ok := t.rate(d); ok {
			l.rates = append(l.rates, limit)
		}
	default:
		return false
	}
	return true
}

// connection translates what is about connections, and reports whether d is.
func (t *inServer) connection(d *directive, key func(key, value string)) bool {
	switch v := d.arg(0); d.name() {
	case "keepalive_timeout":
		if n, ok := number(strings.TrimSuffix(v, "s")); ok && n > 0 && !slices.ContainsFunc(t.head, isIdle) {
			t.head = append(t.head, "idle_timeout = "+quote(strconv.Itoa(n)+"s"))
		}
	case "ssl_certificate":
		key("tls_cert", quote(v))
	case "ssl_certificate_key":
		key("tls_key", quote(v))
	case "ssl_client_certificate", "ssl_trusted_certificate", "ssl_verify_client": // see clients
	case "ssl_protocols":
		if slices.Equal(d.words[1:], []string{"TLSv1.3"}) {
			key("tls_min", quote("1.3"))
		}
	default:
		return false
	}
	return true
}

func isIdle(line string) bool { return strings.HasPrefix(line, "idle_timeout") }
