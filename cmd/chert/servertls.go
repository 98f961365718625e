package main

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// secure loads the certificates of cfg, and makes the addresses of up those of TLS,
// except where the file says otherwise.
func (s *server) secure(up *setup, cfg *config.Config) (err error) {
	if up.tls, err = openTLS(cfg, up.listen); err != nil || up.tls == nil {
		return err
	}
	up.hosts, up.cluster, up.early = &up.tls.table, cfg.Cluster, cfg.HTTP3EarlyData
	defer func() {
		if err == nil {
			up.http3, err = openHTTP3(up)
		}
	}()
	all := make([]endpoint, 0, len(up.listen)+1)
	for _, e := range up.listen {
		e.tls = !e.plain
		e.http3 = e.tls && e.network != "unix" && (e.http3 || cfg.HTTP3 && !e.protocols)
		all = append(all, e)
	}
	if cfg.HTTPRedirect != "" {
		e, err := parseEndpoint(cfg.HTTPRedirect)
		if err != nil {
			return fmt.Errorf("http_redirect: %w", err)
		}
		e.upgrade = true
		for _, other := range all { // --listen may have replaced those of the file
			if err := e.clash(other); err != nil {
				return fmt.Errorf("http_redirect %s: %w", e, err)
			}
		}
		all = append(all, e)
	}
	up.listen = all
	return nil
}

// manage begins to obtain the certificates of up, whose listeners are open, and
// makes the handler of plain HTTP.
func (s *server) manage(up *setup, bindings []*binding) error {
	if up.tls == nil {
		return nil
	}
	var host string
	var encrypted, plain int
	for _, b := range bindings {
		if b.at.http1 {
			up.tls.http1 = append(up.tls.http1, b.Addr())
		}
		tcp, ok := b.Addr().(*net.TCPAddr)
		switch {
		case !ok:
		case b.at.upgrade:
			plain = tcp.Port
		case encrypted == 0 && b.at.tls:
			encrypted = tcp.Port
			host, _, _ = net.SplitHostPort(b.at.address)
		}
	}
	u := &upgrade{hosts: up.hosts, port: strconv.Itoa(encrypted), own: strconv.Itoa(plain)}
	var h http.Handler = u
	if up.tls.auto != nil {
		a := up.tls.acme
		o := acme.Options{Storage: a.Storage, Email: a.Email, CA: a.CA, Staging: a.Staging, Host: host,
			TLSPort: encrypted, HTTPPort: plain, Logger: s.logger}
		if c := up.cluster; c.Certificates {
			o.Redis, o.Key = c.Store, c.Secret.Key("certificates")
		}
		if encrypted == 0 {
			return fmt.Errorf("certificates by ACME need an address that the authority can connect to, such as " +
				"--listen :443")
		}
		if s.acme != nil && s.acmeFor != o {
			return fmt.Errorf("the authority, its folder, its store or the first address has changed; restart chert " +
				"for that")
		}
		if s.acme == nil {
			m, err := acme.New(o)
			if err != nil {
				return err
			}
			s.acme, s.acmeFor = m, o
			if a.CA == "" && !slices.ContainsFunc(bindings, reachableByOthers) {
				s.logger.Warn("only this machine can connect to the addresses of listen and http_redirect, so the " +
					"authority cannot, unless something forwards to them; want --listen :443")
			}
		}
		h = s.acme.Wrap(h)
	}
	if s.acme != nil {
		up.tls.manager = s.acme
		s.acme.Manage(up.tls.auto)
	}
	h, err := withErrorPages(h, up.pages)
	if err != nil {
		return err // generate has made the same
	}
	h = up.logs.ofPlain(h)
	s.upgrade.Store(&h)
	return nil
}

// reachableByOthers reports whether other machines can connect.
func reachableByOthers(b *binding) bool {
	tcp, ok := b.Addr().(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
