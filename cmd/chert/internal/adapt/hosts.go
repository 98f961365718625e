package adapt

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// all translates the servers, when all are known.
func (n *nginx) all() {
	var plain, secure []string
	for i := range n.servers {
		n.addresses(&n.servers[i])
	}
	n.share()
	n.servers = slices.DeleteFunc(n.servers, n.unanswered())
	for i := range n.servers {
		secure = append(secure, n.servers[i].secure...)
	}
	closed := n.names(len(secure) > 0)
	for i := range n.servers {
		s := &n.servers[i]
		if len(secure) > 0 && len(s.secure) == 0 {
			n.note(s.d.line, "%s has no TLS, which other servers have: chert check wants a certificate for it too",
				strings.Join(s.hosts, " "))
		}
		for _, addr := range s.plain {
			if slices.Contains(closed, addr) {
				n.note(s.d.line, "%s is not served on %s, where others are with TLS only",
					strings.Join(s.hosts, " "), addr)
				continue
			}
			plain = append(plain, addr)
		}
	}
	plain, secure = unique(plain), unique(secure)
	for i := range n.servers {
		n.trust(&n.servers[i])
	}
	for i := range n.servers {
		n.server(&n.servers[i])
	}
	if n.quic {
		n.head = append(n.head, "http3 = true")
	}
	n.bound(plain, secure)
}

// unanswered returns a function that reports whether all that a server does is to refuse requests for hosts without a
// server of their own. chert answers those 421.
func (n *nginx) unanswered() func(s server) bool {
	var others []server
	for _, s := range n.servers {
		if only, _ := forAll(s.d.block); !only || !refusesAll(s.d.block) {
			others = append(others, s)
		}
	}
	return func(s server) bool {
		only, _ := forAll(s.d.block)
		return only && refusesAll(s.d.block) && len(others) > 0 && !slices.ContainsFunc(others, func(o server) bool {
			_, too := forAll(o.d.block)
			return too && (len(o.secure) > 0 && len(s.secure) > 0 || len(o.plain) > 0 && len(s.plain) > 0)
		})
	}
}

// forAll reports whether a server has no host of its own, and whether it gets the requests for hosts without a server.
func forAll(block []directive) (only, too bool) {
	only = true
	for _, d := range block {
		switch d.name() {
		case "listen":
			too = too || slices.Contains(d.words, "default_server") || slices.Contains(d.words, "default")
		case "server_name":
			for _, name := range d.words[1:] {
				none := name == "_" || name == ""
				only, too = only && none, too || none
			}
		}
	}
	return only, only || too
}

// refusesAll reports whether a server does nothing but refuse requests, or connections.
func refusesAll(block []directive) (refuses bool) {
	for i := range block {
		switch d := &block[i]; {
		case d.name() == "return" && withholds(d) && len(d.words) == 2, d.name() == "deny" && d.arg(0) == "all",
			d.name() == "ssl_reject_handshake" && d.arg(0) == "on":
			refuses = true
		case !slices.Contains([]string{"listen", "server_name", "access_log"}, d.name()) &&
			!slices.Contains(unneeded, d.name()) && !strings.HasPrefix(d.name(), "ssl_"):
			return false
		}
	}
	return refuses
}

// names gives each server its hosts, and leaves out those that have none: they redirect to https, or other servers
// have the hosts, those with TLS first. It returns the addresses where plain HTTP of hosts with TLS is redirected or
// left out: chert would serve them there as with TLS.
func (n *nginx) names(secured bool) (closed []string) {
	var encrypted, taken []string
	for i := range n.servers {
		s := &n.servers[i]
		if secured && n.redirectsToTLS(s) {
			closed = append(closed, s.plain...)
			n.upgrade(s)
			if len(s.secure) == 0 {
				continue
			}
			s.plain = nil
		}
		if s.hosts = n.hosts(s); len(s.secure) > 0 {
			encrypted = append(encrypted, s.hosts...)
		}
	}
	for i := range n.servers {
		s := &n.servers[i]
		s.hosts = slices.DeleteFunc(s.hosts, func(h string) bool {
			switch {
			case len(s.secure) == 0 && slices.Contains(encrypted, h):
				n.note(s.d.line, "host %s has a server with TLS: this one is left out, and what it listens on; want "+
					"http_redirect, or [[listen]] with tls = false", h)
				closed = append(closed, s.plain...)
			case slices.Contains(taken, h):
				n.note(s.d.line, "host %s has a server already", h)
			default:
				return false
			}
			return true
		})
		taken = append(taken, s.hosts...)
	}
	n.servers = slices.DeleteFunc(n.servers, func(s server) bool { return len(s.hosts) == 0 })
	return closed
}

