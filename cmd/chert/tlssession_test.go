package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/cmd/chert/internal/config"
)

// Sessions are resumed, whatever the certificate comes from, and after it has been
// replaced too: a configuration for each handshake would have ticket keys of its own.
func TestTLSResume(t *testing.T) {
	t.Parallel()
	ca, clients, dir := newCA(t), newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example")
	write(t, filepath.Join(dir, "clients.pem"), string(clients.pair.Cert))
	storage := filepath.Join(dir, "state")
	files := []string{"--tls-cert", cert, "--tls-key", key}
	for _, tt := range []struct {
		name   string
		flags  []string
		client []tls.Certificate
		reload bool // keeps sessions
	}{
		{name: "file", flags: files, reload: true},
		{name: "self", flags: []string{"--tls-self", "--tls-storage", storage}, reload: true},
		{name: "clients", flags: append(files[:4:4], "--client-ca", filepath.Join(dir, "clients.pem")), client: []tls.Certificate{clients.client("alice")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append([]string{folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0"}, tt.flags...)...)
			if tt.name == "self" {
				p.line() // how to trust it
			}
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				cfg := &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", Certificates: tt.client, MaxVersion: version,
					ClientSessionCache: shared{tls.NewLRUClientSessionCache(1)}}
				resumed := func() bool {
					c := mustDialTLS(t, p.urls[0], cfg)
					defer c.Close()
					c.want("a.example", 200, "body") // and the ticket has arrived
					return c.ConnectionState().DidResume
				}
				resumed()
				for range 2 {
					if !resumed() {
						t.Errorf("%x: the session was not resumed", version)
					}
				}
				if tt.reload && runtime.GOOS != "windows" {
					p.reload()
					if !resumed() {
						t.Errorf("%x: the session was not resumed after a reload", version)
					}
				}
			}
		})
	}
}

// The handshakes and responses that prove control of a name carry nothing else, and are for the names that are
// configured, not for all that the folder has.
func TestACMEChallenges(t *testing.T) {
	t.Parallel()
	storage := t.TempDir()
	for _, name := range []string{"a.example", "b.example"} {
		text, err := json.Marshal(map[string]any{
			"type": "http-01", "token": "of-" + name, "keyAuthorization": "answer", "identifier": map[string]string{"type": "dns", "value": name}})
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(storage, "acme", "127.0.0.1-1-dir", "challenge_tokens", name+".json"), string(text))
	}
	p := start(t, folder(t, map[string]string{"f": "body"}), "--listen", "127.0.0.1:0", "--http-redirect", "127.0.0.1:0",
		"--tls-auto", "a.example", "--tls-ca", "https://127.0.0.1:1/dir", "--tls-storage", storage)
	for _, tt := range []struct {
		name   string
		status int
	}{{"a.example", 200}, {"b.example", 421}} {
		res := send(t, newClient(t, ""), strings.TrimSuffix(p.urls[1], "/"), "/.well-known/acme-challenge/of-"+tt.name, tt.name, nil)
		if res.status != tt.status || (res.body == "answer") != (tt.status == 200) {
			t.Errorf("%s: %d %q", tt.name, res.status, res.body)
		}
	}
	c := mustDialTLS(t, p.urls[0], &tls.Config{InsecureSkipVerify: true, ServerName: "a.example", NextProtos: []string{acme.ALPN}})
	if got := c.ConnectionState().NegotiatedProtocol; got != acme.ALPN {
		t.Fatalf("ALPN selected %q", got)
	}
	fmt.Fprint(c, "GET /f HTTP/1.1\r\nHost: a.example\r\n\r\n")
	if got, _ := io.ReadAll(c); len(got) > 0 {
		t.Errorf("a request on a connection of a challenge was answered: %q", got)
	}
	if c, err := dialTLS(t, p.urls[0], &tls.Config{InsecureSkipVerify: true, ServerName: "b.example", NextProtos: []string{acme.ALPN}}); err == nil {
		t.Errorf("a challenge for a name of another server: %v", c.ConnectionState().PeerCertificates[0].DNSNames)
	}
}

// Certificates that clients refuse, or will soon, are reported at the start.
func TestTLSWarnings(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.serverAt(dir, "soon", time.Now().AddDate(0, 0, -21), "soon.example") // of 30 days
	ca.server(dir, "good", "good.example")
	p, file := startConfig(t, fmt.Sprintf(`
[[site]]
hosts = ["soon.example"]
root = "a"
tls_cert = "%[1]s/soon.pem"
tls_key = "%[1]s/soon-key.pem"
[[site]]
hosts = ["good.example"]
root = "a"
tls_cert = "%[1]s/good.pem"
tls_key = "%[1]s/good-key.pem"
[[redirect]]
hosts = ["other.example"]
to = "https://good.example/"
tls_cert = "%[1]s/good.pem"
tls_key = "%[1]s/good-key.pem"
`, filepath.ToSlash(dir)), map[string]string{"a/f": "x"})
	want := "chert: the certificate in " + quote(filepath.Join(dir, "soon.pem")) + " expires on " + leafOf(t, filepath.Join(dir, "soon.pem")).NotAfter.Format(time.DateTime) + "; renew it\n" +
		"chert: the certificate in " + quote(filepath.Join(dir, "good.pem")) + ` is not for "other.example", so clients refuse it there` + "\n"
	until(t, func() bool { return len(p.stderr.String()) >= len(want) })
	if got := p.stderr.String(); got != want {
		t.Errorf("at the start: %s\nwant: %s", got, want)
	}
	code, stdout, stderr := inProcess(t, "check", file)
	if want = strings.ReplaceAll(want, "chert: ", file+": warning: "); code != exitOK || stdout != file+": ok, 2 sites and 1 redirect\n" || stderr != want {
		t.Errorf("check: %d %s%s\nwant: %s", code, stdout, stderr, want)
	}
}

