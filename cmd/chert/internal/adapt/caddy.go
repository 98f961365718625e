package adapt

import (
	"cmp"
	"slices"
	"strings"
)

// caddy translates Caddy's directives.
type caddy struct {
	*output
	pathed []pathed
	at     listening

	// Of the site at hand.
	matchers map[string]*directive
	used     []string     // names of matchers that are translated
	beyond   []string     // matchers of what is refused that no route is for, or more than one
	first    []string     // those that count before others forward what they are for
	hide     []directive  // of file_server
	partly   []directive  // file_server for some paths
	served   bool         // file_server for all
	set      []string     // names of fields that header sets
	scripts  bool         // PHP
	root     string       // for all, "" for none
	roots    bool         // there are others for some
	auths    []*directive // basic_auth of some paths
	guarded  []string     // patterns of routes that not all clients may have
	moved    []*site      // redirects of some of its hosts
	whole    *directive   // reverse_proxy for all
	proxied  []string     // matchers of paths that a reverse_proxy has, "" for all
	handled  []string     // words of handle and handle_path
	asks     int          // how many forward_auth are for all: of several one would be in place of the others
}

func (c *caddy) top(all []directive) {
	var email *directive
	for i := range all {
		if d := &all[i]; d.name() == "" {
			email = c.options(d, all)
		}
	}
	for i := range all {
		switch d := &all[i]; {
		case d.name() == "", strings.HasPrefix(d.name(), "("): // see withSnippets
		case d.name() == "import" || strings.HasPrefix(d.name(), "&("):
			c.unknown(d)
		default:
			c.site(d)
		}
	}
	if email != nil {
		c.email(email)
	}
	c.refusePathed()
	c.listens()
}

// options reads the global ones, and returns email.
func (c *caddy) options(d *directive, all []directive) (email *directive) {
	for i := range d.block {
		switch in := &d.block[i]; {
		case in.name() == "email":
			email = in
		case in.name() == "auto_https" && c.at.autoHTTPS(in):
		case in.name() == "servers" && in.block != nil:
			c.servers(in, all)
		case in.name() == "local_certs":
			c.at.own = true
		case (in.name() == "admin" || in.name() == "persist_config") && in.arg(0) == "off":
		default:
			c.unknown(in)
		}
	}
	return email
}

// site translates the block of some addresses.
func (c *caddy) site(d *directive) {
	s := &site{line: d.line, name: "site"}
	var tls *directive
	if i := slices.IndexFunc(d.block, func(in directive) bool { return in.name() == "tls" }); i >= 0 {
		tls = &d.block[i]
	}
	c.addresses(s, d, tls)
	if len(s.hosts) == 0 {
		return
	}
	c.sites = append(c.sites, s)
	*c = caddy{output: c.output, pathed: c.pathed, at: c.at, matchers: make(map[string]*directive)}
	for i := range d.block {
		in := &d.block[i]
		if strings.HasPrefix(in.name(), "@") {
			c.matchers[in.name()] = in
		}
		if in.name() == "forward_auth" {
			c.asks++
		}
		if args := unmatched(in); in.name() == "reverse_proxy" && len(args) > 0 &&
			!strings.HasPrefix(args[0], "/") && !strings.HasPrefix(args[0], "@") {
			c.whole = cmp.Or(c.whole, in)
		} else if in.name() == "root" && len(args) == 1 {
			c.root = args[0]
		} else if in.name() == "root" {
			c.roots = true
		}
	}
	for i := range d.block {
		c.in(s, answering(&d.block[i]))
	}
	c.tried(d.block)
	c.files(s)
	c.passwords(s)
	c.cases(s)
	for i := range d.block {
		if in := &d.block[i]; strings.HasPrefix(in.name(), "@") && !slices.Contains(c.used, in.name()) {
			c.unknown(in)
		}
	}
	for _, b := range c.beyond {
		s.beside(b)
	}
	c.precede(s)
	c.unremoved(s)
	c.apart(s)
	if s.name == "redirect" {
		s.redirects()
	}
	if slices.ContainsFunc(s.routes, (*route).everything) {
		s.keys = slices.DeleteFunc(s.keys, func(line string) bool {
			return ofFiles(line) || strings.HasPrefix(line, "proxy")
		})
	}
	for _, r := range s.routes {
		if !hasKey(r.keys, "root") {
			continue
		}
		if hasKey(s.keys, "try") && !hasKey(r.keys, "try") {
			r.key("try", "[]")
		}
		if hasKey(s.keys, "listing") && !hasKey(r.keys, "listing") && r.sole {
			r.key("listing", "false")
		}
	}
	if hasKey(s.keys, "proxy") {
		s.keys = slices.DeleteFunc(s.keys, ofFiles) // Caddy forwards before it looks for files
	}
}

