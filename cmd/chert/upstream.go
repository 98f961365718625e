package main

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/proxy"
)

// upstreamPool is what is known about upstream servers, as long as the process runs: each
// configuration has Upstreams of its own, which share it. Only the goroutine that loads
// configurations uses it.
type upstreamPool struct {
	pool *proxy.Pool // nil until a configuration needs it
	errs *slog.Logger
	// tls has what is in use: servers share connections by the pointer.
	tls map[config.UpstreamTLS]*tls.Config
}

// lingering is how long the Upstreams of a configuration stay open after it was replaced. Until
// then those of the next one have resolved their names, and have taken over what is known of
// the servers; and requests whose bodies came slowly have got one.
const lingering = 30 * time.Second

// upstreams are those of a configuration. nil forwards nothing, for checks.
type upstreams struct {
	all     []*proxy.Upstream // in the order of the configuration
	by      map[*config.Upstream]*proxy.Upstream
	trusted config.Proxies // in front
	errs    *slog.Logger
}

// open makes the Upstreams of a configuration, and returns what closes them. trusted are proxies in
// front.
func (p *upstreamPool) open(cfg *config.Config, trusted config.Proxies) (*upstreams, func(), error) {
	u := &upstreams{by: make(map[*config.Upstream]*proxy.Upstream), trusted: trusted, errs: p.errs}
	if len(cfg.Upstreams) == 0 {
		return u, func() {}, nil
	}
	if p.pool == nil {
		p.pool = proxy.NewPool(&proxy.PoolOptions{Logger: p.errs})
	}
	used := make(map[config.UpstreamTLS]*tls.Config)
	for _, c := range cfg.Upstreams {
		o := c.Options
		if c.TLS != nil {
			var err error
			if o.TLS = p.tls[*c.TLS]; o.TLS == nil {
				o.TLS = used[*c.TLS]
			}
			if o.TLS == nil {
				if o.TLS, err = c.TLS.Config(); err != nil {
					u.close()
					return nil, nil, err
				}
			}
			used[*c.TLS] = o.TLS
		}
		one, err := p.pool.Upstream(&o)
		if err != nil {
			u.close()
			return nil, nil, err
		}
		u.all, u.by[c] = append(u.all, one), one
	}
	p.tls = used
	return u, func() { time.AfterFunc(lingering, u.close) }, nil
}

func (u *upstreams) close() {
	for _, one := range u.all {
		one.Close()
	}
}

// close is for the end of the process.
func (p *upstreamPool) close() {
	if p.pool != nil {
		p.pool.Close()
	}
}

// status returns the state of the upstreams. u may be nil.
func (u *upstreams) status() []proxy.UpstreamStatus {
	if u == nil {
		return nil
	}
	all := make([]proxy.UpstreamStatus, 0, len(u.all))
	for _, one := range u.all {
		all = append(all, one.Status())
	}
	return all
}

// movedShare is the least share of keys that is worth a line.
const movedShare = 0.0005

// moves tells which share of the keys of upstreams with a hash has another server in now than in
// before. Both may be nil.
func moves(before, now *upstreams) (all []string) {
	if before == nil || now == nil {
		return nil
	}
	for _, n := range now.all {
		i := slices.IndexFunc(before.all, func(o *proxy.Upstream) bool { return o.Name() == n.Name() })
		if i < 0 {
			continue
		}
		old, s := before.all[i].Status(), n.Status()
		if !keyed(&old) || !keyed(&s) {
			continue
		}
		if old.Balance != s.Balance {
			all = append(all, "upstream "+n.Name()+": its keys are others, as balance has changed from "+old.Balance+
				" to "+s.Balance)
			continue
		}
		if share := proxy.Moved(before.all[i], n); share >= movedShare {
			all = append(all, "upstream "+n.Name()+": "+showShare(share)+" of the keys move to another server")
		}
	}
	return all
}

// keyed reports whether the keys of requests decide which server they get, as far as that is known:
// names may not have resolved yet.
func keyed(s *proxy.UpstreamStatus) bool {
	return len(s.Servers) > 0 && (strings.HasPrefix(s.Balance, "hash") || strings.HasPrefix(s.Balance, "sticky"))
}

func showShare(share float64) string { return strconv.FormatFloat(share*100, 'f', 1, 64) + " %" }

// unchecked makes cfg one whose upstreams ask servers nothing, for a check of it.
func unchecked(cfg *config.Config) *config.Config {
	for _, c := range cfg.Upstreams {
		c.Options.Check = nil
	}
	return cfg
}
