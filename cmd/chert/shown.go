package main

import (
	"strings"
	"time"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// setupOf returns what the admin page shows of a setup.
func setupOf(file string, up *setup, cfg *config.Config) shown {
	s := shown{Setup: admin.Setup{Config: file, Loaded: time.Now()}, tls: up.tls}
	add := func(hosts []vhost.Pattern, what string, tls config.TLS) {
		if len(hosts) == 0 { // a folder of the command line
			hosts = []vhost.Pattern{"*"}
		}
		site := admin.Site{What: what, Certificate: certificateOf(tls)}
		for _, h := range hosts {
			site.Hosts = append(site.Hosts, string(h))
		}
		s.Sites, s.hosts = append(s.Sites, site), append(s.hosts, hosts[0])
	}
	for _, site := range cfg.Sites {
		var what []string
		if site.Root != "" {
			what = append(what, showFolder(site.Root))
		}
		if site.Proxy != nil {
			what = append(what, "forwards to "+site.Proxy.Upstream.Options.Name)
		}
		if n := len(site.Routes); n > 0 {
			what = append(what, plural(n, "route"))
		}
		add(site.Hosts, strings.Join(what, ", "), site.TLS)
	}
	for _, r := range cfg.Redirects {
		add(r.Hosts, "redirects to "+r.To, r.TLS)
	}
	return s
}

// certificateOf says where a site's certificate comes from, "" without TLS.
func certificateOf(tls config.TLS) string {
	switch {
	case tls.Auto:
		return "by ACME"
	case tls.Self:
		return "chert's own"
	case tls.Cert != "":
		return quote(tls.Cert)
	}
	return ""
}