// in translates a directive of a site.
func (c *caddy) in(s *site, d *directive) {
	args := unmatched(d)
	matched := len(args) > 0 && (strings.HasPrefix(args[0], "@") || strings.HasPrefix(args[0], "/"))
	switch name := d.name(); {
	case name == "encode" || strings.HasPrefix(name, "@"):
	case name == "root" && len(args) == 1:
		s.key("root", quote(args[0]))
	case name == "file_server" && matched:
		c.partly = append(c.partly, *d)
	case name == "file_server":
		if c.served = true; len(args) == 1 && args[0] == "browse" {
			s.key("listing", "true")
		}
		for i := range d.block {
			c.fileServer(s, &d.block[i])
		}
	case name == "try_files" && !matched:
		c.tryFiles(d, args, "", s.key)
	case name == "reverse_proxy":
		c.reverseProxy(s, d, args)
	case (name == "handle" || name == "handle_path" || name == "route") && d.block != nil:
		c.handle(s, d, args)
	case name == "redir":
		c.redir(s, d, args)
	case name == "respond" && len(args) > 0 && !strings.HasPrefix(args[0], "@"):
		c.respond(s, d, args)
	case name == "header" && !matched:
		c.header(d, args, s.table, "site")
	case name == "header":
		c.note(d.line, "header %s is left out: want [[site.rules]] for files, or response_headers of a route", args[0])
	case name == "request_body" && !matched:
		c.requestBody(d, s.key)
	case name == "tls":
		c.tls(s, d, args)
	case name == "bind":
		c.bind(s, d, args)
	case restricts(d) && c.refuse(s, d, args):
	case (name == "basic_auth" || name == "basicauth") && !matched:
		c.basicAuth(d, s.table, "site")
	case name == "basic_auth" || name == "basicauth":
		c.auths = append(c.auths, d)
	case name == "forward_auth" && c.asks == 1 && asked(d, args) != nil:
		s.table("site.forward_auth", asked(d, args)...)
	case name == "log":
		c.log(s, d)
	default:
		c.unknown(d)
		if name == "php_fastcgi" || name == "php_server" {
			c.scripts = true
			s.hidden = append(s.hidden, "*.php") // they are not to be sent as they are
		}
		if restricts(d) {
			c.denied(s, d)
		}
	}
}

func (c *caddy) fileServer(s *site, d *directive) {
	switch d.name() {
	case "browse":
		s.key("listing", "true")
	case "hide":
		c.hide = append(c.hide, *d)
	case "index":
		s.key("index", list(d.words[1:]))
	default:
		c.unknown(d)
		if d.lost { // it may have hide
			c.denied(s, d)
		}
	}
}

// tryFiles translates try_files, whose names begin at the root; prefix is what that of a route has of the path.
func (c *caddy) tryFiles(d *directive, args []string, prefix string, key func(key, value string)) {
	var all []string
	for _, w := range args {
		w = strings.NewReplacer("{http.request.uri.path}", "{path}", "{uri}", "{path}").Replace(w)
		if strings.ContainsAny(strings.ReplaceAll(w, "{path}", ""), "{}?") {
			c.note(d.line, "try_files %s is left out: want try, with {path} and names of files", w)
			return
		}
		if prefix != "" && !strings.HasPrefix(w, "=") && !strings.HasPrefix(w, "{path}") {
			rest, in := strings.CutPrefix(w, prefix)
			if !in || rest == "" || strings.Contains(rest, "{path}") {
				c.note(d.line, "try_files %s is left out: it is not in %s", w, prefix)
				return
			}
			w = "/" + rest
		}
		all = append(all, w)
	}
	key("try", list(all))
}

// basicAuth translates the users of basic_auth.
func (c *caddy) basicAuth(d *directive, table func(name string, lines ...string), prefix string) {
	var users []string
	for i := range d.block {
		u := &d.block[i]
		if u.lost {
			c.unknown(u)
			continue
		}
		if slices.ContainsFunc(d.block[:i], func(o directive) bool { return o.name() == u.name() }) {
			c.note(u.line, "the user %s is there already", u.name())
			continue
		}
		if hasVariable(u.name()) {
			c.note(u.line, "the user %s is left out: names have no variables", u.name())
			continue
		}
		users = append(users, quote(u.name())+" = "+quote(u.arg(0)))
	}
	table(prefix+".basic_auth", "users = { "+strings.Join(users, ", ")+" }")
}

// respond translates answers to a path, or to everything.
func (c *caddy) respond(s *site, d *directive, args []string) {
	path, body, status := "", "", "200"
	for _, w := range args {
		switch n, ok := number(w); {
		case strings.HasPrefix(w, "/"):
			path = w
		case ok && n >= 200 && n <= 599:
			status = w
		case strings.ContainsAny(w, "{}"):
			c.unknown(d)
			return
		default:
			body = w
		}
	}
	pattern := "/{path...}"
	if path != "" {
		ok := true
		pattern, _, ok = pathOf(path)
		if !ok && status[0] >= '4' && ending(path) != "" {
			c.beyond = append(c.beyond, path)
			return
		}
		if !ok {
			c.unknown(d)
			if status[0] >= '4' {
				c.denied(s, d)
			}
			return
		}
		if status[0] >= '4' {
			c.beyond, c.first = append(c.beyond, path), append(c.first, path)
		}
	}
	r := new(route)
	r.key("path", quote(pattern))
	r.key("respond", status)
	if body != "" {
		r.key("body", quote(body))
	}
	s.add(r)
}
