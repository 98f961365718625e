package config

import (
	"crypto/x509"
	"net/url"
	"strings"

	"github.com/chert-http/chert/middleware/forwardauth"
)

// forwardAuth reads [site.forward_auth]; false instead of a table is none.
func (l *loader) forwardAuth(t *table, base *forwardauth.Options) *forwardauth.Options {
	if v, ok := t.m["forward_auth"].(bool); ok {
		t.get("forward_auth")
		if v {
			l.errorf(t.spot.child("forward_auth").value, "forward_auth wants a table with url, or false")
		}
		return nil
	}
	a := t.table("forward_auth")
	if a == nil {
		return base
	}
	o := &forwardauth.Options{}
	before := len(l.problems)
	text, urlAt, hasURL := a.str("url")
	if o.URL = text; a.m["url"] == nil {
		l.errorf(a.spot.key, `%s has no url; want url = "http://127.0.0.1:9091/api/authz/forward-auth"`, a.name)
	}
	if s, at, ok := a.str("socket"); ok {
		if o.Socket = l.path(s); s == "" {
			l.errorf(at, "socket wants the path of a unix socket")
		}
	}
	if s, at, ok := a.str("ca"); ok {
		o.RootCAs = x509.NewCertPool()
		if data, err := readPart(l.path(s)); err != nil {
			l.errorf(at, "ca: %q: %v", s, err)
		} else if !o.RootCAs.AppendCertsFromPEM(data) {
			l.errorf(at, "ca: %q has no certificate in PEM", s)
		} else if u, err := url.Parse(text); hasURL && err == nil && u.Scheme != "https" {
			l.errorf(at, "ca is for an url with https")
		}
	}
	o.Headers = l.forwardFields(a, "headers")
	o.ResponseHeaders = l.forwardFields(a, "response_headers")
	user, userAt, hasUser := a.str("user_header")
	scheme, schemeAt, hasScheme := a.str("scheme")
	if timeout, ok := a.duration("timeout"); ok {
		if o.Timeout = timeout; timeout == 0 {
			l.errorf(a.spot.child("timeout").value, "timeout wants more than 0")
		}
	}
	if n := a.count("max_conns", 1, 1<<16); n != nil {
		o.MaxConns = *n
	}
	if n, at, ok := a.size("max_body"); ok {
		if o.MaxBody = CacheBytes(n); n > maxFile { // 0: none
			l.errorf(at, "max_body wants at most 1 MiB")
		}
	}
	a.done()
	if len(l.problems) > before {
		return o
	}
	if _, err := forwardauth.New(o); err != nil { // the fields are checked, so it is the URL
		l.errorf(urlAt, "url: %s", strings.TrimPrefix(err.Error(), "forwardauth: option URL: "))
		return o
	}
	if o.User = user; hasUser {
		if _, err := forwardauth.New(o); err != nil || user == "" {
			l.errorf(userAt, "user_header wants one of the fields of headers")
		}
	}
	if o.Scheme = scheme; hasScheme && scheme != "http" && scheme != "https" {
		l.errorf(schemeAt, `scheme wants "http" or "https"`)
	}
	return o
}

// forwardFields reads a list of names of fields.
func (l *loader) forwardFields(a *table, key string) (names []string) {
	all, _ := a.list(key)
	for _, it := range all {
		one := &forwardauth.Options{URL: "http://localhost", Headers: []string{it.text}}
		if _, err := forwardauth.New(one); err != nil {
			l.errorf(it.at, "%s: %s", key, strings.TrimPrefix(err.Error(), "forwardauth: option Headers: "))
			continue
		}
		names = append(names, it.text)
	}
	return names
}
