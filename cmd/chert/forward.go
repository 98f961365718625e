package main

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/rfc/field"
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
	h, err := u.shares(p, reports)
	if err != nil {
		return nil, err
	}
	var choices []middleware.Choice
	for _, s := range p.Split {
		if s.When == nil {
			continue
		}
		to, err := u.to(p, s.Upstream, reports)
		if err != nil {
			return nil, err
		}
		choices = append(choices, middleware.Choice{When: *s.When, Handler: to})
	}
	if len(choices) > 0 {
		if h, err = middleware.Choose(h, choices...); err != nil {
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

// to makes a forwarder to an upstream.
func (u *upstreams) to(p *config.Proxy, c *config.Upstream, reports bool) (*forwarder, error) {
	o := proxy.Options{Upstream: u.by[c], Forwarded: p.Forwarded, Host: p.Host, StripPrefix: p.Strip, Logger: u.errs,
		EarlyData: p.EarlyData,
		Trusted:   u.trusted.Prefixes, TrustLocal: u.trusted.Unix}
	if edit, err := editor(p); err != nil {
		return nil, err
	} else if edit != nil {
		o.Rewrite = edit
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
		// Also what the upstream would take for one of them.
		maps.DeleteFunc(r.Out.Header, func(sent string, _ []string) bool {
			for name := range p.Headers {
				if field.SameVariable(name, sent) {
					return true
				}
			}
			return false
		})
		for name, value := range p.Headers {
			if value != "" {
				r.Out.Header.Set(name, value)
			}
		}
	}, nil
}

// shares passes requests to the forwarders of percentages of the clients. The part that a client
// belongs to depends on its address alone, so it stays in it, and a percentage that grows keeps those
// that it had. It is immutable.
type shares struct {
	parts []share
	rest  *forwarder
}

type share struct {
	below uint64
	to    *forwarder
}

// shares makes the forwarder to the upstream of p, or the shares of its percentages.
func (u *upstreams) shares(p *config.Proxy, reports bool) (http.Handler, error) {
	rest, err := u.to(p, p.Upstream, reports)
	if err != nil {
		return nil, err
	}
	s := &shares{rest: rest}
	below := uint64(0)
	for _, part := range p.Split {
		if part.Percent <= 0 {
			continue
		}
		to, err := u.to(p, part.Upstream, reports)
		if err != nil {
			return nil, err
		}
		below += uint64(part.Percent)
		s.parts = append(s.parts, share{below, to})
	}
	if len(s.parts) == 0 {
		return rest, nil
	}
	return s, nil
}

// at returns the forwarder of a number below 100.
func (s *shares) at(n uint64) *forwarder {
	for _, one := range s.parts {
		if n < one.below {
			return one.to
		}
	}
	return s.rest
}

// TakesAhead is what wire.TakesAhead asks.
func (s *shares) TakesAhead() bool { return true }

// ServeDirect implements direct.Handler.
func (s *shares) ServeDirect(x *direct.Exchange) bool {
	n, ok := pointOf(clientHost(x.RemoteAddr()))
	return ok && s.at(n).ServeDirect(x)
}

// ServeHTTP implements http.Handler. A client without an address has a random part each time, which only
// this takes: a forwarder that leaves a request to ServeHTTP would have it drawn again.
func (s *shares) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, ok := pointOf(clientHost(r.RemoteAddr))
	if !ok {
		n = rand.Uint64N(100)
	}
	s.at(n).ServeHTTP(w, r)
}

// pointOf returns a number below 100 for a client: an IPv4 address, or a /64 of IPv6. It reports false
// without an address.
func pointOf(client string) (n uint64, ok bool) {
	a, err := netip.ParseAddr(client)
	if err != nil {
		return 0, false
	}
	b := peer.Network(a).As16()
	h := fnv.New64a()
	h.Write(b[:])
	n = h.Sum64()
	n ^= n >> 33 // the low bits of FNV depend on few of the input's
	n *= 0xff51afd7ed558ccd
	return (n ^ n>>33) % 100, true
}

// forward returns an action that tells what would be forwarded.
func (t *trace) forward(p *config.Proxy) (direct.Handler, error) {
	edit, err := editor(p)
	if err != nil {
		return nil, err
	}
	one := func(c *config.Upstream) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			target, host := strings.TrimPrefix(r.URL.RequestURI(), p.Strip), r.Host
			if u, err := url.ParseRequestURI(target); err == nil && len(p.Rewrite) > 0 {
				out := r.Clone(r.Context())
				out.URL = u
				if edit(&proxy.Request{In: r, Out: out, Upstream: c.Options.Name}); out.URL != u {
					target = out.URL.RequestURI()
				}
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
