package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/authority"
)

// testCA is an authority of a test.
type testCA struct {
	t    *testing.T
	ca   *authority.Authority
	pair authority.Pair
	pool *x509.CertPool
}

func newCA(t *testing.T) *testCA {
	t.Helper()
	ca, pair, err := authority.New(authority.Names{}, true, time.Now().AddDate(0, 0, -100)) // it signs in the past too
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pair.Cert)
	return &testCA{t, ca, pair, pool}
}

// server writes DIR/NAME.pem and DIR/NAME-key.pem, a certificate for hosts.
func (c *testCA) server(dir, name string, hosts ...string) (cert, key string) {
	c.t.Helper()
	return c.serverAt(dir, name, time.Now(), hosts...)
}

func (c *testCA) serverAt(dir, name string, now time.Time, hosts ...string) (cert, key string) {
	c.t.Helper()
	names, err := authority.ParseNames(hosts)
	if err != nil {
		c.t.Fatal(err)
	}
	pair, _, err := c.ca.Server(names, 30, now)
	if err != nil {
		c.t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	replace(c.t, cert, string(pair.Cert))
	replace(c.t, key, string(pair.Key))
	return cert, key
}

// replace writes a file as programs that care do: no reader sees half of it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func (c *testCA) client(name string) tls.Certificate {
	c.t.Helper()
	pair, _, err := c.ca.Client(name, 30, time.Now())
	if err != nil {
		c.t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert
}

// tlsConn is a client's connection.
type tlsConn struct {
	t *testing.T
	*tls.Conn
	r *bufio.Reader
}

func addrOf(t *testing.T, base string) string {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// dialTLS returns the error of the handshake, which a server of TLS 1.3 may report after it.
func dialTLS(t *testing.T, base string, cfg *tls.Config) (*tlsConn, error) {
	t.Helper()
	c, err := tls.Dial("tcp", addrOf(t, base), cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	return &tlsConn{t, c, bufio.NewReader(c)}, nil
}

func mustDialTLS(t *testing.T, base string, cfg *tls.Config) *tlsConn {
	t.Helper()
	c, err := dialTLS(t, base, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *tlsConn) get(host string) (*http.Response, string, error) {
	fmt.Fprintf(c, "GET /f HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// want fails the test unless a request on the connection is answered so.
func (c *tlsConn) want(host string, status int, body string) *http.Response {
	c.t.Helper()
	res, got, err := c.get(host)
	if err != nil || res.StatusCode != status || !strings.Contains(got, body) {
		c.t.Fatalf("%s: %v %q %v, want %d with %q", host, res, got, err, status, body)
	}
	return res
}

func (c *tlsConn) serial() string {
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// serialOf is that of the certificate which new connections get.
func serialOf(t *testing.T, base string, ca *testCA, name string) string {
	t.Helper()
	c := mustDialTLS(t, base, &tls.Config{RootCAs: ca.pool, ServerName: name})
	defer c.Close()
	c.want(name, 200, "")
	return c.serial()
}

func serialIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := authority.ParseCert(text)
	if err != nil {
		t.Fatal(err)
	}
	return cert.SerialNumber.String()
}

func TestTLSFlags(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example", "127.0.0.1")
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--log", "vhost")
	if !strings.HasPrefix(p.urls[0], "https://127.0.0.1:") {
		t.Fatalf("address %q", p.urls)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		c := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", MinVersion: version, MaxVersion: version, NextProtos: []string{"http/1.1"}})
		for range 3 {
			c.want("a.example", 200, "body")
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
			t.Errorf("ALPN selected %q", got)
		}
	}
	if _, err := dialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
	// By address, without a name.
	mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool}).want("127.0.0.1", 200, "body")
	until(t, func() bool { return strings.Contains(p.stderr.String(), "a.example:443 127.0.0.1 - - ") })
	plain := dial(t, p.urls[0])
	fmt.Fprint(plain, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(plain), nil); err != nil || res.StatusCode != 400 {
		t.Errorf("plain HTTP: %v %v", res, err)
	}
	_, port, _ := net.SplitHostPort(addrOf(t, p.urls[0]))
	until(t, func() bool { return strings.Contains(p.stderr.String(), "-:"+port+" 127.0.0.1 - - ") })
}

func TestTLSMin(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example")
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--tls-min", "1.3")
	if _, err := dialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example", MaxVersion: tls.VersionTLS12}); err == nil {
		t.Error("TLS 1.2 was accepted")
	}
	mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"}).want("a.example", 200, "body")
}

// The name of the handshake selects the certificate, and each site has its own.
func TestTLSSites(t *testing.T) {
	t.Parallel()
	ca, other, dir := newCA(t), newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example", "*.a.example")
	other.server(dir, "b", "b.example", "127.0.0.1")
	p, _ := startConfig(t, fmt.Sprintf(`
[[site]]
hosts = ["a.example", "*.a.example"]
root = "a"
tls_cert = "%[1]s/a.pem"
tls_key = "%[1]s/a-key.pem"
[[site]]
hosts = ["b.example", "127.0.0.1"]
root = "b"
tls_cert = "%[1]s/b.pem"
tls_key = "%[1]s/b-key.pem"
tls_min = "1.3"
hsts = "1h"
[[redirect]]
hosts = ["old.a.example"]
to = "https://a.example{uri}"
tls_cert = "%[1]s/a.pem"
tls_key = "%[1]s/a-key.pem"
hsts = "24h"
hsts_subdomains = true
`, filepath.ToSlash(dir)), map[string]string{"a/f": "of a", "b/f": "of b"})
	onA := func(name string) *tls.Config { return &tls.Config{RootCAs: ca.pool, ServerName: name} }
	onB := func(name string) *tls.Config { return &tls.Config{RootCAs: other.pool, ServerName: name} }
	c := mustDialTLS(t, p.urls[0], onA("a.example"))
	for range 3 { // the first takes the ordinary path, the others may not
		if res := c.want("a.example", 200, "of a"); res.Header.Get("Strict-Transport-Security") != "" {
			t.Error("HSTS for a site without it")
		}
		// No certificate of a client is involved, so the site of Host answers.
		if res := c.want("b.example", 200, "of b"); strings.Join(res.Header["Strict-Transport-Security"], "|") != "max-age=3600" {
			t.Errorf("HSTS %q", res.Header["Strict-Transport-Security"])
		}
		if res := c.want("old.a.example", 301, ""); strings.Join(res.Header["Strict-Transport-Security"], "|") != "max-age=86400; includeSubDomains" {
			t.Errorf("HSTS %q", res.Header["Strict-Transport-Security"])
		}
		c.want("c.example", 421, "421")
	}
	mustDialTLS(t, p.urls[0], onA("x.a.example")).want("x.a.example", 200, "of a")
	mustDialTLS(t, p.urls[0], onB("b.example")).want("b.example", 200, "of b")
	mustDialTLS(t, p.urls[0], onB("127.0.0.1")).want("127.0.0.1", 200, "of b")
	low := onB("b.example")
	low.MaxVersion = tls.VersionTLS12
	if _, err := dialTLS(t, p.urls[0], low); err == nil {
		t.Error("TLS 1.2 for a site with tls_min 1.3")
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		_, err := dialTLS(t, p.urls[0], &tls.Config{InsecureSkipVerify: true, ServerName: "c.example", MaxVersion: version})
		if err == nil || err.Error() != "remote error: tls: unrecognized name" {
			t.Errorf("a name without a site: %v", err)
		}
	}
}

// Connections and requests go on while certificates are replaced, by every way in which programs do that.
func TestTLSReload(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "v1/cert", "a.example")
	ca.server(dir, "v2/cert", "a.example")
	if err := os.Symlink("v1", filepath.Join(dir, "live")); err != nil {
		t.Skip("cannot make links here: ", err)
	}
	cert, key := filepath.Join(dir, "live", "cert.pem"), filepath.Join(dir, "live", "cert-key.pem")
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	base := p.urls[0]
	old := mustDialTLS(t, base, &tls.Config{RootCAs: ca.pool, ServerName: "a.example"})
	want := func(how string) {
		t.Helper()
		until(t, func() bool {
			old.want("a.example", 200, "body") // the old connection goes on
			return serialOf(t, base, ca, "a.example") == serialIn(t, cert)
		})
		if first := serialIn(t, filepath.Join(dir, "v1", "first")); old.serial() != first {
			t.Errorf("%s: the connection has another certificate", how)
		}
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "v1", "first"), string(text))

	// The link to the folder is replaced, as Kubernetes does.
	if err := os.Symlink("v2", filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "live")); err != nil {
		t.Fatal(err)
	}
	want("link")
	// The files are replaced, one after the other.
	ca.server(dir, "v2/cert", "a.example")
	want("rename")
	// The files are written again.
	ca.server(dir, "other", "a.example")
	for from, to := range map[string]string{"other.pem": cert, "other-key.pem": key} {
		text, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, to, string(text))
	}
	want("write")

	// A certificate that does not fit keeps the old one, and is reported once.
	before := serialOf(t, base, ca, "a.example")
	said := p.stderr.String()
	ca.server(dir, "third", "a.example")
	if text, err = os.ReadFile(filepath.Join(dir, "third.pem")); err != nil {
		t.Fatal(err)
	}
	replace(t, cert, string(text))
	wrong := `is not that of the certificate for "a.example"`
	until(t, func() bool { return strings.Contains(p.stderr.String()[len(said):], wrong) })
	if got := serialOf(t, base, ca, "a.example"); got != before {
		t.Error("another certificate after a failed reload")
	}
	if runtime.GOOS != "windows" {
		p.refuse() // SIGHUP says the same, and keeps it too
		if got := serialOf(t, base, ca, "a.example"); got != before {
			t.Error("another certificate after a failed reload by SIGHUP")
		}
		// SIGHUP loads a good one at once.
		ca.server(dir, "v2/cert", "a.example")
		p.signal(syscall.SIGHUP)
	} else {
		ca.server(dir, "v2/cert", "a.example")
	}
	want("SIGHUP")
	lines := strings.Count(p.stderr.String()[len(said):], wrong)
	if most := 2; lines > most { // one of the change, one of SIGHUP
		t.Errorf("%d lines about one mistake:\n%s", lines, p.stderr.String())
	}
}

