package main

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
)

// proxiesFlag is the value of --trusted-proxy.
type proxiesFlag struct{ config.Proxies }

func (f *proxiesFlag) Set(s string) error { return f.Add(s) }

// Type is the name of the value in the help.
func (f *proxiesFlag) Type() string { return "cidr" }

// behind sets the address of a request, for h, to that of the client that trusted proxies report. The log, which is
// outside of it, sees it too: the request keeps it. With ids their ids of requests are used as well.
func behind(h http.Handler, p config.Proxies, ids bool) http.Handler {
	if !p.Some() {
		return h
	}
	// config.Proxies.Add refuses the prefixes that RealIP would.
	return middleware.Must(middleware.RealIP(&middleware.RealIPOptions{Trusted: p.Prefixes, TrustLocal: p.Unix,
		Note: ids}))(h)
}

// proxied is which proxies are trusted, on each address. It is immutable after at.
type proxied struct {
	file config.Proxies // on addresses without a list of their own
	all  []listened
}

// listened is an address, as endpoint has it.
type listened struct {
	l                net.Listener // nil before at
	proxies, headers *config.Proxies
}

func newProxied(all []endpoint, file config.Proxies) *proxied {
	p := &proxied{file: file}
	for _, e := range all {
		p.all = append(p.all, listened{proxies: e.proxies, headers: e.headers})
	}
	return p
}

// at sets the listeners, in the order of the endpoints. It is called before the first request.
func (p *proxied) at(bindings []*binding) {
	for i, b := range bindings {
		p.all[i].l = b.Listener
	}
}

// some reports whether any address trusts X-Forwarded-For of anybody.
func (p *proxied) some() bool {
	some := p.file.Some()
	for i := range p.all {
		some = some || p.all[i].proxies.Some()
	}
	return some
}

// believed returns the proxies whose X-Forwarded-* fields a request may keep that has no X-Forwarded-For: those of
// the file, if they are the same on all addresses. What has one is decided where the client's address is set.
func (p *proxied) believed() config.Proxies {
	for i := range p.all {
		if p.all[i].proxies != nil {
			return config.Proxies{}
		}
	}
	return p.file
}

// headers is chert.Server.ProxyProtocol.
func (p *proxied) headers(l net.Listener, peer netip.Addr) bool {
	for i := range p.all {
		if one := &p.all[i]; one.l == l {
			return one.headers.Some() && one.headers.Has(peer)
		}
	}
	return false
}

// behind is behind of each address, for h, which is direct.
func (p *proxied) behind(h http.Handler, ids bool) http.Handler {
	all := &byAddress{proxied: p, of: make([]http.Handler, len(p.all)), rest: behind(h, p.file, ids)}
	for i, one := range p.all {
		if one.proxies != nil {
			all.of[i], all.some = behind(h, *one.proxies, ids), true
		}
	}
	if !all.some {
		return all.rest
	}
	return all
}

// byAddress passes a request on to the handler of the address that it came to.
type byAddress struct {
	*proxied
	of   []http.Handler // nil for rest
	rest http.Handler
	some bool
}

func (a *byAddress) handler(local net.Addr) http.Handler {
	for i, h := range a.of {
		if h != nil && accepts(a.all[i].l.Addr(), local) {
			return h
		}
	}
	return a.rest
}

// ServeHTTP implements http.Handler.
func (a *byAddress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	a.handler(local).ServeHTTP(w, r)
}

// TakesAhead is what wire.TakesAhead asks.
func (a *byAddress) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler.
func (a *byAddress) ServeDirect(x *direct.Exchange) bool {
	h, ok := a.handler(x.Wire().LocalAddr()).(direct.Handler)
	return ok && x.Wire().Admits(h) && h.ServeDirect(x)
}
