package main

import (
	"crypto/tls"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/certs"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// usedCert is a certificate that is not renewed by ACME, for warnings.
type usedCert struct {
	what  string
	hosts []string
	cert  *atomic.Pointer[tls.Certificate]
}

// used adds hosts to those of a certificate.
func (l *tlsLoader) used(what string, cert *atomic.Pointer[tls.Certificate], hosts []vhost.Pattern) {
	all := &l.sites.used
	i := slices.IndexFunc(*all, func(u *usedCert) bool { return u.cert == cert })
	if i < 0 {
		i = len(*all)
		*all = append(*all, &usedCert{what: what, cert: cert})
	}
	for _, h := range hosts {
		(*all)[i].hosts = append((*all)[i].hosts, string(h))
	}
}

// warnings tells which certificates clients refuse, or will soon.
func (s *tlsSites) warnings(now time.Time) (all []string) {
	say := func(text string) {
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	for _, u := range s.used {
		leaf := u.cert.Load().Leaf
		say(certs.Expiry(u.what, leaf, now))
		say(certs.Uncovered(u.what, leaf, u.hosts))
	}
	for _, site := range s.all {
		if clients := site.now.Load().clients; clients != nil {
			say(clients.Expiry(quote(site.clientCA), now))
		}
	}
	return all
}

// fileWarnings are those of the files of cfg, which config.Load has accepted.
func fileWarnings(cfg *config.Config) []string {
	s := &tlsSites{}
	loader := tlsLoader{sites: s, pairs: make(map[[2]string]*atomic.Pointer[tls.Certificate])}
	for _, spec := range tlsSpecs(cfg) {
		site := &tlsSite{clientCA: spec.ClientCA}
		if spec.Cert != "" {
			loader.source(spec)
		}
		if loader.clients(site) == nil {
			s.all = append(s.all, site)
		}
	}
	return append(s.warnings(time.Now()), plainPasswords(cfg)...)
}

// plainPasswords tells which sites ask for passwords and tokens without TLS.
func plainPasswords(cfg *config.Config) (all []string) {
	plain := slices.ContainsFunc(cfg.Listen, func(l config.Listen) bool { return l.Plain && reachedByOthers(l) })
	for _, s := range cfg.Sites {
		if s.TLS.On() && !plain {
			continue
		}
		asks := func(has func(p *config.Policy) bool) bool {
			return has(&s.Policy) || slices.ContainsFunc(s.Routes, func(r config.Route) bool { return has(&r.Policy) })
		}
		warn := func(key, what string) {
			all = append(all, fmt.Sprintf("%s of the site for %s is without TLS, so %s can be read on the way, unless "+
				"a proxy in front speaks TLS", key, quote(string(s.Hosts[0])), what))
		}
		if asks(func(p *config.Policy) bool { return p.Auth != nil }) {
			warn("basic_auth", "passwords")
		}
		if asks(func(p *config.Policy) bool { return p.JWT != nil }) {
			warn("jwt", "tokens")
		}
	}
	return all
}
