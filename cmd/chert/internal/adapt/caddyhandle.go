package adapt

import (
	"slices"
	"strings"
)

// A block is what handle and its like do: it forwards, or has files.
type block struct {
	c          *caddy
	matcher    string // "" for everything
	cut        bool   // what is forwarded or looked for is without the beginning of the path
	proxy, try *directive
	root       string
	files      bool
	listing    bool
	besides    []*directive // what a route can have as well
	guarded    bool         // something is left out
	asks       bool         // there is forward_auth
}

// read reads a directive of the block.
func (b *block) read(d *directive) {
	args := unmatched(d)
	matched := len(args) > 0 && (args[0] == "" || strings.ContainsAny(args[0][:1], "/@"))
	switch d.name() {
	case "reverse_proxy":
		if b.proxy == nil && !matched {
			b.proxy = d
			return
		}
	case "encode":
		return
	case "root":
		if len(args) == 1 && !strings.HasPrefix(args[0], "@") {
			b.root = args[0]
			return
		}
	case "file_server":
		if browse := len(args) == 1 && args[0] == "browse"; len(d.block) == 0 && (browse || len(args) == 0) {
			b.files, b.listing = true, browse
			return
		}
	case "try_files":
		if b.try == nil && len(args) > 0 && !strings.HasPrefix(args[0], "@") {
			b.try = d
			return
		}
	case "uri":
		if len(args) == 2 && args[0] == "strip_prefix" && b.matcher == strings.TrimSuffix(args[1], "/")+"/*" {
			b.cut = true
			return
		}
	case "forward_auth":
		if b.c.asks == 0 && !b.asks && asked(d, args) != nil {
			b.besides, b.asks = append(b.besides, d), true
			return
		}
	case "header", "request_body", "basic_auth", "basicauth":
		if !matched {
			b.besides = append(b.besides, d)
			return
		}
	}
	b.c.unknown(d)
	b.guarded = true
}

// unmatched returns the arguments of a directive without the matcher of all requests.
func unmatched(d *directive) []string {
	if args := d.words[1:]; len(args) == 0 || args[0] != "*" {
		return args
	}
	return d.words[2:]
}

// handle translates blocks for a path that forward, or have files, and do nothing else that matters.
func (c *caddy) handle(s *site, d *directive, args []string) {
	if c.handledBefore(d, args) {
		return
	}
	b := &block{c: c, cut: d.name() == "handle_path"}
	if !c.roots {
		b.root = c.root
	}
	pattern, below, ok := "", true, len(args) == 0 && !b.cut
	if len(args) == 1 {
		b.matcher = args[0]
		pattern, below, ok = pathOf(args[0])
	}
	for i := range d.block {
		b.read(&d.block[i])
	}
	c.tried(d.block)
	if b.proxy != nil && b.try != nil { // which changes what is forwarded
		c.unknown(b.try)
		b.guarded = true
	}
	if b.asks && b.cut { // Caddy asks about the path that is left, chert about what the client has sent
		b.guarded = true
	}
	files := b.proxy == nil && b.files && !b.guarded && below && b.root != "" && !strings.Contains(b.root, "{") &&
		(pattern != "" || !hasKey(s.keys, "proxy"))
	if !ok || b.proxy == nil && !files {
		b.leave(s, d, pattern, below && ok)
		return
	}
	if pattern == "" && b.besides != nil { // which other routes are not to have from the site
		pattern = "/{path...}"
	}
	key, table, prefix := s.key, s.table, "site"
	var r *route
	if pattern != "" {
		r = &route{sole: true}
		r.key("path", quote(pattern))
		key, table, prefix = r.key, r.table, "site.route"
		s.routes = append(s.routes, r)
		if below && b.matcher != "" && !strings.HasSuffix(b.matcher, "/*") {
			c.note(d.line, "%s is for all that begins with it; the route is for %s and below", b.matcher, pattern)
		}
	}
	switch {
	case files:
		b.serve(pattern, key)
		c.served = c.served || r == nil || r.everything()
	case c.forward(b.proxy, unmatched(b.proxy), key, table, prefix):
		if b.cut && below {
			key("strip", "true")
		} else if b.cut {
			c.note(d.line, "handle_path of one path is left out: want [[site.route.rewrite]]")
		}
	case r == nil:
		s.refuse("/{path...}", unpassed)
		return
	default:
		r.key("respond", unpassed)
	}
	for _, in := range b.besides {
		switch in.name() {
		case "header":
			c.header(in, unmatched(in), table, prefix)
		case "request_body":
			c.requestBody(in, key)
		case "forward_auth":
			table(prefix+".forward_auth", asked(in, unmatched(in))...)
			c.guard(b.matcher, pattern)
		default:
			c.basicAuth(in, table, prefix)
			c.guard(b.matcher, pattern)
		}
	}
	if b.guarded {
		c.guard(b.matcher, pattern)
		c.note(d.line, "%s has what says who may have it, or changes it, so nobody may: deny is \"all\"", d.name())
		key("deny", nobody)
	}
}

// handledBefore reports whether a block before d, other than route, has the same name and matcher, so that no request
// reaches d in Caddy. See again for those of one pattern.
func (c *caddy) handledBefore(d *directive, args []string) bool {
	if d.name() == "route" { // of which one does not exclude the others
		return false
	}
	words := strings.Join(append([]string{d.name()}, args...), " ")
	before := slices.Contains(c.handled, words)
	if c.handled = append(c.handled, words); before {
		c.note(d.line, "%s is left out: one before it is for the same requests", d.name())
	}
	return before
}

// guard keeps what a matcher is for, and the pattern of a route that not all clients may have is not, from others.
func (c *caddy) guard(matcher, pattern string) {
	c.guarded = append(c.guarded, pattern)
	if strings.HasSuffix(matcher, "*") && !strings.HasSuffix(matcher, "/*") {
		c.beyond = append(c.beyond, matcher)
	}
}

// leave leaves the block out, and refuses what it is for if it does anything.
func (b *block) leave(s *site, d *directive, pattern string, below bool) {
	empty := true
	for i := range d.block {
		if in := &d.block[i]; in.name() != "encode" {
			b.c.unknown(in)
			empty = false
		}
	}
	if empty {
		return
	}
	b.c.note(d.line, "%s is left out: want [[site.route]] with a path", d.name())
	if pattern == "" {
		pattern = "/{path...}"
	}
	s.refuse(pattern, unpassed)
	if below && b.matcher != "" {
		b.c.beyond = append(b.c.beyond, b.matcher)
	}
}

// serve writes the keys of files, of the site or of a route with a pattern.
func (b *block) serve(pattern string, key func(key, value string)) {
	root, prefix := b.root, strings.TrimSuffix(pattern, "{path...}")
	if pattern != "" && !b.cut {
		root = join(root, prefix)
	} else {
		prefix = ""
	}
	key("root", quote(root))
	if b.listing {
		key("listing", "true")
	}
	if b.try != nil {
		b.c.tryFiles(b.try, unmatched(b.try), prefix, key)
	}
}
