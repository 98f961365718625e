package acmetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	pebbleacme "github.com/letsencrypt/pebble/v2/acme"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/cmd/chert/internal/acme"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
)

var binary string

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chert-acme")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "chert")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/chert")
	build.Dir = filepath.Join("..", "..", "..", "..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// proc is a running chert.
type proc struct {
	t    *testing.T
	cmd  *exec.Cmd
	said servertest.Log // on stdout and stderr
}

// start runs chert serve. It trusts the authority's own server.
func start(t *testing.T, trust string, args ...string) *proc {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	p := &proc{t: t, cmd: exec.CommandContext(ctx, binary, append([]string{"serve"}, args...)...)}
	p.cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+trust)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Log(p.said.String())
		}
	})
	p.wants("chert: serving")
	return p
}

func (p *proc) stop() {
	if p.cmd.ProcessState == nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	}
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: ", what)
		}
	}
}

// wants waits until the process has said something.
func (p *proc) wants(text string) {
	p.t.Helper()
	until(p.t, text, func() bool { return strings.Contains(p.said.String(), text) })
}

// get fetches a page over TLS, and returns the certificate.
func get(port, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: name}}
	defer tr.CloseIdleConnections()
	c := http.Client{Transport: tr, Timeout: patience}
	req, err := http.NewRequest("GET", "https://127.0.0.1:"+port+"/f", nil)
	if err != nil {
		return nil, err
	}
	req.Host = name
	res, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != 200 || string(body) != "body") {
		err = fmt.Errorf("%d %q", res.StatusCode, body)
	}
	return res.TLS.PeerCertificates[0], err
}

func mustGet(t *testing.T, port, name string, roots *x509.CertPool) *x509.Certificate {
	t.Helper()
	cert, err := get(port, name, roots)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return cert
}

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("body"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// By TLS-ALPN-01 alone, without a listener for plain HTTP; and a restart needs no authority.
func TestIssueByTLS(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	ca := startPebble(t, freeport.Port(t), port, 24*time.Hour)
	args := []string{folder(t), "--listen", "127.0.0.1:" + port, "--tls-auto", "a.example.com", "--tls-auto", "b.example.com",
		"--tls-ca", ca.url, "--tls-storage", t.TempDir(), "--tls-email", "admin@example.com"}
	p := start(t, ca.trust, args...)
	p.wants("acme: got the certificate for a.example.com")
	p.wants("acme: got the certificate for b.example.com")
	serial := mustGet(t, port, "a.example.com", ca.roots).SerialNumber
	mustGet(t, port, "b.example.com", ca.roots)
	if _, err := get(port, "c.example.com", ca.roots); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("another name: %v", err)
	}
	p.stop()
	ca.srv.Close()
	start(t, ca.trust, args...)
	if mustGet(t, port, "a.example.com", ca.roots).SerialNumber.Cmp(serial) != 0 {
		t.Error("another certificate after a restart")
	}
}

// By HTTP-01: the authority finds no TLS at its port. Other requests to the plain listener are redirected.
func TestIssueByHTTP(t *testing.T) {
	t.Parallel()
	port, plain := freeport.Port(t), freeport.Port(t)
	ca := startPebble(t, plain, freeport.Port(t), 24*time.Hour)
	p := start(t, ca.trust, folder(t), "--listen", "127.0.0.1:"+port, "--http-redirect", "127.0.0.1:"+plain,
		"--tls-auto", "a.example.com", "--tls-ca", ca.url, "--tls-storage", t.TempDir())
	p.wants("acme: got the certificate for a.example.com")
	mustGet(t, port, "a.example.com", ca.roots)
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/", "/.well-known/acme-challenge/x"} {
		req, err := http.NewRequest("GET", "http://127.0.0.1:"+plain+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "a.example.com"
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 301 || res.Header.Get("Location") != "https://a.example.com"+path {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}

// A configuration file has certificates of several kinds, and a reload adds a name.
func TestIssueAfterReload(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGHUP")
	}
	t.Parallel()
	port := freeport.Port(t)
	ca := startPebble(t, freeport.Port(t), port, 24*time.Hour)
	file := filepath.Join(t.TempDir(), "chert.toml")
	config := func(hosts string) {
		t.Helper()
		text := fmt.Sprintf(`
listen = "127.0.0.1:%s"
tls_ca = %q
tls_storage = "state"
[[site]]
hosts = [%s]
root = %q
tls_auto = true
[[site]]
hosts = "localhost"
root = %[4]q
tls_self = true
`, port, ca.url, hosts, folder(t))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config(`"a.example.com"`)
	p := start(t, ca.trust, "--config", file)
	p.wants("acme: got the certificate for a.example.com")
	config(`"a.example.com", "b.example.com"`)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.wants("chert: reloaded")
	mustGet(t, port, "a.example.com", ca.roots)
	p.wants("acme: got the certificate for b.example.com")
	mustGet(t, port, "b.example.com", ca.roots)
	config(`"b.example.com"`)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "a name that is gone is refused", func() bool {
		_, err := get(port, "a.example.com", ca.roots)
		return err != nil && strings.Contains(err.Error(), "unrecognized name")
	})
	mustGet(t, port, "b.example.com", ca.roots)
}

// The authority asks another server: no certificate, one line, and the server goes on.
func TestWrongChallenge(t *testing.T) {
	t.Parallel()
	port, plain := freeport.Port(t), freeport.Port(t)
	other := &http.Server{Addr: "127.0.0.1:" + plain, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "wrong") })}
	go other.ListenAndServe()
	t.Cleanup(func() { other.Close() })
	ca := startPebble(t, plain, freeport.Port(t), 24*time.Hour)
	p := start(t, ca.trust, folder(t), "--listen", "127.0.0.1:"+port, "--http-redirect", freeport.Addr(t),
		"--tls-auto", "a.example.com", "--tls-ca", ca.url, "--tls-storage", t.TempDir())
	p.wants("acme: cannot get the certificate for a.example.com; it will be tried again")
	if _, err := get(port, "a.example.com", ca.roots); err == nil || !strings.Contains(err.Error(), "remote error: tls:") {
		t.Errorf("without a certificate: %v", err)
	}
}

