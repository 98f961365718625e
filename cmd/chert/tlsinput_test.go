package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/authority"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
)

// What is wrong with the files of a certificate is one line that says what to do.
func TestTLSBadInput(t *testing.T) {
	t.Parallel()
	ca, dir, www := newCA(t), t.TempDir(), folder(t, map[string]string{"f": "body"})
	at := func(name string) string { return filepath.Join(dir, name) }
	cert, key := ca.server(dir, "a", "a.example")
	_, otherKey := ca.server(dir, "b", "b.example")
	expired, expiredKey := ca.serverAt(dir, "old", time.Now().AddDate(0, 0, -60), "a.example")
	early, earlyKey := ca.serverAt(dir, "early", time.Now().AddDate(0, 0, 60), "a.example")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write(t, at("order.pem"), string(ca.pair.Cert)+read(cert))
	write(t, at("ca.pem"), string(ca.pair.Cert))
	write(t, at("ca-key.pem"), string(ca.pair.Key))
	write(t, at("text"), "hello")
	write(t, at("damaged.pem"), "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")
	write(t, at("encrypted.pem"), "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n")
	write(t, at("legacy.pem"), "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMAA=\n-----END RSA PRIVATE KEY-----\n")
	write(t, filepath.Join(www, "key.pem"), read(key))
	write(t, filepath.Join(www, ".hidden", "key.pem"), read(key))
	write(t, filepath.Join(www, "cert.pem"), read(cert))
	tests := []struct{ name, cert, key, want string }{
		{"the key of another", cert, otherKey, "the key in %KEY% is not that of the certificate for \"a.example\" in %CERT%; give the key that the certificate was made with"},
		{"expired", expired, expiredKey, "the certificate for \"a.example\" in %CERT% has expired on " + leafOf(t, expired).NotAfter.Format(time.DateOnly) + "; renew it"},
		{"not valid yet", early, earlyKey, "the certificate for \"a.example\" in %CERT% is valid from " + leafOf(t, early).NotBefore.Format(time.DateTime) + " on; check the clock of this machine"},
		{"no file", at("none"), key, "there is no file %CERT%; chert cert makes certificates for development"},
		{"no key file", cert, at("none"), "there is no file %KEY%; chert cert makes certificates for development"},
		{"a folder", dir, key, "%CERT% is not a file"},
		{"encrypted", cert, at("encrypted.pem"), "the key in %KEY% is encrypted; decrypt it with openssl pkey -in %KEY% -out FILE, and let only chert's user read that"},
		{"encrypted as long ago", cert, at("legacy.pem"), "the key in %KEY% is encrypted; decrypt it with openssl pkey -in %KEY% -out FILE, and let only chert's user read that"},
		{"wrong order", at("order.pem"), key, "the certificates in %CERT% are in the wrong order, as the key is that of number 2; put the server's own first, then the one that signed it, and so on"},
		{"mixed up", key, cert, "%CERT% has a PRIVATE KEY and no certificate; are the files of certificate and key mixed up?"},
		{"twice the certificate", cert, cert, "%KEY% has a certificate and no key; are the files of certificate and key mixed up?"},
		{"no PEM", at("text"), key, "there is no certificate in PEM in %CERT%; openssl x509 -inform der converts the binary form"},
		{"no PEM of a key", cert, at("text"), "there is no private key in PEM in %KEY%; openssl pkey -inform der converts the binary form"},
		{"an authority", at("ca.pem"), at("ca-key.pem"), "%CERT% has the certificate of the authority " + quote(leafOf(t, at("ca.pem")).Subject.CommonName) + ", which names no server (subjectAltName); give one that it has signed, or one of chert cert"},
		{"a key that clients could read", filepath.Join(www, "cert.pem"), filepath.Join(www, "key.pem"),
			"the key %KEY% is in the folder " + quote(www) + ", which is served, so clients could read it; move it elsewhere"},
	}
	for _, tt := range tests {
		want := strings.NewReplacer("%CERT%", quote(tt.cert), "%KEY%", quote(tt.key)).Replace(tt.want)
		oneLine(t, exitFailure, "chert: "+want, "serve", www, "--listen", "127.0.0.1:0", "--tls-cert", tt.cert, "--tls-key", tt.key)
		// The same in a file, by check too.
		file := filepath.Join(t.TempDir(), "chert.toml")
		write(t, file, fmt.Sprintf("[[site]]\nhosts = 'a.example'\nroot = '%s'\ntls_cert = '%s'\ntls_key = '%s'\n", www, tt.cert, tt.key))
		if code, _, stderr := inProcess(t, "check", file); code != exitFailure || !strings.HasPrefix(stderr, file+":") || !strings.HasSuffix(stderr, ": "+want+"\n") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: check: %d %s", tt.name, code, stderr)
		}
	}
	// Hidden names are not served.
	p := start(t, www, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", filepath.Join(www, ".hidden", "key.pem"))
	mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"}).want("a.example", 200, "body")

	oneLine(t, exitFailure, "chert: certificate 1 in "+quote(at("damaged.pem"))+" is damaged: x509: malformed tbs certificate",
		"serve", www, "--tls-cert", at("damaged.pem"), "--tls-key", key)
	oneLine(t, exitFailure, "chert: "+quote(cert)+" has the certificate of \"a.example\", which is no authority; clients are known by the authority that signed their certificates, such as the ca.pem of chert cert",
		"serve", www, "--tls-cert", cert, "--tls-key", key, "--client-ca", cert)
	oneLine(t, exitFailure, "chert: the folder of certificates "+quote(filepath.Join(www, "state"))+" is in the folder "+quote(www)+", which is served, so clients could read its keys; choose another",
		"serve", www, "--tls-auto", "a.example", "--tls-storage", filepath.Join(www, "state"))

	// Ports taken.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, flags := range [][]string{{"--listen", l.Addr().String()}, {"--listen", "127.0.0.1:0", "--http-redirect", l.Addr().String()}} {
		args := append([]string{"serve", www, "--tls-cert", cert, "--tls-key", key}, flags...)
		code, _, stderr := inProcess(t, args...)
		if want := "choose another port, such as " + flags[len(flags)-2] + " 127.0.0.1:"; code != exitFailure || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) || !strings.Contains(stderr, port+" is already in use") {
			t.Errorf("%q: %d %s", args, code, stderr)
		}
	}
}

