package adapt

import (
	"net/netip"
	"slices"
	"strings"
)

// listening is where the sites of Caddy are, and with which certificates unless they say so.
type listening struct {
	secure []string
	off    bool // auto_https: TLS is for sites that say so
	stay   bool // plain HTTP is not redirected
	own    bool // local_certs
	named  bool // there is a site with TLS and a host
}

// autoHTTPS reads the global option.
func (l *listening) autoHTTPS(d *directive) (known bool) {
	for _, w := range d.words[1:] {
		switch w {
		case "off":
			l.off, l.stay = true, true
		case "disable_redirects":
			l.stay = true
		default:
			return false
		}
	}
	return len(d.words) > 1
}

// An address is one of a site.
type address struct {
	host, port string
	secure     bool
}

// addressOf reads an address, without a path. tls is the directive of the site, nil for none.
func (c *caddy) addressOf(text string, tls *directive) (a address) {
	rest, plain := strings.CutPrefix(text, "http://")
	rest, https := strings.CutPrefix(rest, "https://")
	a.host = rest
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		a.host, a.port = rest[:i], rest[i+1:]
	}
	named := a.host != "" && (!c.at.off || a.port == "")
	a.secure = !plain && a.port != "80" && (https || a.port == "443" || named || tls != nil)
	switch {
	case a.port != "":
	case plain || !a.secure:
		a.port = "80"
	default:
		a.port = "443"
	}
	if a.host == "" {
		a.host = "*"
	}
	return a
}

// addresses reads those of a block, and gives the site a certificate if one of them has TLS and nothing says which.
func (c *caddy) addresses(s *site, d *directive, tls *directive) {
	for _, word := range d.words {
		for text := range strings.SplitSeq(word, ",") {
			if text == "" {
				continue
			}
			_, rest, scheme := strings.Cut(text, "://")
			if !scheme {
				rest = text
			}
			if strings.ContainsAny(rest, "/{") || isVariable(rest) && strings.Contains(rest, ":") {
				c.note(d.line, "the address %s is left out: want hosts, and routes for paths", text)
				if strings.Contains(rest, "/") {
					c.pathed = append(c.pathed, pathed{rest, caddyRefusal(d.block)})
				}
				continue
			}
			a := c.addressOf(text, tls)
			s.hosts = append(s.hosts, a.host)
			if a.secure {
				s.secure = unique(append(s.secure, ":"+a.port))
				c.at.named = c.at.named || a.host != "*"
			} else {
				s.plain = unique(append(s.plain, ":"+a.port))
			}
		}
	}
	s.hosts = unique(s.hosts)
	c.at.secure = unique(append(c.at.secure, s.secure...))
	says := tls != nil && (len(tls.words) > 2 || tls.arg(0) == "internal")
	if len(s.secure) == 0 || says || slices.Equal(s.hosts, []string{"*"}) {
		return
	}
	if c.at.own || !slices.ContainsFunc(s.hosts, publicName) {
		s.key("tls_self", "true")
		return
	}
	s.key("tls_auto", "true")
}

// publicName reports whether a host has a certificate of a public authority in Caddy.
func publicName(host string) bool {
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return false
	}
	host = strings.ToLower(host)
	return host != "localhost" && !slices.ContainsFunc([]string{".localhost", ".local", ".internal", ".home.arpa"},
		func(end string) bool { return strings.HasSuffix(host, end) })
}

// listens writes where sites are served.
func (c *caddy) listens() {
	if len(c.at.secure) > 0 {
		c.upgraded()
	}
	redirected := c.redirect != "" || c.at.named && !c.at.stay && slices.ContainsFunc(c.sites, func(s *site) bool {
		return len(s.secure) > 0 && !slices.Contains(s.plain, ":80")
	})
	var plain []string
	for _, s := range c.sites {
		if len(c.at.secure) > 0 && len(s.secure) == 0 {
			c.note(s.line, "%s has no TLS, which other sites have: chert check wants a certificate for it too",
				strings.Join(s.hosts, " "))
		}
		for _, addr := range s.plain {
			if redirected && addr == ":80" {
				c.note(s.line, "%s is not served on :80, where others are redirected to https",
					strings.Join(s.hosts, " "))
				continue
			}
			if o := c.onlySecure(addr); o != nil {
				c.note(s.line, "%s is not served on %s, where %s would be without TLS too: want a file for each, and "+
					"two servers", strings.Join(s.hosts, " "), addr, strings.Join(o.hosts, " "))
				continue
			}
			plain = unique(append(plain, addr))
		}
	}
	if redirected {
		c.redirect = ":80"
	}
	for _, s := range c.sites {
		c.elsewhere(s, slices.Concat(plain, c.at.secure))
	}
	c.bound(plain, c.at.secure)
}

// onlySecure returns a site that an address without TLS is not for, and that has TLS: every site is on all addresses.
func (c *caddy) onlySecure(addr string) *site {
	for _, s := range c.sites {
		if len(s.secure) > 0 && !slices.Contains(s.plain, addr) {
			return s
		}
	}
	return nil
}

// elsewhere notes that a site of other ports than the usual ones is on all.
func (c *caddy) elsewhere(s *site, all []string) {
	own := slices.Concat(s.plain, s.secure)
	if slices.Contains(own, ":80") || slices.Contains(own, ":443") ||
		!slices.ContainsFunc(own, func(addr string) bool { return slices.Contains(all, addr) }) ||
		!slices.ContainsFunc(all, func(addr string) bool { return !slices.Contains(own, addr) }) {
		return
	}
	c.note(s.line, "%s is served on the addresses of other sites too: every site is on all", strings.Join(s.hosts, " "))
}

// upgraded leaves out sites that do nothing but what http_redirect does.
func (c *caddy) upgraded() {
	c.sites = slices.DeleteFunc(c.sites, func(s *site) bool {
		same := slices.Contains(s.keys, "to = "+quote("https://{host}{uri}")) ||
			len(s.hosts) == 1 && slices.Contains(s.keys, "to = "+quote("https://"+s.hosts[0]+"{uri}"))
		only := same && s.name == "redirect" && len(s.secure) == 0 && slices.Equal(s.plain, []string{":80"})
		if only {
			c.redirect = ":80"
		}
		return only
	})
}
