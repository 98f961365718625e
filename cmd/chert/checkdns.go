package main

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// dnsRecords returns the records by which clients know of HTTP/3 before they connect (RFC 9460), for
// each name of a configuration; none if no address has it.
func dnsRecords(cfg *config.Config) (all []string) {
	prefix, alpn := "", ""
	for _, l := range cfg.Listen {
		e, err := parseEndpoint(l.Address)
		if err != nil || e.network != "tcp" || l.Plain || !l.HTTP3 && (!cfg.HTTP3 || l.Protocols) {
			continue
		}
		if alpn = "h3,h2"; l.HTTP1 {
			alpn = "h3"
		}
		if prefix = ""; e.port() != "443" {
			prefix = "_" + e.port() + "._https."
		} else {
			break
		}
	}
	if cfg.Listen == nil && cfg.HTTP3 {
		alpn = "h3,h2" // the command line has the addresses
	}
	if alpn == "" {
		return nil
	}
	for _, s := range tlsSpecs(cfg) {
		for _, h := range s.hosts {
			name := strings.TrimSuffix(string(h), ".")
			if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil || !strings.Contains(name, ".") {
				continue // an address, "*" or a name without a domain
			}
			if strings.HasPrefix(name, "*.") && prefix != "" {
				continue // a wildcard is the first label of a record
			}
			record := prefix + name + `. HTTPS 1 . alpn="` + alpn + `"`
			if !slices.Contains(all, record) {
				all = append(all, record)
			}
		}
	}
	return all
}
