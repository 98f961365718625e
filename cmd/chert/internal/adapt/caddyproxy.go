package adapt

import (
	"slices"
	"strings"
)

// pathOf translates a matcher of a path: "/x" is exact, "/x/*" all below it. prefix is what handle_path cuts off.
func pathOf(matcher string) (pattern string, below, ok bool) {
	rest, below := strings.CutSuffix(matcher, "*")
	if hasVariable(matcher) {
		return "", false, false
	}
	if !strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "*?{}\" \\%#") || strings.HasSuffix(rest, "/.") {
		return "", false, false
	}
	if !below {
		if strings.HasSuffix(rest, "/") {
			rest += "{$}"
		}
		return rest, false, true
	}
	if !strings.HasSuffix(rest, "/") {
		rest += "/"
	}
	return rest + "{path...}", true, true
}

// reverseProxy translates reverse_proxy of a site.
func (c *caddy) reverseProxy(s *site, d *directive, args []string) {
	if len(args) > 0 && (strings.HasPrefix(args[0], "/") || strings.HasPrefix(args[0], "@")) {
		pattern, below, ok := pathOf(args[0])
		switch paths := c.paths(args[0]); {
		case c.upgrades(d, args):
			return
		case paths != nil:
			c.used = append(c.used, args[0])
			for _, path := range paths {
				c.reverseProxy(s, d, append([]string{path}, args[1:]...))
			}
			return
		case !ok:
			c.note(d.line, "reverse_proxy %s is left out: want [[site.route]] with a path and proxy; here all is %s",
				args[0], unpassed)
			s.refuse("/{path...}", unpassed)
			return
		case c.again(d, args[0]):
			return
		}
		if below && !strings.HasSuffix(args[0], "/*") {
			c.note(d.line, "%s is for all that begins with it; the route is for %s and below", args[0], pattern)
		}
		r := new(route)
		r.key("path", quote(pattern))
		if !c.forward(d, args[1:], r.key, r.table, "site.route") {
			r.key("respond", "502")
		}
		s.routes = append(s.routes, r)
		return
	}
	if !c.again(d, "") && !c.forward(d, args, s.key, s.table, "site") {
		s.refuse("/{path...}", unpassed)
	}
}

// again reports whether a reverse_proxy before d has the same matcher, so that no request reaches d in Caddy. Of "/x*"
// and "/x/*", whose pattern is the same, the longer one comes first there: check refuses both.
func (c *caddy) again(d *directive, matcher string) bool {
	before := slices.Contains(c.proxied, matcher)
	if c.proxied = append(c.proxied, matcher); before {
		c.note(d.line, "reverse_proxy is left out: one before it forwards the same requests")
	}
	return before
}

// paths returns those that a named matcher is for, nil if it is for others or routes cannot be for all of them.
func (c *caddy) paths(matcher string) []string {
	test := c.test(matcher)
	if len(test) < 2 || test[0] != "path" {
		return nil
	}
	var paths, patterns []string // each pattern once: two routes cannot have it
	for _, path := range test[1:] {
		pattern, _, ok := pathOf(path)
		if !ok {
			return nil
		}
		if i := slices.Index(patterns, pattern); i < 0 {
			paths, patterns = append(paths, path), append(patterns, pattern)
		} else if !strings.HasSuffix(path, "/*") {
			paths[i] = path // of "/a/*" and "/a*", which is the wider one
		}
	}
	return paths
}

// upgrades reports whether a reverse_proxy is for WebSockets, which the one for all forwards to the same servers.
func (c *caddy) upgrades(d *directive, args []string) bool {
	m := c.matchers[args[0]]
	if m == nil || c.whole == nil || d.block != nil || c.whole.block != nil ||
		!slices.Equal(args[1:], unmatched(c.whole)) {
		return false
	}
	lines := m.block
	if len(m.words) > 1 {
		lines = append([]directive{{words: m.words[1:]}}, lines...)
	}
	if len(lines) == 0 || slices.ContainsFunc(lines, func(in directive) bool {
		return in.name() != "header" || !strings.EqualFold(in.arg(0), "Connection") &&
			!strings.EqualFold(in.arg(0), "Upgrade")
	}) {
		return false
	}
	c.used = append(c.used, args[0])
	return true
}

