package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/middleware"
)

// doubts tell what a configuration permits and its author has probably not meant.
func doubts(cfg *config.Config) (all []string) {
	wide := func(key string, p *config.Proxies) {
		if p == nil {
			return
		}
		for _, p := range p.Prefixes {
			if tooWide(p) {
				all = append(all, fmt.Sprintf("%s has %v, with many public addresses: a client from one of "+
					"them can claim any address", key, p))
			}
		}
	}
	wide("trusted_proxies", &cfg.Proxies)
	for _, l := range cfg.Listen {
		wide("trusted_proxies of "+l.Address, l.Proxies)
		wide("proxy_protocol of "+l.Address, l.Headers)
	}
	open := slices.ContainsFunc(cfg.Listen, reachedByOthers)
	for _, s := range cfg.Sites {
		name := "the site for " + quote(string(s.Hosts[0]))
		if open && s.Root != "" && s.Options.Listing && s.Options.Dotfiles {
			all = append(all, name+listsDots)
		}
		if admitsNobody(s.Access) {
			all = append(all, name+" admits nobody: deny includes all that allow has")
		}
		if early(s.Proxy) && !cfg.HTTP3EarlyData {
			all = append(all, name+noEarlyData)
		}
		for _, r := range s.Routes {
			what := fmt.Sprintf("the route %s of %s", quote(r.Path), name)
			if open && r.Root != "" && r.Options.Listing && r.Options.Dotfiles {
				all = append(all, what+listsDots)
			}
			if early(r.Proxy) && !cfg.HTTP3EarlyData {
				all = append(all, what+noEarlyData)
			}
			if r.Access != s.Access && admitsNobody(r.Access) {
				all = append(all, what+" admits nobody: deny includes all that allow has")
			}
		}
	}
	return slices.Concat(all, ownServers(cfg), shadowed(cfg), loops(cfg))
}

// ownServers tells which servers of upstreams are addresses that the file listens on. It is permitted, as another
// site may answer there.
func ownServers(cfg *config.Config) (all []string) {
	listen := []endpoint{defaultListen}
	if len(cfg.Listen) > 0 {
		listen = nil
	}
	for _, l := range cfg.Listen {
		if e, err := parseEndpoint(l.Address); err == nil {
			listen = append(listen, e)
		}
	}
	for _, u := range cfg.Upstreams {
		for _, s := range u.Options.Servers {
			if slices.ContainsFunc(listen, func(e endpoint) bool { return e.isAt(s.Addr) }) {
				all = append(all, fmt.Sprintf("chert itself listens on %s, which is a server of an upstream in %v: "+
					"requests come back, and are answered 508 at last", s.Addr, u.At))
			}
		}
	}
	return all
}

// shadowed tells which routes with a condition are never used: one before it with the same path
// has all their requests.
func shadowed(cfg *config.Config) (all []string) {
	for _, s := range cfg.Sites {
		for i := range s.Routes {
			r := &s.Routes[i]
			before := slices.IndexFunc(s.Routes[:i], func(o config.Route) bool {
				return o.When != nil && r.When != nil && o.Key() == r.Key() && includes(o.When, r.When)
			})
			if before >= 0 {
				all = append(all, fmt.Sprintf("the route %s in %v is never used: the one in %v has all its requests",
					quote(r.Path), r.At, s.Routes[before].At))
			}
		}
	}
	return all
}

// includes reports whether every request that meets narrow meets wide.
func includes(wide, narrow *middleware.Condition) bool {
	within := func(wide, narrow map[string]string, same func(a, b string) bool) bool {
		for name, value := range wide {
			found := false
			for n, v := range narrow {
				found = found || same(n, name) && (value == "*" || v == value)
			}
			if !found {
				return false
			}
		}
		return true
	}
	exact := func(a, b string) bool { return a == b }
	if !within(wide.Header, narrow.Header, strings.EqualFold) || !within(wide.Cookie, narrow.Cookie, exact) ||
		!within(wide.Query, narrow.Query, exact) {
		return false
	}
	if len(wide.From) == 0 && !wide.FromLocal {
		return true
	}
	return (len(narrow.From) > 0 || narrow.FromLocal) && (wide.FromLocal || !narrow.FromLocal) &&
		!slices.ContainsFunc(narrow.From, func(n netip.Prefix) bool {
			return !slices.ContainsFunc(wide.From, func(w netip.Prefix) bool {
				return w.Bits() <= n.Bits() && w.Contains(n.Addr())
			})
		})
}

func early(p *config.Proxy) bool { return p != nil && p.EarlyData }

const noEarlyData = " has early_data, which needs http3_early_data of the file: there is none"

const listsDots = " lists names that begin with a dot, such as .git and .env, and others can reach it"

// tooWide reports whether a prefix has more public addresses than the largest networks of
// proxies.
func tooWide(p netip.Prefix) bool {
	most := 12
	if p.Addr().Is6() {
		most = 28
	}
	return p.Bits() < most && !slices.ContainsFunc(notPublic, func(o netip.Prefix) bool {
		return o.Bits() <= p.Bits() && o.Contains(p.Addr())
	})
}

// notPublic are networks that are not routed in the internet and are large enough to be trusted
// as a whole: RFC 1918, loopback, and unique local addresses.
var notPublic = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("fc00::/7")}

// reachedByOthers reports whether other machines may connect to an address.
func reachedByOthers(l config.Listen) bool {
	e, err := parseEndpoint(l.Address)
	if err != nil || e.network != "tcp" {
		return false
	}
	addr, err := netip.ParseAddrPort(e.address)
	return (err != nil || !addr.Addr().IsLoopback()) && !strings.HasPrefix(e.address, "localhost:")
}

// admitsNobody reports whether deny includes each prefix of allow. Without allow, deny = "all" says
// what it means.
func admitsNobody(o *middleware.IPFilterOptions) bool {
	if o == nil || len(o.Allow) == 0 || o.AllowLocal && !o.DenyLocal {
		return false
	}
	return !slices.ContainsFunc(o.Allow, func(a netip.Prefix) bool {
		return a.Bits() == 0 || !slices.ContainsFunc(o.Deny, func(d netip.Prefix) bool {
			return d.Bits() <= a.Bits() && d.Contains(a.Addr())
		})
	})
}

// loops tells which redirects lead to themselves. One to https is none without a certificate:
// a proxy in front has it then.
func loops(cfg *config.Config) (all []string) {
	var table vhost.Table[int] // 0 for sites
	for _, s := range cfg.Sites {
		for _, h := range s.Hosts {
			table.Add(h, 0)
		}
	}
	for i, r := range cfg.Redirects {
		for _, h := range r.Hosts {
			table.Add(h, i+1)
		}
	}
	for i, r := range cfg.Redirects {
		// A host that the request has itself is one of the redirect's.
		host := strings.TrimPrefix(string(r.Hosts[0]), "*.")
		u, err := url.Parse(strings.NewReplacer("{host}", host, "{uri}", "/").Replace(r.To))
		if err != nil || u.Port() != "" || (u.Scheme == "https") != r.TLS.On() {
			continue
		}
		at, ok := vhost.Find(&table, u.Hostname())
		if ok && at == i+1 || strings.HasPrefix(r.To, u.Scheme+"://{host}") {
			all = append(all, fmt.Sprintf("the redirect for %s leads to itself: to = %s", quote(string(r.Hosts[0])),
				quote(r.To)))
		}
	}
	return all
}
