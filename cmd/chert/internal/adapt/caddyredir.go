package adapt

import (
	"slices"
	"strings"
)

// redir translates redirects of a whole site, of a path, and of some hosts.
func (c *caddy) redir(s *site, d *directive, args []string) {
	path := ""
	if len(args) > 1 && strings.ContainsAny(args[0][:min(1, len(args[0]))], "/@") {
		path, args = args[0], args[1:]
	}
	to, status, ok := redirection(args)
	switch {
	case !ok || strings.HasSuffix(path, "*") || strings.HasPrefix(path, "@") && !c.hosts(s, d, path, to, status):
		c.unknown(d)
	case path == "":
		s.name = "redirect"
		s.key("to", quote(to))
		s.key("status", status)
	case path[0] == '/':
		r := new(route)
		r.key("path", quote(path))
		r.key("redirect", quote(to))
		r.key("status", status)
		s.routes = append(s.routes, r)
	}
}

// redirection reads where a redirect leads to, and its status.
func redirection(args []string) (to, status string, ok bool) {
	status = "302"
	if len(args) == 2 {
		status = map[string]string{"permanent": "301", "temporary": "302", "html": ""}[args[1]]
		if status == "" {
			status = args[1]
		}
	}
	if len(args) == 0 || len(args) > 2 || !strings.Contains("301 302 303 307 308", status) || len(status) != 3 ||
		strings.HasPrefix(args[0], "@") {
		return "", "", false
	}
	to = args[0]
	return to, status, !strings.ContainsAny(strings.NewReplacer("{uri}", "", "{host}", "").Replace(to), "{}")
}

// hosts keeps a redirect for some hosts of a site, and reports whether its matcher is for those, and not for all.
func (c *caddy) hosts(s *site, d *directive, matcher, to, status string) bool {
	test := c.test(matcher)
	if len(test) < 2 || test[0] != "host" {
		return false
	}
	moved := &site{line: d.line, name: "redirect", hosts: test[1:]}
	for _, host := range moved.hosts {
		if !slices.Contains(s.hosts, host) || slices.ContainsFunc(c.moved, func(o *site) bool {
			return slices.Contains(o.hosts, host)
		}) {
			return false
		}
	}
	moved.key("to", quote(to))
	moved.key("status", status)
	c.moved, c.used = append(c.moved, moved), append(c.used, matcher)
	return true
}

// apart makes redirects of some hosts of a site sites of their own, with its certificates.
func (c *caddy) apart(s *site) {
	for _, m := range c.moved {
		left := slices.DeleteFunc(slices.Clone(s.hosts), func(h string) bool { return slices.Contains(m.hosts, h) })
		if len(left) == 0 {
			c.note(m.line, "redir of all hosts is left out: want [[redirect]]")
			continue
		}
		s.hosts, m.plain, m.secure = left, s.plain, s.secure
		to := m.keys
		m.keys = slices.DeleteFunc(slices.Clone(s.keys), func(line string) bool {
			return !strings.HasPrefix(line, "tls_") && !strings.HasPrefix(line, "client_ca")
		})
		m.keys = append(m.keys, to...)
		c.sites = append(c.sites, m)
	}
}