// A chain whose order beyond the first is wrong.
func TestTLSChainOrder(t *testing.T) {
	t.Parallel()
	root, dir := newCA(t), t.TempDir()
	cert, key := root.server(dir, "a", "a.example")
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	other := newCA(t)
	www := folder(t, nil)
	write(t, cert, string(text)+string(other.pair.Cert)+string(root.pair.Cert))
	oneLine(t, exitFailure, "chert: the certificates in "+quote(cert)+" are in the wrong order: number 3 has signed number 1; put the server's own first, then the one that signed it, and so on",
		"serve", www, "--tls-cert", cert, "--tls-key", key)
	// In order, and with one that belongs to none, it is what bundles have.
	write(t, cert, string(text)+string(root.pair.Cert)+string(other.pair.Cert))
	p := start(t, www, "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if n := len(mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: root.pool, ServerName: "a.example"}).ConnectionState().PeerCertificates); n != 3 {
		t.Errorf("%d certificates", n)
	}
}

func leafOf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestTLSUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--tls-cert", "x"}, "--tls-cert and --tls-key go together"},
		{[]string{"--tls-key", "x"}, "--tls-cert and --tls-key go together"},
		{[]string{"--tls-cert", "", "--tls-key", "x"}, "--tls-cert and --tls-key want the names of files"},
		{[]string{"--tls-self", "--tls-auto", "a.example"}, "--tls-cert, --tls-self and --tls-auto contradict each other; want one, or a configuration file for several sites"},
		{[]string{"--tls-email", "a@b.example"}, "--tls-email requires --tls-auto"},
		{[]string{"--tls-storage", "x"}, "--tls-storage requires --tls-auto or --tls-self"},
		{[]string{"--tls-self", "--tls-storage", ""}, "--tls-storage wants the name of a folder"},
		{[]string{"--client-ca", "x"}, "--client-ca requires --tls-cert, --tls-self or --tls-auto"},
		{[]string{"--tls-self", "--client-ca", ""}, "--client-ca wants the name of a file"},
		{[]string{"--hsts", "1h"}, "--hsts requires --tls-cert, --tls-self or --tls-auto"},
		{[]string{"--tls-self", "--hsts-subdomains"}, "--hsts-subdomains requires --hsts"},
		{[]string{"--http-redirect", ":80"}, "--http-redirect requires --tls-cert, --tls-self or --tls-auto"},
		{[]string{"--tls-self", "--listen", ":8080", "--http-redirect", "8080"}, "--http-redirect 127.0.0.1:8080: :8080 includes it already, as every address of this machine"},
		{[]string{"--tls-auto", "a.example", "--tls-staging", "--tls-ca", "https://x/"}, "--tls-staging and --tls-ca contradict each other; leave one out"},
		{[]string{"--tls-auto", "*.example.com"}, `invalid argument "*.example.com" for "--tls-auto" flag: "*.example.com": authorities give certificates for it only through the DNS, which chert cannot change; want single names, or --tls-cert`},
		{[]string{"--tls-auto", "localhost"}, `invalid argument "localhost" for "--tls-auto" flag: "localhost" is no public name, so no public authority gives a certificate for it; --tls-self makes one`},
		{[]string{"--tls-min", "1.1"}, `invalid argument "1.1" for "--tls-min" flag: want 1.2 or 1.3`},
		{[]string{"--hsts", "forever"}, `invalid argument "forever" for "--hsts" flag: want a time such as 365d or 24h, of ten years at most, or 0s`},
		{[]string{"--tls-ca", "http://x/"}, `invalid argument "http://x/" for "--tls-ca" flag: want the https URL of an ACME directory`},
		{[]string{"--http-redirect", "unix:x"}, `invalid argument "unix:x" for "--http-redirect" flag: want host:port, :port or a port`},
	} {
		oneLine(t, exitUsage, "chert: "+tt.want+`; see "chert serve --help"`, append([]string{"serve"}, tt.args...)...)
	}
}

