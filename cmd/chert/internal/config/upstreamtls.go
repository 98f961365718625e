package config

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
)

// UpstreamTLS is how servers that speak TLS are talked to. Upstreams with the same value may
// share connections.
type UpstreamTLS struct {
	ServerName string // "": the host of the address
	CA         string // authorities in PEM; "": the system's
	Cert, Key  string // chert's own certificate, in PEM; "" for none
}

// Config returns the configuration of package tls.
func (t UpstreamTLS) Config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM([]byte(t.CA))
	}
	if t.Cert != "" {
		own, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// upstreamTLS reads tls and what implies it, nil if there is none.
func (l *loader) upstreamTLS(t *table) *UpstreamTLS {
	on := false
	t.boolean("tls", &on)
	c := UpstreamTLS{}
	var at Position
	file := func(key string, to *string) {
		s, spot, ok := t.str(key)
		if !ok {
			return
		}
		at = spot
		data, err := readPart(l.path(s))
		if err != nil {
			l.errorf(spot, "%s: %q: %v", key, s, err)
		}
		*to = string(data)
	}
	file("ca", &c.CA)
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		l.errorf(at, "ca: the file has no certificate in PEM")
	}
	file("tls_cert", &c.Cert)
	file("tls_key", &c.Key)
	if s, _, ok := t.str("tls_key"); ok {
		l.secret("the key", l.path(s), at)
	}
	if (t.m["tls_cert"] == nil) != (t.m["tls_key"] == nil) {
		l.errorf(t.spot.key, "tls_cert and tls_key go together in %s", t.name)
	} else if c.Cert != "" && c.Key != "" {
		if _, err := tls.X509KeyPair([]byte(c.Cert), []byte(c.Key)); err != nil {
			l.errorf(at, "tls_cert, tls_key: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
	if s, spot, ok := t.str("tls_name"); ok {
		if c.ServerName = s; !isHost(s) || strings.Contains(s, ":") {
			l.errorf(spot, "tls_name: %q is no name", s)
		}
	}
	if on {
		return &c
	}
	for _, key := range []string{"ca", "tls_cert", "tls_key", "tls_name"} {
		if t.m[key] != nil {
			l.errorf(t.spot.child(key).key, "%s is for servers that speak TLS; want tls = true", key)
		}
	}
	return nil
}
