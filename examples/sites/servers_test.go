package sites

import (
	"bufio"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/internal/testing/freeport"
	"golang.org/x/crypto/bcrypt"
)

func TestMain(m *testing.M) {
	defer func() { os.RemoveAll(builtDir) }()
	engines.Main(m)
}

// patience bounds how long a server may need to start, on a machine that does much else.
const patience = time.Minute

// server is a running server.
type server struct {
	plain, tls string // addresses
	roots      *x509.CertPool
}

// named replaces the ports of a value, which a configuration does not have.
func (s *server) named(value string) string {
	for _, addr := range []string{s.plain, s.tls} {
		_, port, _ := net.SplitHostPort(addr)
		value = strings.ReplaceAll(value, ":"+port, "")
	}
	return value
}

// fresh makes a server's folder: the configurations with addresses that are free, users and a certificate.
func fresh(t *testing.T, name string) (s *server, dir string) {
	t.Helper()
	s = &server{plain: freeport.Addr(t), tls: freeport.Addr(t)}
	dir = t.TempDir()
	apps := [2]string{app(t, "first"), app(t, "second")}
	copyTo(t, dir, strings.NewReplacer("127.0.0.1:9000", apps[0], "127.0.0.1:9001", apps[1], "127.0.0.1:9009", freeport.Addr(t),
		`":80"`, `"`+s.plain+`"`, `":443"`, `"`+s.tls+`"`,
		"listen 80", "listen "+s.plain, "listen 443", "listen "+s.tls))
	dir = filepath.Join(dir, name)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, roots := certificate(t, "example.com")
	s.roots = roots
	for name, content := range map[string]string{"users": "ann:" + string(hash) + "\n", "cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return s, dir
}

// app is an application that configurations forward to. It answers with its name and what it has received,
// and echoes after an upgrade.
func app(t *testing.T, name string) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", r.Header.Get("Upgrade"))
			io.Copy(c, rw)
		case strings.HasSuffix(r.URL.Path, "/missing"):
			http.Error(w, "none of the "+name, http.StatusNotFound)
		default:
			fmt.Fprintf(w, "%s: %s %s %s|%s|%s|%s\n", name, r.Method, r.RequestURI, r.Host, r.Header.Get("X-Forwarded-For"),
				r.Header.Get("X-Forwarded-Proto"), r.Header.Get("X-Api"))
		}
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// builtDir has the program that built has made.
var builtDir string

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "chert-sites")
	if err != nil {
		return "", err
	}
	builtDir = dir
	file := filepath.Join(dir, "chert")
	cmd := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", file, "./cmd/chert")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &os.PathError{Op: "go build", Path: string(out), Err: err}
	}
	return file, nil
})

func startChert(t *testing.T, name string) *server {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s, dir := fresh(t, name)
	s.start(t, exec.Command(binary, "serve", "--config", filepath.Join(dir, "chert.toml")))
	return s
}

// nginxMain is what nginx needs around the servers of a configuration.
const nginxMain = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
	access_log off;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	charset utf-8;
	charset_types text/css text/plain;
	types {
		text/html html;
		text/css css;
		text/plain txt;
		font/woff2 woff2;
	}
	default_type application/octet-stream;
	include server.conf;
}
`

// startNginx returns nil if there is no nginx.
func startNginx(t *testing.T, name string) *server {
	t.Helper()
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("nginx is not installed; want the package nginx")
		}
		return nil
	}
	s, dir := fresh(t, name)
	if err := os.Rename(filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "server.conf")); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main.conf")
	if err := os.WriteFile(main, []byte(nginxMain), 0o644); err != nil {
		t.Fatal(err)
	}
	s.start(t, exec.Command(binary, "-p", dir+"/", "-c", main, "-e", "stderr"))
	return s
}

// start starts a server and waits until it listens at all its addresses.
func (s *server) start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pw.Close()
	said := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(bufio.NewReader(pr))
		pr.Close()
		said <- string(b)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		if text := <-said; err != nil || t.Failed() {
			t.Logf("%s: %v\n%s", cmd.Path, err, text)
		}
	})
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.plain)
		if err == nil {
			c.Close()
			return
		}
		if time.Since(begun) > patience {
			t.Fatal(err)
		}
	}
}