// While a challenge waits, its certificate is no way past the certificate that clients need.
func TestChallengeIsNoWayIn(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	slow, err := net.Listen("tcp", "127.0.0.1:0") // the authority waits here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slow.Close() })
	_, slowPort, err := net.SplitHostPort(slow.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ca := startPebble(t, freeport.Port(t), slowPort, 24*time.Hour)
	start(t, ca.trust, folder(t), "--listen", "127.0.0.1:"+port, "--tls-auto", "a.example.com", "--client-ca", ca.trust,
		"--tls-ca", ca.url, "--tls-storage", t.TempDir())
	waiting, err := slow.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { waiting.Close() })
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, host := range []string{"a.example.com", "b.example.com"} {
			c, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example.com", NextProtos: []string{acme.ALPN}, MaxVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(c, "GET /f HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
			// As by net/http, a protocol that has no handler ends the connection.
			if answer, err := io.ReadAll(c); err != nil || len(answer) > 0 {
				t.Errorf("%s: %q %v", host, answer, err)
			}
			c.Close()
		}
	}
	if c, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{InsecureSkipVerify: true, ServerName: "b.example.com", NextProtos: []string{acme.ALPN}}); err == nil {
		c.Close()
		t.Error("there is a certificate for a name without a challenge")
	}
}

func TestUnreachableAuthority(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	ca := startPebble(t, freeport.Port(t), port, 24*time.Hour)
	p := start(t, ca.trust, folder(t), "--listen", "127.0.0.1:"+port, "--tls-auto", "a.example.com",
		"--tls-ca", "https://127.0.0.1:"+freeport.Port(t)+"/dir", "--tls-storage", t.TempDir())
	p.wants("acme: cannot get the certificate for a.example.com; it will be tried again")
	p.wants("connection refused")
	if _, err := get(port, "a.example.com", ca.roots); err == nil {
		t.Error("it was served without a certificate")
	}
}

// server serves the certificates of a manager, of which the test chooses the times.
func server(t *testing.T, o acme.Options) (*acme.Manager, *servertest.Log) {
	t.Helper()
	said := new(servertest.Log)
	o.Logger = slog.New(slog.NewTextHandler(said, nil))
	m, err := acme.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	srv := &chert.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "body") }),
		TLSConfig: &tls.Config{GetCertificate: m.Certificate, NextProtos: []string{"http/1.1", acme.ALPN}},
	}
	done := make(chan error, 1)
	// The server listens before the manager is used: certmagic opens the port itself if it is free.
	l, err := srv.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.TLSPort))
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- srv.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		if t.Failed() {
			t.Log(said.String())
		}
	})
	return m, said
}

// Certificates are renewed in time, while requests go on with the old one.
func TestRenew(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	ca := startPebble(t, freeport.Port(t), port, 30*time.Second)
	m, said := server(t, acme.Options{Storage: t.TempDir(), CA: ca.url, Roots: ca.trusted(t), Host: "127.0.0.1", TLSPort: number(t, port),
		Check: 200 * time.Millisecond, RenewalRest: 0.9})
	m.Manage([]string{"a.example.com"})
	until(t, "a certificate", func() bool { return strings.Contains(said.String(), "got the certificate") })
	first := mustGet(t, port, "a.example.com", ca.roots)
	until(t, "another certificate", func() bool {
		return mustGet(t, port, "a.example.com", ca.roots).SerialNumber.Cmp(first.SerialNumber) != 0
	})
	until(t, "a line about it", func() bool { return strings.Contains(said.String(), "renewed the certificate for a.example.com") })
}

// The authority has closed the account: what there is is served, and a line says what failed.
func TestRevokedAccount(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	ca, storage := startPebble(t, freeport.Port(t), port, 24*time.Hour), t.TempDir()
	m, said := server(t, acme.Options{Storage: storage, CA: ca.url, Roots: ca.trusted(t), Host: "127.0.0.1", TLSPort: number(t, port)})
	m.Manage([]string{"a.example.com"})
	until(t, "a certificate", func() bool { return strings.Contains(said.String(), "got the certificate for a.example.com") })
	id := accountID(t, storage)
	account := ca.db.GetAccountByID(id)
	if account == nil {
		t.Fatalf("there is no account %q", id)
	}
	closed := *account
	closed.Status = pebbleacme.StatusDeactivated
	if err := ca.db.UpdateAccountByID(id, &closed); err != nil {
		t.Fatal(err)
	}
	m.Manage([]string{"a.example.com", "b.example.com"})
	until(t, "a line about it", func() bool { return strings.Contains(said.String(), "cannot get the certificate for b.example.com") })
	mustGet(t, port, "a.example.com", ca.roots)
}

// accountID is the authority's name of the account that is kept in a folder.
func accountID(t *testing.T, storage string) (id string) {
	t.Helper()
	err := filepath.WalkDir(storage, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" || !strings.Contains(path, "users") {
			return err
		}
		text, err := os.ReadFile(path)
		var account struct{ Location string }
		if err == nil {
			err = json.Unmarshal(text, &account)
		}
		if account.Location != "" {
			id = account.Location[strings.LastIndexByte(account.Location, '/')+1:]
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
