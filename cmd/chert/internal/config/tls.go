package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// TLS is how a site's connections are encrypted. The zero value is plain HTTP.
type TLS struct {
	Cert, Key      string        // files; "" for one of those below
	Self           bool          // by an authority of chert's own
	Auto           bool          // by ACME
	ClientCA       string        // file of authorities that sign clients' certificates; "" if they need none
	ClientOptional bool          // clients may have none, which routes may require
	Min            string        // "1.2" or "1.3"; "" is "1.2"
	HSTS           time.Duration // 0: none; or HSTSForget
	HSTSSubdomains bool
}

// On reports whether there is TLS.
func (t TLS) On() bool { return t.Cert != "" || t.Self || t.Auto }

// ACME is the authority of sites with TLS.Auto, and the folder of what is kept.
type ACME struct {
	Storage string // "": the default
	Email   string
	CA      string // URL; "": the default
	Staging bool   // the default's authority for tries
}

// tlsOptions reads the keys of TLS. Keys that t does not have are as in base; one
// source of certificates replaces another.
func (l *loader) tlsOptions(t *table, base TLS) TLS {
	o := base
	cert, certAt, hasCert := t.str("tls_cert")
	key, keyAt, hasKey := t.str("tls_key")
	self, auto := false, false
	t.boolean("tls_self", &self)
	t.boolean("tls_auto", &auto)
	sources := 0
	for _, given := range []bool{hasCert || hasKey, self, auto} {
		if given {
			sources++
		}
	}
	switch {
	case sources > 1:
		l.errorf(t.spot.key, "%s has several of tls_cert, tls_self and tls_auto; want one", t.name)
	case hasCert != hasKey:
		l.errorf(t.spot.key, "tls_cert and tls_key go together in %s", t.name)
	case hasCert && (cert == "" || key == ""):
		l.errorf(certAt, "tls_cert and tls_key want the names of files")
	case sources == 1 || t.m["tls_self"] != nil || t.m["tls_auto"] != nil:
		o.Cert, o.Key, o.Self, o.Auto = "", "", self, auto
	}
	if hasCert && hasKey && cert != "" && key != "" {
		o.Cert, o.Key = l.path(cert), l.path(key)
		if err := l.checks.Certificate(o.Cert, o.Key); err != nil {
			l.errorf(keyAt, "%v", err)
		}
	}
	if s, at, ok := t.str("client_ca"); ok {
		o.ClientCA = ""
		if s != "" {
			o.ClientCA = l.path(s)
			if err := l.checks.ClientCA(o.ClientCA); err != nil {
				l.errorf(at, "client_ca: %v", err)
			}
		}
	}
	if s, at, ok := t.str("tls_min"); ok {
		o.Min = s
		if err := CheckTLSMin(s); err != nil {
			l.errorf(at, "tls_min: %v", err)
		}
	}
	if s, at, ok := t.str("hsts"); ok {
		var err error
		if o.HSTS, err = ParseHSTS(s); err != nil {
			l.errorf(at, "hsts: %v", err)
		}
	}
	t.boolean("hsts_subdomains", &o.HSTSSubdomains)
	return o
}

// autoNames checks that ACME can give a certificate for all hosts of a site. A
// challenge over HTTP or TLS proves control of one name.
func (l *loader) autoNames(t *table, o TLS, hosts []vhost.Pattern) {
	if !o.Auto {
		return
	}
	for _, h := range hosts {
		if err := CheckAutoName(string(h)); err != nil {
			l.errorf(t.spot.child("hosts").key, "tls_auto: %v", err)
		}
	}
}

// tls reads the keys of the server, and checks those that belong together.
func (l *loader) tls(t *table, cfg *Config) {
	t.boolean("http3", &cfg.HTTP3)
	t.boolean("http3_early_data", &cfg.HTTP3EarlyData)
	a := &cfg.ACME
	if s, at, ok := t.str("tls_storage"); ok {
		if a.Storage = l.path(s); s == "" {
			l.errorf(at, "tls_storage wants the name of a folder")
		} else if info, err := os.Stat(a.Storage); err == nil && !info.IsDir() {
			l.errorf(at, "tls_storage: %q is not a folder", s)
		}
	}
	if s, at, ok := t.str("tls_email"); ok {
		a.Email = s
		if err := CheckEmail(s); err != nil {
			l.errorf(at, "tls_email: %v", err)
		}
	}
	if s, at, ok := t.str("tls_ca"); ok {
		a.CA = s
		if err := CheckCA(s); err != nil {
			l.errorf(at, "tls_ca: %v", err)
		}
	}
	t.boolean("tls_staging", &a.Staging)
	if a.Staging && a.CA != "" {
		l.errorf(t.spot.child("tls_staging").key, "tls_staging and tls_ca contradict each other; leave one out")
	}
	if s, at, ok := t.str("http_redirect"); ok {
		s = l.endpoint(s)
		if err := l.checks.Listen(addresses(cfg.Listen), s); err != nil {
			l.errorf(at, "http_redirect: %v", err)
		} else {
			cfg.HTTPRedirect = s
		}
	}
}