// Without a certificate of an authority that is configured, no request is answered.
func TestTLSClients(t *testing.T) {
	t.Parallel()
	ca, clients, others, dir := newCA(t), newCA(t), newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example")
	write(t, filepath.Join(dir, "clients.pem"), string(clients.pair.Cert))
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--client-ca", filepath.Join(dir, "clients.pem"), "--hsts", "1h")
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		with := func(cert ...tls.Certificate) *tls.Config {
			// Also if the server does not name its authority.
			cfg := &tls.Config{RootCAs: ca.pool, ServerName: "a.example", MaxVersion: version}
			if cert != nil {
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert[0], nil }
			}
			return cfg
		}
		for range 3 {
			res := mustDialTLS(t, p.urls[0], with(clients.client("alice"))).want("a.example", 200, "body")
			if got := res.Header["Strict-Transport-Security"]; len(got) != 1 || got[0] != "max-age=3600" {
				t.Errorf("HSTS %q", got)
			}
		}
		for name, cfg := range map[string]*tls.Config{
			"none": with(), "of another authority": with(others.client("alice")), "a server's": with(serverPair(t, clients)),
		} {
			c, err := dialTLS(t, p.urls[0], cfg)
			if err == nil {
				_, _, err = c.get("a.example")
			}
			if err == nil {
				t.Errorf("%x: a client with a certificate %s was served", version, name)
			}
		}
	}
}

