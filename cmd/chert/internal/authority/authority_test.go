package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

func names(t *testing.T, all ...string) Names {
	t.Helper()
	n, err := ParseNames(all)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func newAuthority(t *testing.T, all ...string) (*Authority, Pair) {
	t.Helper()
	a, pair, err := New(names(t, all...), false, now)
	if err != nil {
		t.Fatal(err)
	}
	return a, pair
}

func pool(t *testing.T, text []byte) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(text) {
		t.Fatal("no certificate")
	}
	return p
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	cert, err := ParseCert(text)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// crypto/x509 accepts a certificate for each of its names and for nothing else.
func TestServer(t *testing.T) {
	t.Parallel()
	all := []string{"localhost", "127.0.0.1", "::1", "example.test", "*.example.test", "192.0.2.7", "www.example.com"}
	a, ca := newAuthority(t, all...)
	pair, until, err := a.Server(names(t, all...), MaxDays, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf := parse(t, pair.Cert)
	for _, name := range append(all[:4:4], "a.example.test", "192.0.2.7", "www.example.com") {
		if strings.Contains(name, ":") {
			name = "[" + name + "]" // of x509.VerifyOptions
		}
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool(t, ca.Cert), CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"other.test", "a.b.example.test", "127.0.0.2", "example.com"} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: pool(t, ca.Cert), CurrentTime: now}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool(t, ca.Cert), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("a server's certificate is a client's")
	}
	if got := leaf.NotAfter.Sub(leaf.NotBefore); got != MaxDays*24*time.Hour || !until.Equal(leaf.NotAfter) || leaf.NotBefore.After(now.Add(-time.Minute)) {
		t.Errorf("good from %v to %v, said %v", leaf.NotBefore, leaf.NotAfter, until)
	}
	root := parse(t, ca.Cert)
	if root.NotAfter.Year() != now.Year()+10 || !root.MaxPathLenZero || leaf.PublicKey.(*ecdsa.PublicKey).Curve != elliptic.P256() || leaf.IsCA {
		t.Errorf("authority %+v\nserver %+v", root, leaf)
	}
}

