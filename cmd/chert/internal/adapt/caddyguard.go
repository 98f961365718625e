package adapt

import (
	"net/netip"
	"path"
	"slices"
	"strings"
)

// restricts reports whether a directive keeps something from some clients: if it is left
// out, they must not get it.
func restricts(d *directive) bool {
	switch d.name() {
	case "basic_auth", "basicauth", "forward_auth", "abort", "error", "authorize", "authenticate", "jwtauth":
		return true
	case "import": // of a file that may restrict
		return d.lost
	case "respond":
		return strings.HasPrefix(d.arg(0), "@")
	}
	return false
}

// caddyRefusal is refusal for a block of Caddy.
func caddyRefusal(block []directive) (status string) {
	for i := range block {
		switch d := &block[i]; {
		case restricts(d), d.name() == "respond" && slices.ContainsFunc(d.words, isError),
			caddyRefusal(d.block) == forbidden:
			return forbidden
		case d.name() == "reverse_proxy" || strings.HasPrefix(d.name(), "php_"), caddyRefusal(d.block) != "":
			status = unpassed
		}
	}
	return status
}

func isError(word string) bool { n, ok := number(word); return ok && n >= 400 && n <= 599 }

// answering returns what a block for a named matcher has, if that is one directive that refuses, with the matcher;
// otherwise d.
func answering(d *directive) *directive {
	if (d.name() != "handle" && d.name() != "route") || !strings.HasPrefix(d.arg(0), "@") || len(d.block) != 1 {
		return d
	}
	in := &d.block[0]
	if in.name() != "abort" && in.name() != "error" && in.name() != "respond" || strings.HasPrefix(in.arg(0), "@") ||
		strings.HasPrefix(in.arg(0), "/") {
		return d
	}
	words := append([]string{in.name(), d.arg(0)}, in.words[1:]...)
	return &directive{words: words, block: in.block, line: d.line}
}

// denied is for a directive that is left out and says who may have a site.
func (c *caddy) denied(s *site, d *directive) {
	c.note(d.line, "%s %s who may have it, so nobody may: deny is \"all\"", d.name(), d.says())
	s.key("deny", nobody)
}

// refuse translates abort, error, and respond with an error, of a path or for some clients. It reports whether it has.
func (c *caddy) refuse(s *site, d *directive, args []string) bool {
	if len(args) == 0 || d.name() == "respond" && !slices.ContainsFunc(args[1:], isError) ||
		!slices.Contains([]string{"abort", "error", "respond"}, d.name()) {
		return false
	}
	test := []string{"path", args[0]}
	if strings.HasPrefix(args[0], "@") {
		if test = c.test(args[0]); test == nil {
			return false
		}
	}
	not := test[0] == "not"
	if not {
		test = test[1:]
	}
	switch {
	case len(test) < 2:
		return false
	case test[0] == "path" && !not:
		if !c.refusePaths(s, d, test[1:]) {
			return false
		}
	case isClient(test[0]) && not && !hasKey(s.keys, "allow"):
		s.key("allow", list(clients(test[1:])))
	case isClient(test[0]) && !not && !hasKey(s.keys, "deny"):
		s.key("deny", list(clients(test[1:])))
	default:
		return false
	}
	c.used = append(c.used, args[0])
	return true
}

// test returns the words of a named matcher, if it has one line.
func (c *caddy) test(name string) []string {
	m := c.matchers[name]
	switch {
	case m == nil:
		return nil
	case len(m.words) > 1 && len(m.block) == 0:
		return m.words[1:]
	case len(m.words) == 1 && len(m.block) == 1 && len(m.block[0].block) == 0:
		return m.block[0].words
	}
	return nil
}

func isClient(matcher string) bool { return matcher == "remote_ip" || matcher == "client_ip" }

// clients returns addresses and prefixes, with those that private_ranges is.
func clients(words []string) (all []string) {
	for _, w := range words {
		if w == "private_ranges" {
			all = append(all, "192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1")
			continue
		}
		all = append(all, w)
	}
	return all
}

