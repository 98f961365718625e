package main

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
)

// forwarder is the action of a site or a route that forwards. It is immutable.
type forwarder struct {
	*proxy.Handler
	reports bool // the log of the requests has what is known of the upstream
}

// ServeDirect implements direct.Handler.
func (f *forwarder) ServeDirect(x *direct.Exchange) bool {
	if !f.reports {
		return f.Handler.ServeDirect(x)
	}
	report := new(proxy.Report)
	proxy.SetReport(x, report)
	if !f.Handler.ServeDirect(x) {
		return false
	}
	middleware.AddLogAttrsLater(x, func() []slog.Attr { return reportAttrs(report) })
	return true
}

// ServeHTTP implements http.Handler.
func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inner := r
	if f.reports {
		var report proxy.Report
		inner = r.WithContext(proxy.WithReport(r.Context(), &report))
		defer func() { middleware.AddLogAttrs(w, reportAttrs(&report)...) }()
	}
	f.Handler.ServeHTTP(&forwardWriter{ResponseWriter: w, r: r}, inner)
}

// clientHost returns an address without its port.
func clientHost(remote string) string {
	if host, _, err := net.SplitHostPort(remote); err == nil {
		return host
	}
	return remote
}

// reportAttrs are what a log has of a request that was forwarded.
func reportAttrs(r *proxy.Report) []slog.Attr {
	all := []slog.Attr{slog.String("upstream", r.Upstream)}
	if r.Server != "" {
		all = append(all, slog.String("server", r.Server), slog.Int("tries", r.Tries), slog.Bool("reused", r.Reused))
	}
	if r.Connect > 0 {
		all = append(all, slog.Duration("connect", r.Connect))
	}
	if r.FirstByte > 0 {
		all = append(all, slog.Duration("first_byte", r.FirstByte))
	}
	if r.Err != nil {
		all = append(all, slog.String("upstream_error", r.Err.Reason))
	}
	return all
}

// forwardWriter leaves the errors of upstreams as they are, where error pages replace those of chert.
type forwardWriter struct {
	http.ResponseWriter
	r   *http.Request
	own bool // the response is the proxy's own
}