// A stolen key of an authority is of no use against sites it was not made for,
// also where nothing of this package is asked.
func TestConstraints(t *testing.T) {
	t.Parallel()
	a, ca := newAuthority(t, "localhost", "www.example.com", "*.wild.example.com")
	for _, name := range []string{"b.localhost", "x.test", "host.internal", "10.1.2.3", "fd00::1", "www.example.com", "a.www.example.com", "b.wild.example.com"} {
		if _, _, err := a.Server(names(t, name), 1, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"example.com", "evil.example.com", "attest", "nottest", "8.8.8.8", "2001:db8::1", "*.example.com"} {
		_, _, err := a.Server(names(t, "localhost", name), 1, now)
		if e, ok := errors.AsType[*NotPermittedError](err); !ok || e.Name != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	forged := &x509.Certificate{DNSNames: []string{"bank.com"}, NotBefore: now, NotAfter: now.Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, forged, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool(t, ca.Cert), CurrentTime: now}); err == nil {
		t.Error("a forged certificate is accepted")
	}

	free, _, err := New(Names{}, true, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := free.Server(names(t, "example.com", "8.8.8.8"), 1, now); err != nil || free.Constrained() || !a.Constrained() {
		t.Errorf("unconstrained: %v", err)
	}
}

// Server and client authenticate to each other with what was made.
func TestHandshake(t *testing.T) {
	t.Parallel()
	a, ca, err := New(names(t, "localhost"), false, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key := func(pair Pair, _ time.Time, err error) tls.Certificate {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	server := &tls.Config{
		Certificates: []tls.Certificate{key(a.Server(names(t, "localhost"), 1, time.Now()))},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool(t, ca.Cert),
	}
	for _, name := range []string{"alice", "alice@example.com", "Alice & Bob"} {
		client := &tls.Config{RootCAs: pool(t, ca.Cert), ServerName: "localhost", Certificates: []tls.Certificate{key(a.Client(name, 1, time.Now()))}}
		c, s := net.Pipe()
		done := make(chan error, 1)
		go func() {
			defer c.Close()
			done <- tls.Client(c, client).Handshake()
		}()
		conn := tls.Server(s, server)
		err := conn.Handshake()
		go io.Copy(io.Discard, s) // close_notify
		if e := <-done; err != nil || e != nil {
			t.Fatalf("%s: server: %v, client: %v", name, err, e)
		}
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != name {
			t.Errorf("the client is %q", got)
		}
		s.Close()
	}
	// A server's certificate authenticates no client.
	wrong := &tls.Config{RootCAs: pool(t, ca.Cert), ServerName: "localhost", Certificates: server.Certificates}
	c, s := net.Pipe()
	go func() {
		tls.Client(c, wrong).Handshake()
		io.Copy(io.Discard, c)
	}()
	if err := tls.Server(s, server).Handshake(); err == nil {
		t.Error("a server's certificate is accepted as a client's")
	}
	s.Close()
	c.Close()
}

func TestParseNames(t *testing.T) {
	t.Parallel()
	n := names(t, "LocalHost", "127.0.0.1", "localhost", "::ffff:127.0.0.1", "my_host-1", "*.a.b", "::1")
	if got := n.String(); got != "localhost, my_host-1, *.a.b, 127.0.0.1, ::1" {
		t.Error(got)
	}
	for name, want := range map[string]string{
		"https://localhost/": "not a URL", "localhost:8080": "without a port", "[::1]": "brackets", "10.0.0.0/8": "prefix",
		"a/b": "path", "fe80::1%eth0": "without %eth0", "0.0.0.0": "where a server listens", "::": "where a server listens",
		"": "empty", "a..b": "empty", "a.": "empty", "*": "first label", "a.*.b": "first label", "a*.b": "first label", "*.com": "top-level",
		"-a": "hyphen", "a-.b": "hyphen", "bücher.test": "xn--", "a b": "letters", "a\nb": "letters", "1.2.3": "neither", "1.2.3.4.5": "neither", "256.1.1.1": "neither",
		strings.Repeat("a", 64): "63 bytes", strings.Repeat("a.", 127): "253 bytes",
	} {
		if _, err := ParseNames([]string{"localhost", name}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q in it", name, err, want)
		}
	}
}

// foreign is an authority that another program has made.
func foreign(t *testing.T, change func(*x509.Certificate)) (*x509.Certificate, *rsa.PrivateKey) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "other"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	change(tmpl)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// An authority of another program signs too, for no longer than it is good itself.
func TestForeign(t *testing.T) {
	t.Parallel()
	cert, key := foreign(t, func(*x509.Certificate) {})
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	signer, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(cert, signer, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, until, err := a.Server(names(t, "example.com"), MaxDays, now)
	if err != nil || !until.Equal(cert.NotAfter) || !parse(t, pair.Cert).NotAfter.Equal(cert.NotAfter) {
		t.Errorf("%v %v, the authority %v", until, err, cert.NotAfter)
	}

	other, otherKey := foreign(t, func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Minute) })
	noCA, noCAKey := foreign(t, func(c *x509.Certificate) { c.IsCA = false })
	noSign, noSignKey := foreign(t, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign })
	early, earlyKey := foreign(t, func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) })
	for want, f := range map[string]func() (*Authority, error){
		"not that of the certificate": func() (*Authority, error) { return Load(cert, otherKey, now) },
		"has expired on 2026-02-03":   func() (*Authority, error) { return Load(other, otherKey, now) },
		"is not an authority's":       func() (*Authority, error) { return Load(noCA, noCAKey, now) },
		"not an authority's":          func() (*Authority, error) { return Load(noSign, noSignKey, now) },
		"valid from":                  func() (*Authority, error) { return Load(early, earlyKey, now) },
	} {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An authority that is no root is sent with the certificate.
func TestIntermediate(t *testing.T) {
	t.Parallel()
	root, rootKey := foreign(t, func(*x509.Certificate) {})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{Subject: pkix.Name{CommonName: "below"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, root, key.Public(), rootKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Load(cert, key, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, _, err := a.Server(names(t, "localhost"), 1, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	if _, err := parse(t, pair.Cert).Verify(x509.VerifyOptions{DNSName: "localhost", Roots: roots, Intermediates: pool(t, pair.Cert), CurrentTime: now}); err != nil {
		t.Error(err)
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	_, ca := newAuthority(t, "localhost")
	block := func(typ string, headers map[string]string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Headers: headers, Bytes: []byte("x")}))
	}
	for text, want := range map[string]string{
		"": "no private key", "garbage": "no private key", string(ca.Cert): "no private key",
		block("ENCRYPTED PRIVATE KEY", nil): "is encrypted", block("RSA PRIVATE KEY", map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}): "is encrypted",
		block("PRIVATE KEY", nil): "asn1", block("EC PRIVATE KEY", nil): "", block("RSA PRIVATE KEY", nil): "",
	} {
		if _, err := ParseKey([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseKey([]byte(block("EC PARAMETERS", nil) + string(ca.Cert) + string(ca.Key))); err != nil {
		t.Error(err) // as openssl ecparam writes it
	}
	for _, text := range []string{"", string(ca.Key), block("CERTIFICATE", nil)} {
		if _, err := ParseCert([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
