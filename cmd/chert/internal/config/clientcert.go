package config

import (
	"strings"

	"github.com/chert-http/chert/middleware"
)

// clientCert reads client_certificate, which needs a site with client_ca. optional: clients of
// the site may have none. route: t is a route.
func (l *loader) clientCert(t *table, base *middleware.ClientCertOptions, tls TLS, route bool) (
	o *middleware.ClientCertOptions, optional bool) {
	v, spot := t.get("client_certificate")
	if v == nil {
		return base, tls.ClientOptional
	}
	if tls.ClientCA == "" {
		l.errorf(spot.key, "client_certificate needs client_ca of the site, the authorities of clients")
		return base, tls.ClientOptional
	}
	switch v {
	case "required":
		return &middleware.ClientCertOptions{}, route && tls.ClientOptional
	case "optional":
		if route && !tls.ClientOptional {
			l.errorf(spot.value, "the site requires a certificate of every client; want "+
				`client_certificate = "optional" there`)
		}
		return nil, true
	}
	if _, isString := v.(string); isString {
		l.errorf(spot.value, `client_certificate wants "required", "optional", or a list of names that are admitted`)
		return base, tls.ClientOptional
	}
	all, _ := t.list("client_certificate")
	o = &middleware.ClientCertOptions{Names: []string{}}
	for _, it := range all {
		one := &middleware.ClientCertOptions{Names: []string{it.text}}
		if _, err := middleware.ClientCert(one); err != nil {
			text := strings.TrimPrefix(err.Error(), "middleware: ClientCert: Names: ")
			l.errorf(it.at, "client_certificate: %s", text)
			continue
		}
		o.Names = append(o.Names, it.text)
	}
	if items, ok := v.([]any); ok && len(items) == 0 {
		l.errorf(spot.key, `client_certificate is empty; want names, or "required" for any certificate`)
	}
	return o, route && tls.ClientOptional
}