// Keep-alive requests on many connections, SIGHUP after SIGHUP with a new certificate each.
func TestTLSReloadUnderLoad(t *testing.T) {
	needSignals(t)
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example")
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	stop, done := make(chan struct{}), make(chan error, 4)
	for range cap(done) {
		c := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"})
		go func() {
			for {
				res, body, err := c.get("a.example")
				if err != nil || res.StatusCode != 200 || body != "body" {
					done <- fmt.Errorf("%v %q %w", res, body, err)
					return
				}
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
			}
		}()
	}
	for range 10 {
		ca.server(dir, "a", "a.example")
		p.reload()
		if serialOf(t, p.urls[0], ca, "a.example") != serialIn(t, cert) {
			t.Error("SIGHUP did not load the certificate")
		}
	}
	close(stop)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTLSRedirect(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example", "::1")
	p, _ := startConfig(t, fmt.Sprintf(`
http_redirect = "127.0.0.1:0"
[[site]]
hosts = ["a.example", "[::1]"]
root = "a"
tls_cert = "%[1]s/a.pem"
tls_key = "%[1]s/a-key.pem"
hsts = "365d"
`, filepath.ToSlash(dir)), map[string]string{"a/f": "of a"})
	if len(p.urls) != 2 || !strings.HasPrefix(p.urls[1], "http://") {
		t.Fatalf("addresses %q", p.urls)
	}
	_, port, err := net.SplitHostPort(addrOf(t, p.urls[0]))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		request  string // method, target and host
		status   int
		location string
	}{
		{"GET /a%20b?c=d&e a.example:8080", 301, "https://a.example:" + port + "/a%20b?c=d&e"},
		{"HEAD / A.example.:8080", 301, "https://a.example:" + port + "/"},
		{"POST /p a.example:8080", 308, "https://a.example:" + port + "/p"},
		{"PUT /p a.example", 308, "https://a.example/p"}, // its port is mapped
		{"GET /p [::1]:8080", 301, "https://[::1]:" + port + "/p"},
		{"GET http://a.example:8080/q?r a.example:8080", 301, "https://a.example:" + port + "/q?r"},
		{"GET //evil.example/ a.example", 301, "https://a.example//evil.example/"},
		{"GET / evil.example", 421, ""},
		{"GET / a.example@evil.example", 421, ""},
	}
	for _, tt := range tests {
		f := strings.Fields(tt.request)
		c := dial(t, p.urls[1])
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", f[0], f[1], f[2])
		res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: f[0]})
		if err != nil {
			t.Errorf("%s: %v", tt.request, err)
			continue
		}
		if tt.status == 421 && res.StatusCode == 400 {
			continue
		}
		if res.StatusCode != tt.status || res.Header.Get("Location") != tt.location || res.Header.Get("Strict-Transport-Security") != "" {
			t.Errorf("%s: %d %v, want %d %s", tt.request, res.StatusCode, res.Header, tt.status, tt.location)
		}
	}
	if res := mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: ca.pool, ServerName: "a.example"}).want("a.example", 200, "of a"); res.Header.Get("Strict-Transport-Security") != "max-age=31536000" {
		t.Errorf("%v", res.Header)
	}
	if runtime.GOOS != "windows" {
		p.signal(syscall.SIGTERM)
		p.waitFor(exitOK)
	}
}

