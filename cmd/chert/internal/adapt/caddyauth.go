package adapt

import (
	"slices"
	"strings"
)

// passwords translates basic_auth of some paths, when all routes are known: those in a path have it, and what the site
// itself has there becomes a route with it. What cannot be so is refused.
func (c *caddy) passwords(s *site) {
	for _, d := range c.auths {
		paths := d.words[1:2]
		if strings.HasPrefix(paths[0], "@") {
			test := c.test(paths[0])
			if len(test) < 2 || test[0] != "path" {
				c.unknown(d)
				c.denied(s, d)
				continue
			}
			c.used, paths = append(c.used, paths[0]), test[1:]
		}
		if !slices.ContainsFunc(paths, func(m string) bool { return !c.guardable(s, m) }) {
			for _, m := range paths {
				c.password(s, d, m)
			}
			continue
		}
		c.unknown(d)
		if !c.refusePaths(s, d, paths) {
			c.denied(s, d)
			continue
		}
		c.note(d.line, "%s says who may have %s, so nobody may", d.name(), strings.Join(paths, " "))
	}
}

// guardable reports whether what a matcher is for is in routes of its own, or what the site itself has.
func (c *caddy) guardable(s *site, matcher string) bool {
	pattern, below, ok := pathOf(matcher)
	if !ok || s.name != "site" || hasKey(s.keys, "try") || hasUsers(s.tables) {
		return false
	}
	path := strings.TrimSuffix(pattern, "{path...}")
	for _, r := range s.routes {
		begin, all := r.path()
		around := all && strings.HasPrefix(path, begin) && r.keys[0] != "path = "+quote(pattern)
		if around || strings.HasPrefix(begin, path) && hasUsers(r.tables) {
			return false
		}
	}
	return hasKey(s.keys, "proxy") || below && hasKey(s.keys, "root")
}

func hasUsers(tables []string) bool {
	return slices.ContainsFunc(tables, func(t string) bool { return strings.Contains(t, ".basic_auth]\n") })
}

// password has the users of a directive for a matcher.
func (c *caddy) password(s *site, d *directive, matcher string) {
	pattern, below, _ := pathOf(matcher)
	patterns := []string{pattern}
	c.guarded = append(c.guarded, pattern)
	if below && !strings.HasSuffix(matcher, "/*") {
		c.note(d.line, "%s is for all that begins with it; the route is for %s and below", matcher, pattern)
		c.beyond = append(c.beyond, matcher)
		if hasKey(s.keys, "proxy") {
			patterns = append(patterns, strings.TrimSuffix(pattern, "/{path...}"))
		}
	}
	for _, p := range patterns {
		if slices.ContainsFunc(s.routes, func(r *route) bool { return r.keys[0] == "path = "+quote(p) }) {
			continue
		}
		r := new(route)
		r.key("path", quote(p))
		for _, line := range s.keys {
			switch key, value, _ := strings.Cut(line, " = "); {
			case hasKey(s.keys, "proxy"):
				if strings.HasPrefix(key, "proxy") || key == "request_headers" {
					r.key(key, value)
				}
			case key == "root":
				r.key(key, quote(join(c.root, strings.TrimSuffix(p, "{path...}"))))
			}
		}
		s.routes = append(s.routes, r)
	}
	for _, r := range s.routes {
		path, _ := r.path()
		in := slices.Contains(patterns, strings.Trim(strings.TrimPrefix(r.keys[0], "path = "), `"`)) ||
			below && strings.HasPrefix(path, strings.TrimSuffix(pattern, "{path...}"))
		if in && !hasKey(r.keys, "redirect") { // which comes first in Caddy
			c.basicAuth(d, r.table, "site.route")
		}
	}
}

// cases hides what is forwarded in other cases of letters than routes that ask for something, which Caddy's matchers
// are for too.
func (c *caddy) cases(s *site) {
	for _, pattern := range c.guarded {
		path, below := strings.CutSuffix(pattern, "{path...}")
		if strings.Trim(path, "/") == "" {
			continue
		}
		hidden := literal.Replace(strings.TrimSuffix(path, "{$}"))
		if below {
			hidden += "**"
		}
		if hasKey(s.keys, "proxy") {
			s.hidden = append(s.hidden, hidden)
		}
		for _, r := range s.routes {
			if hasKey(r.keys, "proxy") && r.keys[0] != "path = "+quote(pattern) {
				r.hidden = append(r.hidden, r.below([]string{hidden})...)
			}
		}
	}
}
