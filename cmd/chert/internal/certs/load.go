package certs

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"
)

// maxFile is the largest file that is read, in bytes. Bundles of all public
// authorities have a quarter of it.
const maxFile = 1 << 20

// Load returns the certificate and chain in one file with the key in another,
// both in PEM. It accepts what clients would: the key belongs to the first
// certificate, the chain is in order, and the certificate is valid at now. The
// error is one line that names the file and says what to do.
func Load(certFile, keyFile string, now time.Time) (*tls.Certificate, error) {
	certText, err := read(certFile)
	if err != nil {
		return nil, err
	}
	keyText, err := read(keyFile)
	if err != nil {
		return nil, err
	}
	chain, err := parseChain(certFile, certText)
	if err != nil {
		return nil, err
	}
	key, err := parseKey(keyFile, keyText)
	if err != nil {
		return nil, err
	}
	if err := checkChain(certFile, keyFile, chain, key); err != nil {
		return nil, err
	}
	if err := checkTime(certFile, chain[0], now); err != nil {
		return nil, err
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, cert := range chain {
		c.Certificate = append(c.Certificate, cert.Raw)
	}
	return c, nil
}

// A Pool is a set of authorities that sign the certificates of clients. It is
// immutable.
type Pool struct {
	Certs *x509.CertPool
	all   []*x509.Certificate
	raw   map[string]bool
}

// LoadPool returns the authorities in a file, in PEM.
func LoadPool(file string) (*Pool, error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	all, err := parseChain(file, text)
	if err != nil {
		return nil, err
	}
	p := &Pool{Certs: x509.NewCertPool(), all: all, raw: make(map[string]bool)}
	for _, cert := range all {
		if cert.BasicConstraintsValid && !cert.IsCA {
			return nil, fmt.Errorf("%s has the certificate of %s, which is no authority; clients are known by the "+
				"authority that signed their certificates, such as the ca.pem of chert cert",
				quote(file), showName(cert))
		}
		p.Certs.AddCert(cert)
		p.raw[string(cert.Raw)] = true
	}
	return p, nil
}

// Sum returns a checksum of the authorities, in any order.
func (p *Pool) Sum() string {
	h := sha256.New()
	for _, raw := range slices.Sorted(maps.Keys(p.raw)) {
		h.Write([]byte(raw))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Verified reports whether a handshake has verified a certificate of the client
// by one of these authorities.
func (p *Pool) Verified(state *tls.ConnectionState) bool {
	if state == nil {
		return false
	}
	for _, chain := range state.VerifiedChains {
		if len(chain) > 0 && p.raw[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	return false
}

func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", quote(file))
	}
	if err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("%s is longer than 1 MiB; want certificates or a key in PEM", quote(file))
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(file)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %s; chert cert makes certificates for development", quote(file))
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("no permission to read %s; run chert as the user it belongs to, or let that user's "+
			"group read it", quote(file))
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", quote(file), cause(err))
	}
	return text, nil
}

func parseChain(file string, text []byte) (chain []*x509.Certificate, err error) {
	other := ""
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			other = block.Type
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in %s is damaged: %w", len(chain)+1, quote(file), err)
		}
		chain = append(chain, cert)
	}
	switch {
	case chain != nil:
		return chain, nil
	case other != "":
		return nil, fmt.Errorf("%s has a %s and no certificate; are the files of certificate and key mixed up?",
			quote(file), other)
	}
	return nil, fmt.Errorf("there is no certificate in PEM in %s; openssl x509 -inform der converts the binary form",
		quote(file))
}

func parseKey(file string, text []byte) (crypto.Signer, error) {
	other := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		var key any
		var err error
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "": // PKCS #8, RFC 1421
			return nil, fmt.Errorf("the key in %s is encrypted; decrypt it with openssl pkey -in %s -out FILE, and "+
				"let only chert's user read that", quote(file), quote(file))
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		default:
			other = other || block.Type == "CERTIFICATE"
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("the key in %s is damaged: %w", quote(file), err)
		}
		if signer, ok := key.(crypto.Signer); ok {
			return signer, nil
		}
		return nil, fmt.Errorf("the key in %s cannot sign; want one of ECDSA, RSA or Ed25519", quote(file))
	}
	if other {
		return nil, fmt.Errorf("%s has a certificate and no key; are the files of certificate and key mixed up?",
			quote(file))
	}
	return nil, fmt.Errorf("there is no private key in PEM in %s; openssl pkey -inform der converts the binary form",
		quote(file))
}

// checkChain checks that the key is that of the first certificate, and that the
// others follow in order (RFC 5246 section 7.4.2; RFC 8446 section 4.4.2 lets
// clients accept any order, and some do not). Certificates that belong to no
// other are left alone: bundles have some that are cross-signed.
func checkChain(certFile, keyFile string, chain []*x509.Certificate, key crypto.Signer) error {
	const order = "put the server's own first, then the one that signed it, and so on"
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		for i, cert := range chain[1:] {
			if ok && public.Equal(cert.PublicKey) {
				return fmt.Errorf("the certificates in %s are in the wrong order, as the key is that of number %d; %s",
					quote(certFile), i+2, order)
			}
		}
		return fmt.Errorf("the key in %s is not that of the certificate for %s in %s; give the key that the "+
			"certificate was made with",
			quote(keyFile), showName(chain[0]), quote(certFile))
	}
	if chain[0].BasicConstraintsValid && chain[0].IsCA && len(chain) == 1 && chain[0].DNSNames == nil &&
		chain[0].IPAddresses == nil {
		return fmt.Errorf("%s has the certificate of the authority %s, which names no server (subjectAltName); give "+
			"one that it has signed, or one of chert cert", quote(certFile), showName(chain[0]))
	}
	for i := range len(chain) - 1 {
		if signs(chain[i+1], chain[i]) {
			continue
		}
		for j := i + 2; j < len(chain); j++ {
			if signs(chain[j], chain[i]) {
				return fmt.Errorf("the certificates in %s are in the wrong order: number %d has signed number %d; %s",
					quote(certFile), j+1, i+1, order)
			}
		}
	}
	return nil
}

func signs(parent, child *x509.Certificate) bool {
	return bytes.Equal(parent.RawSubject, child.RawIssuer) && child.CheckSignatureFrom(parent) == nil
}

func checkTime(file string, leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate for %s in %s has expired on %s; renew it", showName(leaf), quote(file),
			leaf.NotAfter.Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate for %s in %s is valid from %s on; check the clock of this machine",
			showName(leaf), quote(file), leaf.NotBefore.UTC().Format(time.DateTime))
	}
	return nil
}

// showName returns a name of a certificate for messages.
func showName(cert *x509.Certificate) string {
	switch {
	case len(cert.DNSNames) > 0:
		return quote(cert.DNSNames[0])
	case len(cert.IPAddresses) > 0:
		return cert.IPAddresses[0].String()
	}
	return quote(cert.Subject.CommonName)
}

// quote never lets control characters reach a terminal.
func quote(s string) string {
	if strconv.CanBackquote(s) {
		return `"` + s + `"`
	}
	return strconv.Quote(s)
}

// cause removes what package os adds to the system's error, which would name the
// path again.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