// serverPair is a certificate that is not for clients.
func serverPair(t *testing.T, ca *testCA) tls.Certificate {
	t.Helper()
	pair, _, err := ca.ca.Server(authority.Names{DNS: []string{"a.example"}}, 30, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// A client chooses the name of the handshake and that of each request. Neither lets it in without the certificate
// that a site wants: not by Host, not by resuming the session of another site, not after a reload.
func TestTLSClientsOfSites(t *testing.T) {
	t.Parallel()
	ca, one, two, dir := newCA(t), newCA(t), newCA(t), t.TempDir()
	ca.server(dir, "s", "open.example", "one.example", "uno.example", "two.example")
	write(t, filepath.Join(dir, "one.pem"), string(one.pair.Cert))
	write(t, filepath.Join(dir, "two.pem"), string(two.pair.Cert))
	text := fmt.Sprintf(`
[defaults]
tls_cert = "%[1]s/s.pem"
tls_key = "%[1]s/s-key.pem"
[[site]]
hosts = "open.example"
root = "open"
[[site]]
hosts = "one.example"
root = "one"
client_ca = "%[1]s/one.pem"
[[site]]
hosts = "uno.example"
root = "uno"
client_ca = "%[1]s/one.pem"
[[site]]
hosts = "two.example"
root = "two"
client_ca = "%[1]s/two.pem"
`, filepath.ToSlash(dir))
	p, _ := startConfig(t, text, map[string]string{"open/f": "of open", "one/f": "of one", "uno/f": "of uno", "two/f": "of two"})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		sessions := tls.NewLRUClientSessionCache(10)
		as := func(name string, certs ...tls.Certificate) *tls.Config {
			return &tls.Config{RootCAs: ca.pool, ServerName: name, Certificates: certs, MaxVersion: version, ClientSessionCache: shared{sessions}}
		}
		alice, bob := one.client("alice"), two.client("bob")
		type answers map[string]int
		check := func(what string, cfg *tls.Config, want answers) {
			t.Helper()
			for i := range 2 { // the second time with a ticket
				c := mustDialTLS(t, p.urls[0], cfg)
				if resumed := c.ConnectionState().DidResume; i == 1 && !resumed {
					t.Errorf("%s: %x was not resumed", what, version)
				}
				for host, status := range want {
					body := "of " + strings.TrimSuffix(host, ".example")
					if status == 421 {
						body = "421 no site of that name is served on this connection"
					}
					if res, got, err := c.get(host); err != nil || res.StatusCode != status || !strings.Contains(got, body) {
						t.Errorf("%s, host %s: %v %q %v", what, host, res, got, err)
					}
				}
				c.Close()
			}
		}
		check("open", as("open.example"), answers{"open.example": 200, "one.example": 421, "two.example": 421, "none.example": 421})
		check("open with a certificate", as("open.example", alice), answers{"open.example": 200, "one.example": 421})
		check("one", as("one.example", alice), answers{"one.example": 200, "uno.example": 200, "open.example": 421, "two.example": 421})
		check("two", as("two.example", bob), answers{"two.example": 200, "one.example": 421, "uno.example": 421})
		// With the tickets of all these sessions, and no certificate or another's.
		for _, cfg := range []*tls.Config{as("two.example"), as("one.example", bob)} {
			for range 6 {
				c, err := dialTLS(t, p.urls[0], cfg)
				if err == nil {
					_, _, err = c.get(cfg.ServerName)
				}
				// A ticket of this very site is from a session whose client was verified; there is
				// none of one.example.
				if err == nil && (cfg.ServerName == "one.example" || !c.ConnectionState().DidResume) {
					t.Errorf("%s was served to a client without its certificate", cfg.ServerName)
				}
			}
		}
	}

	// A connection whose authority is not one any more.
	c := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "one.example", Certificates: []tls.Certificate{one.client("alice")}})
	c.want("one.example", 200, "of one")
	replace(t, filepath.Join(dir, "one.pem"), string(two.pair.Cert))
	until(t, func() bool {
		res, _, err := c.get("one.example")
		return err == nil && res.StatusCode == 421
	})
	mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "one.example", Certificates: []tls.Certificate{two.client("bob")}}).want("one.example", 200, "of one")
}

// shared is a cache of tickets that offers one site's to another, as an attacker would.
type shared struct{ tls.ClientSessionCache }

func (s shared) Get(string) (*tls.ClientSessionState, bool) { return s.ClientSessionCache.Get("any") }

func (s shared) Put(_ string, cs *tls.ClientSessionState) { s.ClientSessionCache.Put("any", cs) }

// Without a certificate there is nothing to be had from an unreadable folder of state.
func TestTLSStorage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, flag := range []string{"--tls-self", "--tls-auto=a.example"} {
		code, _, stderr := inProcess(t, "serve", folder(t, nil), "--listen", "127.0.0.1:0", flag, "--tls-storage", file)
		if code != exitFailure || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "cannot ") {
			t.Errorf("%s: %d %s", flag, code, stderr)
		}
	}
	if _, err := os.Stat(file); err != nil || errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A certificate of chert's own is replaced before it expires, and an authority that cannot be used any more is
// reported once a day.
func TestTLSSelfRenew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := newSelf(dir, []vhost.Pattern{"a.example"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[tls.Certificate]
	if err := s.issue(&current); err != nil {
		t.Fatal(err)
	}
	first := current.Load()
	if renewed, err := s.renew(&current); renewed || err != nil {
		t.Errorf("a new certificate: %v %v", renewed, err)
	}
	old := *first.Leaf
	old.NotAfter = time.Now().Add(10 * time.Minute)
	current.Store(&tls.Certificate{Leaf: &old})
	if renewed, err := s.renew(&current); !renewed || err != nil || current.Load().Leaf.NotAfter.Before(first.Leaf.NotAfter) {
		t.Errorf("an old certificate: %v %v", renewed, err)
	}
	s.next = time.Time{}
	current.Store(&tls.Certificate{Leaf: &old})
	if err := os.Remove(filepath.Join(dir, "self", caKey)); err != nil {
		t.Fatal(err)
	}
	if renewed, err := s.renew(&current); renewed || err == nil || !strings.Contains(err.Error(), "--tls-storage") {
		t.Errorf("without its authority: %v %v", renewed, err)
	}
	if renewed, err := s.renew(&current); renewed || err != nil {
		t.Errorf("a second time: %v %v", renewed, err)
	}
}
