package config

import (
	"github.com/chert-http/chert/cmd/chert/internal/derive"
)

// Cluster is what instances share through a store. The zero value is nothing.
type Cluster struct {
	Store        string        // URL; "" for none
	Secret       derive.Secret // of certificates and tickets; "" for none
	Limits       bool
	Certificates bool
	Tickets      bool
}

// cluster reads the table of that name. What is not switched off is shared.
func (l *loader) cluster(t *table) (c Cluster) {
	c.Limits, c.Certificates, c.Tickets = true, true, true
	if s, at, ok := t.str("store"); ok {
		c.Store = s
		if err := l.checks.RateStore(s); err != nil {
			l.errorf(at, "store: %v", err)
		}
	} else if t.m["store"] == nil {
		l.errorf(t.spot.key, `[cluster] has no store; want store = "redis://HOST:PORT/DB"`)
	}
	if s, at, ok := t.str("secret"); ok {
		if err := derive.Check(s); err != nil {
			l.errorf(at, "the secret: %v", err)
		}
		c.Secret = derive.Secret(s)
	}
	t.boolean("limits", &c.Limits)
	t.boolean("certificates", &c.Certificates)
	t.boolean("tickets", &c.Tickets)
	t.done()
	return c
}

// share checks what the sites share, and makes Config.Cluster what is shared indeed.
func (l *loader) share(t *table, cfg *Config) {
	c := &cfg.Cluster
	if c.Store == "" {
		return
	}
	tls, auto := false, false
	for _, s := range cfg.Sites {
		tls, auto = tls || s.TLS.On(), auto || s.TLS.Auto
	}
	for _, r := range cfg.Redirects {
		tls, auto = tls || r.TLS.On(), auto || r.TLS.Auto
	}
	c.Certificates, c.Tickets = c.Certificates && auto, c.Tickets && tls
	if c.Secret == "" && (c.Certificates || c.Tickets) {
		l.errorf(t.spot.child("cluster").key, "[cluster] has no secret, from which the keys of TLS are derived; want "+
			`secret = "${CHERT_SECRET}", or certificates = false and tickets = false`)
	}
	switch rates := cfg.RateLimit.Rates != nil || cfg.siteRates(); {
	case cfg.RateLimit.Store != "" || !rates:
		c.Limits = false // they have a store of their own, or there are none
	case c.Limits:
		cfg.RateLimit.Store = c.Store
	}
}

// Shared returns what is shared, for people.
func (c *Cluster) Shared() (all []string) {
	if c.Limits {
		all = append(all, "rate limits")
	}
	if c.Certificates {
		all = append(all, "certificates by ACME")
	}
	if c.Tickets {
		all = append(all, "TLS sessions")
	}
	return all
}
