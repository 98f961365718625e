package certs

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"
)

// notice is how long before the end of a certificate its operator is warned. For
// one that is valid for six weeks or less it is a third of that.
const notice = 14 * 24 * time.Hour

// Expiry returns a warning about a certificate that expires soon or has expired,
// "" if there is nothing to say. what names the certificate.
func Expiry(what string, cert *x509.Certificate, now time.Time) string {
	left := cert.NotAfter.Sub(now)
	switch {
	case left < 0:
		return fmt.Sprintf("%s has expired on %s, so it is refused; renew it", what,
			cert.NotAfter.Format(time.DateOnly))
	case left < min(notice, cert.NotAfter.Sub(cert.NotBefore)/3):
		return fmt.Sprintf("%s expires on %s; renew it", what, cert.NotAfter.UTC().Format(time.DateTime))
	}
	return ""
}

// Uncovered returns a warning if clients refuse a certificate at some of hosts,
// which are names, addresses, or names with * as the first label; "*" stands for
// all, about which nothing is known.
func Uncovered(what string, cert *x509.Certificate, hosts []string) string {
	// RFC 9525 section 6.4.4: the subject's common name counts no more.
	if len(cert.DNSNames) == 0 && len(cert.IPAddresses) == 0 {
		return what + " has no name or address (subjectAltName), so clients refuse it; replace it by one that has"
	}
	var missing []string
	for _, host := range hosts {
		if host == "*" {
			continue
		}
		one := host
		if len(host) > 2 && host[:2] == "*." {
			one = "any" + host[1:] // one label; no certificate is for more of them
		}
		if cert.VerifyHostname(one) != nil {
			missing = append(missing, quote(host))
		}
	}
	if missing == nil {
		return ""
	}
	// All of them, however many: the operator has to replace the certificate by one
	// that has these names.
	list := missing[0]
	if last := len(missing) - 1; last > 0 {
		list = strings.Join(missing[:last], ", ") + " and " + missing[last]
	}
	return fmt.Sprintf("%s is not for %s, so clients refuse it there", what, list)
}

// Expiry returns what the function of this name says about the first of the
// authorities that has something to be said about.
func (p *Pool) Expiry(what string, now time.Time) string {
	for _, cert := range p.all {
		if s := Expiry(fmt.Sprintf("the authority %s in %s", quote(cert.Subject.CommonName), what), cert,
			now); s != "" {
			return s
		}
	}
	return ""
}