// everything reports whether a route is for all that no other is for.
func (r *route) everything() bool { return slices.Contains(r.keys, `path = "/{path...}"`) }

// forward translates the upstreams and options of a reverse_proxy. It returns false if that cannot be.
func (c *caddy) forward(d *directive, args []string, key func(key, value string),
	table func(name string, lines ...string), prefix string) bool {
	u := &upstream{}
	var addrs []string
	secure, h2 := false, false
	add := func(text string) bool {
		addr, tls, prior, ok := caddyAddress(text)
		if !ok {
			c.note(d.line, "reverse_proxy %s is left out: want an address and a port", text)
			return false
		}
		secure, h2 = secure || tls, h2 || prior
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
		return true
	}
	for _, text := range args {
		if !add(text) {
			return false
		}
	}
	o := &caddyProxy{caddy: c, u: u, key: key, table: table, prefix: prefix}
	for i := range d.block {
		in := &d.block[i]
		if in.name() == "to" {
			for _, text := range in.words[1:] {
				if !add(text) {
					return false
				}
			}
			continue
		}
		o.option(in)
	}
	if len(addrs) == 0 {
		c.note(d.line, "reverse_proxy has no upstream, and is left out")
		return false
	}
	if secure || o.secure {
		u.keys = append([]string{"tls = true"}, u.keys...)
	}
	if h2 {
		u.key("protocol", quote("h2"))
	}
	for i, addr := range addrs {
		switch {
		case o.first && i > 0:
			u.servers = append(u.servers, "{ addr = "+quote(addr)+", backup = true }")
		case i < len(o.weights):
			u.servers = append(u.servers, "{ addr = "+quote(addr)+", weight = "+o.weights[i]+" }")
		default:
			u.servers = append(u.servers, quote(addr))
		}
	}
	if slices.ContainsFunc(o.check, func(line string) bool { return strings.HasPrefix(line, "path = ") }) {
		u.tables = append(u.tables, "[upstream.NAME.check]\n"+strings.Join(o.check, "\n"))
	}
	if len(o.fields) > 0 {
		key("request_headers", "{ "+strings.Join(o.fields, ", ")+" }")
	}
	only := len(addrs) == 1 && len(u.tables) == 0
	switch {
	case only && len(u.keys) == 0:
		key("proxy", quote(addrs[0]))
	case only && slices.Equal(u.keys, []string{"tls = true"}):
		key("proxy", quote("https://"+addrs[0]))
	default:
		named := c.newUpstream(strings.TrimPrefix(addrs[0], "unix:/"))
		named.servers, named.keys, named.used = u.servers, u.keys, true
		for _, t := range u.tables {
			named.tables = append(named.tables, strings.Replace(t, "NAME", named.name, 1))
		}
		key("proxy", quote(named.name))
	}
	return true
}

// caddyAddress translates an address of Caddy.
func caddyAddress(s string) (addr string, secure, h2, ok bool) {
	port := "80"
	if isVariable(s) {
		return s, false, false, true
	}
	switch scheme, rest, found := strings.Cut(s, "://"); {
	case !found:
	case scheme == "https":
		s, secure, port = rest, true, "443"
	case scheme == "h2c":
		s, h2 = rest, true
	case scheme == "http":
		s = rest
	default:
		return "", false, false, false
	}
	if path, unix := strings.CutPrefix(s, "unix/"); unix {
		return "unix:" + path, secure, h2, strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "{}\"|")
	}
	if strings.HasPrefix(s, ":") {
		s = "127.0.0.1" + s
	}
	addr, ok = withPort(s, port)
	return addr, secure, h2, ok
}