// tlsTogether checks what the sites have in common: every one has a certificate or none.
func (l *loader) tlsTogether(t *table, cfg *Config, at []Position) {
	var all []TLS
	for _, s := range cfg.Sites {
		all = append(all, s.TLS)
	}
	for _, r := range cfg.Redirects {
		all = append(all, r.TLS)
	}
	on := slices.ContainsFunc(all, TLS.On)
	for i, o := range all {
		switch {
		case on && !o.On():
			l.errorf(at[i], "it has no certificate, and another site has; want tls_cert and tls_key, tls_self or "+
				"tls_auto, here or in [defaults]")
		case !on && (o.ClientCA != "" || o.Min != "" || o.HSTS != 0 || o.HSTSSubdomains):
			l.errorf(at[i],
				"client_ca, tls_min and hsts need a certificate: tls_cert and tls_key, tls_self or tls_auto")
		case o.HSTSSubdomains && o.HSTS == 0:
			l.errorf(at[i], "hsts_subdomains needs hsts")
		}
	}
	if !on && cfg.HTTPRedirect != "" {
		l.errorf(t.spot.child("http_redirect").key,
			"http_redirect needs a site with a certificate: tls_cert and tls_key, tls_self or tls_auto")
	}
	l.listenTogether(t, cfg.Listen, on)
	auto := slices.ContainsFunc(all, func(o TLS) bool { return o.Auto })
	for _, key := range []string{"tls_email", "tls_ca", "tls_staging"} {
		if t.m[key] != nil && !auto {
			l.errorf(t.spot.child(key).key, "%s is for tls_auto, which no site has", key)
		}
	}
}

// CheckTLSMin checks a version.
func CheckTLSMin(s string) error {
	if s != "1.2" && s != "1.3" {
		return errors.New("want 1.2 or 1.3")
	}
	return nil
}

// maxHSTS is the longest time of HSTS.
const maxHSTS = 10 * 365 * 24 * time.Hour

// HSTSForget makes clients forget an earlier time: max-age=0 (RFC 6797 section
// 6.1.1).
const HSTSForget time.Duration = -1

// ParseHSTS parses a time, in days too. 0 is HSTSForget, and an empty string is
// none.
func ParseHSTS(s string) (time.Duration, error) {
	var d time.Duration
	var err error
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 12)
		d = time.Duration(n) * 24 * time.Hour
	} else if s != "" {
		d, err = time.ParseDuration(s)
	}
	switch {
	case err != nil || d < 0 || d > maxHSTS || d%time.Second != 0:
		return 0, errors.New("want a time such as 365d or 24h, of ten years at most, or 0s")
	case s != "" && d == 0:
		return HSTSForget, nil
	}
	return d, nil
}

// CheckAutoName checks that ACME can give a certificate for a host.
func CheckAutoName(host string) error {
	p, err := vhost.Parse(host)
	switch {
	case err != nil:
		return fmt.Errorf("%q: %w", host, err)
	case strings.HasPrefix(string(p), "*"):
		return fmt.Errorf("%q: authorities give certificates for it only through the DNS, which chert cannot change; "+
			"want single names, or tls_cert", host)
	case strings.Contains(host, ":") || strings.Trim(host, "0123456789.") == "":
		return fmt.Errorf("%q is an address; want a name", host)
	case !strings.Contains(strings.TrimSuffix(host, "."), "."):
		return fmt.Errorf("%q is no public name, so no public authority gives a certificate for it; tls_self makes one",
			host)
	}
	return nil
}

// CheckEmail checks the form of an address.
func CheckEmail(s string) error {
	if user, host, ok := strings.Cut(s, "@"); !ok || user == "" || !strings.Contains(host, ".") ||
		strings.ContainsAny(s, " \t\r\n,<>") {
		return errors.New("want an address such as admin@example.com")
	}
	return nil
}

// CheckCA checks the URL of an ACME directory. Over plain HTTP others could take
// the account.
func CheckCA(s string) error {
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Host == "" {
		return errors.New("want the https URL of an ACME directory")
	}
	return nil
}