// upgrade makes the address where a server redirects to https the one of http_redirect.
func (n *nginx) upgrade(s *server) {
	for _, addr := range s.plain {
		if n.redirect == "" {
			n.redirect = addr
		} else if addr != n.redirect {
			n.note(s.d.line, "the redirect to https on %s is left out: http_redirect is one address", addr)
		}
	}
}

// addresses reads where a server listens.
func (n *nginx) addresses(s *server) {
	for i := range s.d.block {
		d := &s.d.block[i]
		if d.name() != "listen" {
			continue
		}
		addr := strings.Replace(d.arg(0), "[::]:", ":", 1)
		addr = strings.Replace(addr, "*:", ":", 1)
		if _, ok := number(addr); ok {
			addr = ":" + addr
		} else if !strings.Contains(addr, ":") {
			addr += ":80"
		}
		secure := false
		for _, option := range d.words[min(2, len(d.words)):] {
			switch option {
			case "ssl":
				secure = true
			case "proxy_protocol":
				n.note(d.line, "listen ... proxy_protocol is left out: want proxy_protocol in [[listen]], with the "+
					"addresses of the proxies")
			case "quic":
				secure, n.quic = true, true // on the port of TCP, of which there is to be one
			}
		}
		if secure {
			s.secure = append(s.secure, addr)
		} else {
			s.plain = append(s.plain, addr)
		}
	}
	if len(s.plain)+len(s.secure) == 0 {
		s.plain = []string{":80"}
	}
}

var (
	// entire is a regular expression for all paths, and the URL with https that they are redirected to.
	entire = regexp.MustCompile(`^(?:\^|\^?/?\(?\.\*\)?\$?|\^/) https://([^/]+?)(?::443)?` +
		`(?:\$request_uri|\$uri(?:\$is_args\$args)?|/?\$1)\??$`)
	// unencrypted are conditions that hold for plain HTTP alone.
	unencrypted = []string{"($scheme=http)", "($scheme!=https)", "($https=)", "($https!=on)", "($server_port=80)",
		"($server_port!=443)"}
)

// toTLS returns the host that a directive redirects to https with the path as it is, "" for another directive.
func toTLS(d *directive) string {
	expression := "^"
	switch url := d.arg(1); {
	case d.name() == "rewrite":
		expression = d.arg(0)
		fallthrough
	case d.name() == "return":
		if len(d.words) == 2 {
			url = d.arg(0)
		}
		if m := entire.FindStringSubmatch(expression + " " + url); m != nil {
			return m[1]
		}
	}
	return ""
}

// ofPlain reports whether a directive is an if for plain HTTP, or has one.
func ofPlain(d directive) bool {
	return d.name() == "if" && slices.Contains(unencrypted, strings.Join(d.words[1:], "")) ||
		slices.ContainsFunc(d.block, ofPlain)
}

// anyHost reports whether a host is that of the request.
func anyHost(host string) bool {
	return host == "$host" || host == "$http_host" || host == "$server_name"
}

// redirectsToTLS reports whether a server does nothing with plain HTTP but redirect to the same host with https, or to
// one host of its own.
func (n *nginx) redirectsToTLS(s *server) bool {
	var names, redirected []string
	var to, inner *directive
	var besides []*directive
	for i := range s.d.block {
		d := &s.d.block[i]
		switch {
		case d.name() == "server_name":
			names = append(names, d.words[1:]...)
		case ofPlain(*d) && len(d.block) == 1 && anyHost(toTLS(&d.block[0])):
			s.d.block = slices.Delete(s.d.block, i, i+1)
			return true
		case d.name() == "if":
			redirected = append(redirected, hostToTLS(d))
		case to == nil && (d.name() == "return" || toTLS(d) != ""):
			to = d
		case d.name() == "location" && d.words[len(d.words)-1] == "/" && (len(d.words) == 2 || d.arg(0) == "^~"):
			if at := slices.IndexFunc(d.block, func(in directive) bool { return toTLS(&in) != "" }); at >= 0 {
				inner = &d.block[at]
			}
		case d.name() == "location":
			besides = append(besides, d)
		}
	}
	if len(s.secure) > 0 {
		return ofPlain(*s.d) // and does something else there
	}
	if slices.Equal(slices.Sorted(slices.Values(unique(names))), slices.Sorted(slices.Values(unique(redirected)))) &&
		len(names) > 0 {
		if to != nil {
			n.note(to.line, "return of other hosts is left out: http_redirect redirects all")
		}
		return true
	}
	if to == nil {
		to = inner
	}
	if to == nil || !n.ownHost(to, names) {
		return false
	}
	for _, d := range besides {
		if to == inner {
			n.note(d.line, "location %s is left out: http_redirect redirects all but the challenges of tls_auto",
				d.words[len(d.words)-1])
		}
	}
	return true
}

