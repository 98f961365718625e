package middleware

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// ClientCertOptions are the options of ClientCert.
type ClientCertOptions struct {
	// Names are those of which a certificate must have one: a DNS name, where "*.example.com" is
	// any with one label before that, an address of mail, a URI or an IP address of its subject
	// alternative names, or its subject's common name. Nil: any certificate is accepted.
	Names []string
}

// ClientCert refuses requests on connections whose client has not shown a certificate in the TLS
// handshake that the server has verified, with 403. It needs a tls.Config with ClientCAs, and
// tls.VerifyClientCertIfGiven, so that other clients reach what ClientCert does not protect.
// Connections without TLS have no certificate, nor have those that a proxy makes.
//
// The common name, or else the first of the alternative names, is the client's name for UserOf.
// On the fast path the certificate is not known: all requests take the ordinary one.
//
// It is an error if a name is empty, or has a "*" elsewhere than as its first label.
func ClientCert(o *ClientCertOptions) (func(http.Handler) http.Handler, error) {
	opt := options(o)
	names := slices.Clone(opt.Names)
	for _, n := range names {
		if err := checkCertName(n); err != nil {
			return nil, fmt.Errorf("middleware: ClientCert: Names: %q: %w", n, err)
		}
	}
	forbidden := wrap.Refusal(http.StatusForbidden)
	return filter.New(func(c *filter.Call) filter.Outcome {
		if c.Direct() {
			return filter.OnPlain
		}
		_, r := c.Plain()
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
			return c.Refuse(forbidden)
		}
		cert := r.TLS.VerifiedChains[0][0]
		has := func(name string) bool { return certHas(cert, name) }
		if opt.Names != nil && !slices.ContainsFunc(names, has) {
			return c.Refuse(forbidden)
		}
		user := certUser(cert)
		c.SetUser(&user)
		return filter.Pass
	}), nil
}

func checkCertName(n string) error {
	rest, _ := strings.CutPrefix(n, "*.")
	switch {
	case rest == "":
		return errors.New("it is empty")
	case strings.Contains(rest, "*"):
		return errors.New(`a "*" is only a first label, as in "*.example.com"`)
	}
	return nil
}

// certHas reports whether a certificate has a name.
func certHas(cert *x509.Certificate, name string) bool {
	if parent, ok := strings.CutPrefix(name, "*."); ok {
		return slices.ContainsFunc(cert.DNSNames, func(n string) bool {
			label, rest, ok := strings.Cut(n, ".")
			return ok && label != "" && label != "*" && strings.EqualFold(rest, parent)
		})
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		for _, own := range cert.IPAddresses {
			if a, ok := netip.AddrFromSlice(own); ok && a.Unmap() == ip.Unmap() {
				return true
			}
		}
	}
	for _, own := range cert.URIs {
		if own.String() == name {
			return true
		}
	}
	return cert.Subject.CommonName == name ||
		slices.ContainsFunc(cert.DNSNames, func(n string) bool { return strings.EqualFold(n, name) }) ||
		slices.ContainsFunc(cert.EmailAddresses, func(n string) bool { return sameMailbox(n, name) })
}

// sameMailbox compares addresses of mail: only the host is in any case (RFC 5280 section 7.5).
func sameMailbox(a, b string) bool {
	i, j := strings.LastIndexByte(a, '@'), strings.LastIndexByte(b, '@')
	return i >= 0 && i == j && a[:i] == b[:j] && strings.EqualFold(a[i:], b[j:])
}

func certUser(cert *x509.Certificate) string {
	switch {
	case cert.Subject.CommonName != "":
		return cert.Subject.CommonName
	case len(cert.DNSNames) > 0:
		return cert.DNSNames[0]
	case len(cert.EmailAddresses) > 0:
		return cert.EmailAddresses[0]
	case len(cert.URIs) > 0:
		return cert.URIs[0].String()
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return ""
}