// The watch warns once a day, and of authorities of clients too.
func TestTLSWarningsOfClients(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	cert, key := ca.server(dir, "a", "a.example")
	write(t, filepath.Join(dir, "clients.pem"), string(ca.pair.Cert))
	o := &serveOptions{}
	o.tls.cert, o.tls.key, o.tls.clientCA = cert, key, filepath.Join(dir, "clients.pem")
	o.tls.min.text = "1.2"
	cfg := o.tls.config()
	cfg.Sites[0].Root = t.TempDir()
	s, err := openTLS(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.warnings(time.Now()); got != nil {
		t.Errorf("now: %q", got)
	}
	got := s.warnings(time.Now().AddDate(11, 0, 0))
	name := quote(leafOf(t, filepath.Join(dir, "clients.pem")).Subject.CommonName)
	if len(got) != 2 || !strings.HasPrefix(got[0], "the certificate in "+quote(cert)+" has expired on ") ||
		!strings.HasPrefix(got[1], "the authority "+name+" in "+quote(filepath.Join(dir, "clients.pem"))+" has expired on ") {
		t.Errorf("later: %q", got)
	}
}

// A limit per address that is off is off for plain HTTP too.
func TestRedirectLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ of, want connLimits }{
		{connLimits{1000, 500}, connLimits{125, 62}},
		{connLimits{1000, 0}, connLimits{125, 0}},
		{connLimits{4, 2}, connLimits{1, 1}},
	} {
		if got := tt.of.ofRedirects(); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.of, got, tt.want)
		}
	}
}

// A scan without a name must not look like a fault of the configuration; one with a
// name shows it.
func TestTLSNoSiteLog(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example")
	p, _ := startConfig(t, fmt.Sprintf("[[site]]\nhosts = 'a.example'\nroot = 'www'\ntls_cert = '%[1]s/a.pem'\ntls_key = '%[1]s/a-key.pem'\n", filepath.ToSlash(dir)),
		map[string]string{"www/f": ""})
	for i, tt := range []struct{ name, asked string }{{"", "to " + addrOf(t, p.urls[0])}, {"b.example", `server name "b.example"`}} {
		if _, err := dialTLS(t, p.urls[0], &tls.Config{InsecureSkipVerify: true, ServerName: tt.name}); err == nil {
			t.Error("the handshake succeeded")
		}
		until(t, func() bool { return strings.Count(p.stderr.String(), "\n") > i })
		got := strings.Split(p.stderr.String(), "\n")[i]
		want := ": no site has the name or address that the client asked for (" + tt.asked + ")"
		if !strings.HasPrefix(got, "chert: http: TLS handshake error from 127.0.0.1:") || !strings.HasSuffix(got, want) {
			t.Error(got)
		}
	}
}

// RFC 6797 section 6.1.1: max-age=0 makes browsers forget.
func TestHSTSValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", ""}, {"0s", "max-age=0"}, {"0d", "max-age=0"}, {"1h", "max-age=3600"}, {"365d", "max-age=31536000"},
	} {
		d, err := config.ParseHSTS(tt.text)
		if got := hstsValue(config.TLS{HSTS: d}); err != nil || got != tt.want {
			t.Errorf("%q: %q %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

// A process that stops leaves no lock for which the next one would wait.
func TestACMEStop(t *testing.T) {
	needSignals(t)
	t.Parallel()
	storage, www := t.TempDir(), folder(t, nil)
	p := start(t, www, "--listen", "127.0.0.1:0", "--tls-auto", "a.example", "--tls-ca", "https://127.0.0.1:1/dir", "--tls-storage", storage)
	until(t, func() bool { return strings.Contains(p.stderr.String(), "cannot get the certificate for a.example") })
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	if locks, err := os.ReadDir(filepath.Join(storage, "locks")); err != nil || len(locks) > 0 {
		t.Errorf("%v %v", locks, err)
	}
	if lines := strings.Count(p.stderr.String(), "\n"); lines != 1 {
		t.Errorf("%d lines: %s", lines, p.stderr.String())
	}
}

type addrListener struct {
	net.Listener
	addr net.Addr
}

func (l addrListener) Addr() net.Addr { return l.addr }

func TestReachableByOthers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr net.Addr
		want bool
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, false},
		{&net.TCPAddr{IP: net.IPv6loopback}, false},
		{&net.UnixAddr{}, false},
		{&net.TCPAddr{}, true},
		{&net.TCPAddr{IP: net.IPv6unspecified}, true},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}, true},
	} {
		if got := reachableByOthers(&binding{listener: listener{Listener: addrListener{addr: tt.addr}}}); got != tt.want {
			t.Errorf("%v: %v", tt.addr, got)
		}
	}
}