// ownHost reports whether a redirect is to https of the request's host, or of one of some names or of a server with
// TLS.
func (n *nginx) ownHost(to *directive, names []string) bool {
	host := toTLS(to)
	if anyHost(host) {
		return true
	}
	all := slices.Clone(names)
	for _, s := range n.servers {
		for i := range s.d.block {
			if d := &s.d.block[i]; d.name() == "server_name" && len(s.secure) > 0 {
				all = append(all, d.words[1:]...)
			}
		}
	}
	if !slices.ContainsFunc(all, func(name string) bool {
		return strings.EqualFold(strings.TrimPrefix(name, "."), host)
	}) {
		return false
	}
	if !slices.Equal(names, []string{host}) {
		n.note(to.line, "all is redirected to %s here; http_redirect leaves the host as it is", host)
	}
	return true
}

// hostToTLS returns the host that an if redirects to https, as those that Certbot writes do; "" for another if.
func hostToTLS(d *directive) string {
	if len(d.words) != 4 || d.arg(0) != "($host" || d.arg(1) != "=" || len(d.block) != 1 {
		return ""
	}
	host, closed := strings.CutSuffix(d.arg(2), ")")
	only := &d.block[0]
	if !closed || only.name() != "return" || !slices.Contains([]string{"https://$host$request_uri",
		"https://" + host + "$request_uri"}, only.arg(1)) {
		return ""
	}
	return host
}

// hosts reads server_name, and default_server of listen.
func (n *nginx) hosts(s *server) (hosts []string) {
	var at *directive
	for i := range s.d.block {
		d := &s.d.block[i]
		if d.name() == "listen" && slices.Contains(d.words, "default_server") {
			hosts = append(hosts, "*")
		}
		if d.name() != "server_name" {
			continue
		}
		at = d
		for _, name := range d.words[1:] {
			switch {
			case name == "_" || name == "":
				hosts = append(hosts, "*")
			case strings.HasPrefix(name, "~") || strings.HasSuffix(name, ".*"):
				n.note(d.line, "server_name %s is left out: hosts are names, and \"*.\" before one", name)
			case strings.HasPrefix(name, "."):
				hosts = append(hosts, name[1:], "*"+name)
			default:
				hosts = append(hosts, name)
			}
		}
	}
	if hosts = unique(hosts); len(hosts) > 0 {
		return hosts
	}
	if at != nil {
		n.note(at.line, "server_name has no other host, so that the site is for all: hosts is \"*\"")
	}
	return []string{"*"}
}

// local keeps a site from clients of other machines if its server listens for this one only, unlike others: chert
// serves every site on every address.
func (n *nginx) local(s *server, out *site) {
	own := slices.Concat(s.plain, s.secure)
	public := func(addr string) bool { return addr == ":80" || addr == ":443" }
	if slices.ContainsFunc(own, public) || !slices.ContainsFunc(n.servers, func(o server) bool {
		return slices.ContainsFunc(slices.Concat(o.plain, o.secure), func(addr string) bool {
			return !slices.Contains(own, addr)
		})
	}) {
		return
	}
	n.note(s.d.line, "%s is served on the addresses of other servers too: every site is on all",
		strings.Join(s.hosts, " "))
	var clients []string
	for _, addr := range own {
		host, _, _ := net.SplitHostPort(addr)
		ip, _ := netip.ParseAddr(host)
		switch {
		case strings.HasPrefix(addr, "unix:"):
			clients = append(clients, "unix")
		case ip.IsLoopback() || host == "localhost":
			clients = append(clients, "127.0.0.0/8", "::1")
		default:
			return
		}
	}
	if out.name == "site" && !hasKey(out.keys, "allow") {
		n.note(s.d.line, "only clients of this machine are admitted to it")
		out.key("allow", list(unique(clients)))
	}
}