// Unwrap is for http.ResponseController, and for middleware that looks for others.
func (w *forwardWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// RefusalHook is called before the proxy responds itself.
func (w *forwardWriter) RefusalHook() *refusal.Hook {
	w.own = true
	return refusal.Around(w.ResponseWriter)
}

// WriteHeader implements http.ResponseWriter.
func (w *forwardWriter) WriteHeader(status int) {
	if status >= 400 && !w.own {
		leaveErrors.ServeHTTP(w.ResponseWriter, w.r)
	}
	w.ResponseWriter.WriteHeader(status)
}

var leaveErrors = middleware.OwnErrors(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

// handler makes the action of a site or a route. reports is that of forwarder.
func (u *upstreams) handler(p *config.Proxy, reports bool) (direct.Handler, error) {
	otherwise, err := u.to(p, p.Upstream, reports, true)
	if err != nil {
		return nil, err
	}
	var choices []middleware.Choice
	for _, s := range p.Split {
		if s.When == nil {
			continue
		}
		h, err := u.to(p, s.Upstream, reports, false)
		if err != nil {
			return nil, err
		}
		choices = append(choices, middleware.Choice{When: *s.When, Handler: h})
	}
	h := http.Handler(otherwise)
	if len(choices) > 0 {
		if h, err = middleware.Choose(otherwise, choices...); err != nil {
			return nil, err
		}
	}
	if p.Compress {
		h = middleware.Must(middleware.Compress(nil))(h)
	}
	if d, ok := h.(direct.Handler); ok {
		return d, nil
	}
	return onOrdinary{h}, nil
}

// to makes a forwarder to an upstream or, with split, to those of the percentages of p.
func (u *upstreams) to(p *config.Proxy, c *config.Upstream, reports, split bool) (*forwarder, error) {
	o := proxy.Options{Upstream: u.by[c], Forwarded: p.Forwarded, Host: p.Host, StripPrefix: p.Strip, Logger: u.errs,
		Trusted: u.trusted.Prefixes, TrustLocal: u.trusted.Unix}
	if edit, err := editor(p); err != nil {
		return nil, err
	} else if edit != nil {
		o.Rewrite = edit
	}
	if split {
		o.Choose = u.percentages(p)
	}
	h, err := proxy.New(&o)
	return &forwarder{h, reports}, err
}

// editor returns what changes the request for the upstream, nil if nothing does.
func editor(p *config.Proxy) (func(*proxy.Request), error) {
	rewrite, err := middleware.Rewrite(&middleware.RewriteOptions{Rules: p.Rewrite})
	if err != nil {
		return nil, err
	}
	if len(p.Rewrite)+len(p.Headers) == 0 {
		return nil, nil
	}
	return func(r *proxy.Request) {
		if len(p.Rewrite) > 0 {
			rewrite(http.HandlerFunc(func(_ http.ResponseWriter, to *http.Request) {
				r.Out.URL = to.URL
			})).ServeHTTP(nil, r.Out)
		}
		for name, value := range p.Headers {
			if value == "" {
				r.Out.Header.Del(name)
			} else {
				r.Out.Header.Set(name, value)
			}
		}
	}, nil
}

// percentages returns what chooses by the percentages of p, nil if it has none. The part that a
// client belongs to depends on its address alone, so it stays in it, and a percentage that grows
// keeps those that it had.
func (u *upstreams) percentages(p *config.Proxy) func(*http.Request) *proxy.Upstream {
	type part struct {
		below uint64
		to    *proxy.Upstream
	}
	var all []part
	below := uint64(0)
	for _, s := range p.Split {
		if s.Percent > 0 {
			below += uint64(s.Percent)
			all = append(all, part{below, u.by[s.Upstream]})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return func(r *http.Request) *proxy.Upstream {
		n := pointOf(clientHost(r.RemoteAddr))
		for _, one := range all {
			if n < one.below {
				return one.to
			}
		}
		return nil
	}
}

// pointOf returns a number below 100 for a client: an IPv4 address, or a /64 of IPv6. Without an
// address it is a random one.
func pointOf(client string) uint64 {
	a, err := netip.ParseAddr(client)
	if err != nil {
		return rand.Uint64N(100)
	}
	b := peer.Network(a).As16()
	h := fnv.New64a()
	h.Write(b[:])
	n := h.Sum64()
	n ^= n >> 33 // the low bits of FNV depend on few of the input's
	n *= 0xff51afd7ed558ccd
	return (n ^ n>>33) % 100
}

// forward returns an action that tells what would be forwarded.
func (t *trace) forward(p *config.Proxy) (direct.Handler, error) {
	one := func(c *config.Upstream) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			target, host := r.URL.RequestURI(), r.Host
			if p.Strip != "" {
				target = strings.TrimPrefix(target, p.Strip)
			}
			switch p.Host {
			case "":
			case "upstream":
				host = "that of the server"
			default:
				host = p.Host
			}
			t.add("proxy", fmt.Sprintf("%s: %s %s, Host %s; not asked", showUpstream(c), r.Method, target, host))
			t.forwarded = true
		})
	}
	h := one(p.Upstream)
	var choices []middleware.Choice
	for _, s := range p.Split {
		if s.When != nil {
			choices = append(choices, middleware.Choice{When: *s.When, Handler: one(s.Upstream)})
		} else {
			rest := h
			h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				t.add("split", fmt.Sprintf("%s has %d %% of the clients", showUpstream(s.Upstream), s.Percent))
				rest.ServeHTTP(w, r)
			})
		}
	}
	if len(choices) > 0 {
		var err error
		if h, err = middleware.Choose(h, choices...); err != nil {
			return nil, err
		}
	}
	return onOrdinary{h}, nil
}

// showUpstream names an upstream, and its first servers.
func showUpstream(c *config.Upstream) string {
	if c.Options.SRV != "" {
		return c.Options.Name + " (" + c.Options.SRV + ")"
	}
	var addrs []string
	for _, s := range c.Options.Servers {
		if len(addrs) == 3 {
			addrs = append(addrs, fmt.Sprintf("%d more", len(c.Options.Servers)-3))
			break
		}
		addrs = append(addrs, s.Addr)
	}
	return c.Options.Name + " (" + strings.Join(addrs, ", ") + ")"
}