// The ports of targets, which no test can listen on.
func TestUpgradeTarget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ port, own, host, want string }{
		{"443", "80", "a.example", "https://a.example"},
		{"443", "80", "a.example:80", "https://a.example"},
		{"8443", "80", "a.example", "https://a.example:8443"},
		{"8443", "8080", "a.example", "https://a.example"}, // mapped from 443 and 80
		{"8443", "8080", "a.example:8080", "https://a.example:8443"},
		{"8443", "8080", "a.example:", "https://a.example"}, // RFC 3986 section 3.2.3: no port
		{"0", "80", "a.example", "https://a.example"},       // TLS is on unix sockets only
		{"0", "8080", "a.example:8080", "https://a.example"},
		{"443", "80", "", ""},
		{"443", "80", "a b", ""},
		{"443", "80", "a/b", ""},
		{"443", "80", "[::1]", "https://[::1]"},
	} {
		if got := (&upgrade{port: tt.port, own: tt.own}).target(tt.host); got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// The authority is kept, so that clients that trust it do so after a restart.
func TestTLSSelf(t *testing.T) {
	t.Parallel()
	storage, dir := filepath.Join(t.TempDir(), "state"), folder(t, map[string]string{"f": "body"})
	for range 2 {
		p := start(t, dir, "--listen", "127.0.0.1:0", "--tls-self", "--tls-storage", storage)
		file := filepath.Join(storage, "self", "ca.pem")
		if line := p.line(); !strings.Contains(line, quote(file)) {
			t.Errorf("it does not say how to trust it: %s", line)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		for _, name := range []string{"localhost", "127.0.0.1", "::1"} {
			mustDialTLS(t, p.urls[0], &tls.Config{RootCAs: pool, ServerName: name}).want(name, 200, "body")
		}
		if runtime.GOOS != "windows" {
			if info, err := os.Stat(filepath.Join(storage, "self", "ca-key.pem")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the key: %v %v", info, err)
			}
		}
		p.cmd.Process.Kill()
		p.wait()
	}
}
