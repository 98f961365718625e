package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

const (
	// years is how long an authority is valid.
	years = 10
	// MaxDays is the longest validity of a certificate. Some clients refuse
	// more than 398 days.
	MaxDays = 397
	// skew is how far the clocks of clients may be slow.
	skew = time.Hour
)

// An Authority signs certificates. It is immutable.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// A Pair is a certificate, with those of its chain that servers send, and its
// private key, both in PEM.
type Pair struct{ Cert, Key []byte }

// An authority can sign for names and addresses that are never public, and for
// those that it was made with: a stolen key is of no use against other sites,
// whatever trusts it. RFC 2606, RFC 6761, RFC 6762, RFC 8375; .internal is
// reserved by ICANN.
var (
	localNames    = []string{"localhost", "test", "example", "local", "internal", "home.arpa"}
	localPrefixes = []string{
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10",
		"::1/128", "fc00::/7", "fe80::/10",
	}
)

// New makes an authority for local names and addresses, and for those of names
// with the names below them; for all if unconstrained is set. Its private key
// is an ECDSA P-256 key, and it is valid for ten years.
func New(names Names, unconstrained bool, now time.Time) (*Authority, Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, Pair{}, err
	}
	var id [4]byte // certificate stores require different names of different authorities
	rand.Read(id[:])
	t := &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"chert"}, CommonName: "chert local authority " +
			hex.EncodeToString(id[:])},
		NotBefore: now.Add(-skew), NotAfter: now.AddDate(years, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	if !unconstrained {
		constrain(t, names)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, Pair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, Pair{}, err
	}
	pair, err := encode(key, der)
	return &Authority{cert, key}, pair, err
}

func constrain(t *x509.Certificate, names Names) {
	t.PermittedDNSDomainsCritical = true // RFC 5280 section 4.2.1.10: required
	t.PermittedDNSDomains = slices.Clone(localNames)
	for _, name := range names.DNS {
		name = strings.TrimPrefix(name, "*.")
		if !slices.ContainsFunc(t.PermittedDNSDomains,
			func(domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }) {
			t.PermittedDNSDomains = append(t.PermittedDNSDomains, name)
		}
	}
	for _, s := range localPrefixes {
		_, prefix, err := net.ParseCIDR(s)
		if err != nil {
			panic(err)
		}
		t.PermittedIPRanges = append(t.PermittedIPRanges, prefix)
	}
	for _, addr := range names.Addrs {
		ip := net.IP(addr.AsSlice())
		if !slices.ContainsFunc(t.PermittedIPRanges, func(prefix *net.IPNet) bool { return prefix.Contains(ip) }) {
			t.PermittedIPRanges = append(t.PermittedIPRanges,
				&net.IPNet{IP: ip, Mask: net.CIDRMask(addr.BitLen(), addr.BitLen())})
		}
	}
}

// Load returns the authority of a certificate and its key.
func Load(cert *x509.Certificate, key crypto.Signer, now time.Time) (*Authority, error) {
	public, ok := cert.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	switch {
	case !ok || !public.Equal(key.Public()):
		return nil, errors.New("the key is not that of the certificate")
	case !cert.BasicConstraintsValid || !cert.IsCA || cert.KeyUsage != 0 && cert.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("the certificate is not an authority's")
	case now.After(cert.NotAfter):
		return nil, fmt.Errorf("the authority has expired on %s", cert.NotAfter.Format(time.DateOnly))
	case now.Before(cert.NotBefore):
		return nil, fmt.Errorf("the authority is valid from %s on, by this machine's clock",
			cert.NotBefore.Format(time.DateTime))
	}
	return &Authority{cert, key}, nil
}

// NotAfter returns when a expires.
func (a *Authority) NotAfter() time.Time { return a.cert.NotAfter }

// Constrained reports whether a may sign for some names only.
func (a *Authority) Constrained() bool { return len(a.cert.PermittedDNSDomains) > 0 }

// A NotPermittedError is the error for a name that an authority may not sign
// for.
type NotPermittedError struct{ Name string }

func (e *NotPermittedError) Error() string { return "the authority may not sign for " + e.Name }

// Server makes a certificate for a server that is reached at names, at least
// one, with a new ECDSA P-256 key. It is valid for days, from 1 to MaxDays, or
// until the authority expires.
func (a *Authority) Server(names Names, days int, now time.Time) (Pair, time.Time, error) {
	t := &x509.Certificate{DNSNames: names.DNS, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, addr := range names.Addrs {
		t.IPAddresses = append(t.IPAddresses, addr.AsSlice())
	}
	all := names.each()
	if name := all[0].String(); len(name) <= 64 { // RFC 5280 appendix A.1, ub-common-name
		t.Subject.CommonName = name
	}
	pair, until, err := a.issue(t, days, now)
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); !ok || e.Reason != x509.CANotAuthorizedForThisName {
		return pair, until, err
	}
	if len(all) == 1 {
		return Pair{}, until, &NotPermittedError{names.String()}
	}
	for _, one := range all { // to name the one that fails
		if _, _, err := a.Server(one, days, now); err != nil {
			return Pair{}, until, err
		}
	}
	return Pair{}, until, err
}

// Client makes a certificate with which a client of this name authenticates;
// see Server. The name is the subject's common name, of at most 64 bytes, and
// also an e-mail address if it contains an @.
func (a *Authority) Client(name string, days int, now time.Time) (Pair, time.Time, error) {
	t := &x509.Certificate{Subject: pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if strings.Contains(name, "@") {
		t.EmailAddresses = []string{name}
	}
	return a.issue(t, days, now)
}

// issue completes t, signs it, and makes sure that clients accept the result.
func (a *Authority) issue(t *x509.Certificate, days int, now time.Time) (Pair, time.Time, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, time.Time{}, err
	}
	t.KeyUsage, t.BasicConstraintsValid = x509.KeyUsageDigitalSignature, true
	t.NotBefore = now.Add(-skew)
	t.NotAfter = t.NotBefore.AddDate(0, 0, days)
	if end := a.cert.NotAfter; end.Before(t.NotAfter) {
		t.NotAfter = end
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, time.Time{}, err
	}
	if err := a.verify(der, t.ExtKeyUsage, now); err != nil {
		return Pair{}, time.Time{}, err
	}
	chain := [][]byte{der}
	if !bytes.Equal(a.cert.RawSubject, a.cert.RawIssuer) { // not a root, so clients need it
		chain = append(chain, a.cert.Raw)
	}
	pair, err := encode(key, chain...)
	return pair, t.NotAfter, err
}

func (a *Authority) verify(der []byte, usages []x509.ExtKeyUsage, now time.Time) error {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: usages})
	return err
}

func encode(key *ecdsa.PrivateKey, chain ...[]byte) (p Pair, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return p, err
	}
	p.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, cert := range chain {
		p.Cert = append(p.Cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})...)
	}
	return p, nil
}

// ParseCert returns the first certificate in text.
func ParseCert(text []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in PEM")
}

// ParseKey returns the first private key in text.
func ParseKey(text []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "": // PKCS #8, RFC 1421
			return nil, errors.New("the key is encrypted; decrypt it with openssl pkey")
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, errors.New("the key cannot sign")
	}
	return nil, errors.New("there is no private key in PEM")
}