func (c *caddy) refusePaths(s *site, d *directive, matchers []string) bool {
	for _, m := range matchers {
		if _, _, ok := pathOf(m); !ok && ending(m) == "" {
			return false
		}
	}
	for _, m := range matchers {
		if pattern, _, ok := pathOf(m); ok {
			s.refuse(pattern, forbidden)
		}
		c.beyond, c.first = append(c.beyond, m), append(c.first, m)
	}
	return true
}

// ending returns the pattern of names that a matcher such as *.sql or */.git* is for, "" if it is for others.
func ending(matcher string) string {
	if matcher == "/.*" || strings.HasPrefix(matcher, "*/.") {
		name := strings.TrimSuffix(matcher[strings.IndexByte(matcher, '/')+1:], "/*")
		if strings.ContainsAny(strings.TrimSuffix(name, "*"), `/*?[]{}\`) {
			return ""
		}
		return name
	}
	end, ok := strings.CutPrefix(strings.TrimPrefix(matcher, "/"), "*.")
	if !ok || end == "" || strings.ContainsAny(end, `/*?[]{}\`) {
		return ""
	}
	return "*." + end
}

// beside hides what a matcher that refuses is for and the route for /a/ and below is not, such as /ab of /a*, or /A/.
func (s *site) beside(matcher string) {
	prefix, below := strings.CutSuffix(matcher, "*")
	if pattern := ending(matcher); pattern != "" {
		s.hidden = append(s.hidden, pattern)
		for _, r := range s.routes {
			r.hidden = append(r.hidden, pattern)
		}
	} else if below && !strings.HasSuffix(prefix, "/") {
		s.keep(prefix, "", "*?")
	} else if s.forwards(prefix) && below {
		s.keep(prefix, "**")
	} else if s.forwards(prefix) {
		s.keep(prefix, "")
	}
}

// forwards reports whether a path is forwarded where no other route is for it. A matcher of Caddy is for it in any case
// of letters, as what is hidden is, and a route is not.
func (s *site) forwards(path string) bool {
	return hasKey(s.keys, "proxy") || slices.ContainsFunc(s.routes, func(r *route) bool {
		begin, below := r.path()
		return below && strings.HasPrefix(path, begin) && hasKey(r.keys, "proxy")
	})
}

// precede denies what is forwarded or served from a path for which a matcher refuses it before that.
func (c *caddy) precede(s *site) {
	for _, r := range s.routes {
		path, _ := r.path()
		before := slices.ContainsFunc(c.first, func(matcher string) bool {
			prefix, below := strings.CutSuffix(matcher, "*")
			return below && strings.HasPrefix(path, prefix)
		})
		if before && !r.sole && (hasKey(r.keys, "proxy") || hasKey(r.keys, "root")) {
			c.note(s.line, "%s is also refused by a directive that Caddy evaluates first: deny is \"all\"", path)
			r.key("deny", nobody)
		}
	}
}

// A pathed is an address with a path, whose block is left out, and how to refuse what it is for.
type pathed struct{ address, status string }

// refusePathed keeps what the blocks of such addresses have kept from some from other sites of their hosts.
func (c *caddy) refusePathed() {
	for _, p := range c.pathed {
		host, matcher, _ := strings.Cut(p.address, "/")
		host, _, _ = strings.Cut(host, ":")
		for _, s := range c.sites {
			if p.status == "" || s.name != "site" || !slices.ContainsFunc(s.hosts, func(h string) bool {
				return hasVariable(host+h) || host == "" || covers(h, host) || covers(host, h)
			}) {
				continue
			}
			if pattern, _, ok := pathOf("/" + matcher); ok {
				s.refuse(pattern, p.status)
				s.beside("/" + matcher)
			} else {
				c.denied(s, &directive{words: []string{p.address}, line: s.line})
			}
		}
	}
}

// covers reports whether a host, or all below a name, is or has another.
func covers(a, b string) bool {
	suffix, wild := strings.CutPrefix(a, "*")
	return strings.EqualFold(a, b) || wild && strings.HasSuffix(strings.ToLower(b), strings.ToLower(suffix))
}

// files translates what depends on the root: file_server for some paths, and hide.
func (c *caddy) files(s *site) {
	root := ""
	for _, line := range s.keys {
		if quoted, ok := strings.CutPrefix(line, "root = "); ok {
			root = strings.Trim(quoted, `"`)
		}
	}
	for i := range c.hide {
		for _, w := range c.hide[i].words[1:] {
			c.hidden(s, &c.hide[i], w, root)
		}
	}
	if c.scripts && !c.served && len(c.partly) == 0 {
		s.refuse("/{path...}", unpassed)
	}
	if c.served || len(c.partly) == 0 {
		for i := range c.partly {
			c.unknown(&c.partly[i])
		}
		return
	}
	try := hasKey(s.keys, "try")
	s.keys = slices.DeleteFunc(s.keys, ofFiles)
	for i := range c.partly {
		d := &c.partly[i]
		pattern, below, ok := pathOf(d.arg(0))
		if !ok || !below || try || root == "" || len(d.words) > 2 || len(d.block) > 0 {
			c.unknown(d)
			s.refuse("/{path...}", internal)
			continue
		}
		r := new(route)
		r.key("path", quote(pattern))
		r.key("root", quote(join(root, strings.TrimSuffix(pattern, "{path...}"))))
		s.add(r)
	}
}

// hidden translates a name that file_server hides, or a path of a file, which begins at the root or where Caddy is.
func (c *caddy) hidden(s *site, d *directive, name, root string) {
	clean := path.Clean(name)
	rest, in := strings.CutPrefix(clean, path.Clean(root)+"/")
	switch {
	case !strings.Contains(name, "/"):
		s.hidden = append(s.hidden, name)
	case strings.Contains(name, "{"), root == "", strings.Contains(root, "{"), clean == path.Clean(root):
		c.unknown(d)
		c.denied(s, d)
	case in:
		s.paths = append(s.paths, "/"+rest)
	case path.IsAbs(name) == path.IsAbs(root) && !hasVariable(name+root):
		c.note(d.line, "hide %s is left out: it is not in root", name)
	default: // of a folder that is not known
		c.unknown(d)
		c.denied(s, d)
	}
}

// tls translates where certificates come from, and those of clients.
func (c *caddy) tls(s *site, d *directive, args []string) {
	switch {
	case len(args) == 0:
	case len(args) == 1 && args[0] == "internal":
		s.key("tls_self", "true")
	case len(args) == 2:
		s.key("tls_cert", quote(args[0]))
		s.key("tls_key", quote(args[1]))
	default:
		c.unknown(d)
	}
	for i := range d.block {
		switch in := &d.block[i]; {
		case in.name() == "client_auth":
			c.clientAuth(s, in)
		case in.name() == "protocols" && in.arg(0) == "tls1.3":
			s.key("tls_min", quote("1.3"))
		case in.name() == "protocols" && in.arg(0) == "tls1.2":
		default:
			c.unknown(in)
		}
	}
}

func (c *caddy) clientAuth(s *site, d *directive) {
	mode, file, known := "require_and_verify", "", true
	for i := range d.block {
		in := &d.block[i]
		switch {
		case in.name() == "mode":
			mode = in.arg(0)
		case in.name() == "trusted_ca_cert_file" && file == "" && len(in.words) == 2:
			file = in.arg(0)
		case in.name() == "trust_pool" && in.arg(0) == "file" && file == "" && len(in.words) == 3 && len(in.block) == 0:
			file = in.arg(1)
		default:
			c.unknown(in)
			known = false
		}
	}
	if known = known && file != ""; known {
		s.key("client_ca", quote(file))
	}
	switch {
	case known && mode == "require_and_verify":
	case known && mode == "verify_if_given":
		s.key("client_certificate", quote("optional"))
	default:
		c.unknown(d)
		c.denied(s, d)
	}
}

// bind is where a site is to be served alone: of addresses of this machine only to its clients.
func (c *caddy) bind(s *site, d *directive, args []string) {
	c.unknown(d)
	if !slices.ContainsFunc(args, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		return a != "localhost" && (err != nil || !ip.IsLoopback())
	}) && len(args) > 0 {
		c.note(d.line, "only clients of this machine are admitted")
		s.key("allow", list([]string{"127.0.0.0/8", "::1"}))
	}
}
