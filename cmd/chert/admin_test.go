package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/admin"
)

// adminLine reads the line after the start line, and returns the page's address.
func adminLine(t *testing.T, p *proc) string {
	t.Helper()
	line := p.line()
	if !strings.HasPrefix(line, "chert: admin page at ") {
		t.Fatalf("line %q", line)
	}
	return urlPattern.FindString(line)
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	p := start(t, folder(t, map[string]string{"f": "x"}), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	page := adminLine(t, p)
	c := newClient(t, "")
	for range 3 {
		get(t, c, p.urls[0]+"f")
	}
	for path, want := range map[string]string{"": "<title>chert serve", "stats": `"Protocol":"HTTP/1.1","Class":2`, "readyz": "ready", "healthz": "ok", "metrics": "\nhttp_server_request_duration_seconds_count{", "debug/connections": `"Protocol":"HTTP/1"`} {
		if status, body := get(t, c, page+path); status != 200 || !strings.Contains(body, want) {
			t.Errorf("/%s: %d %.200q, want %q", path, status, body, want)
		}
	}
	if _, body := get(t, c, page); !strings.Contains(body, `<span id="about">chert `+version()[:5]) || !strings.Contains(body, " at "+p.urls[0]+"</span>") {
		t.Errorf("the page does not say what it shows, and at which address: %.1500s", body)
	}
	if r := send(t, c, page, "stats", "attacker.example", nil); r.status != http.StatusMisdirectedRequest {
		t.Errorf("a name that resolves to this machine: %d", r.status)
	}
	// The page is not among the sites.
	if status, _ := get(t, c, p.urls[0]+"stats"); status != 404 {
		t.Errorf("the server itself has the page: %d", status)
	}
	code, stdout, stderr := inProcess(t, "top", "--once", "--interval", "100ms", page)
	if code != exitOK || !strings.HasPrefix(stdout, "chert at "+page) || !strings.Contains(stdout, " open, ") || stderr != "" {
		t.Errorf("chert top: %d %q %q", code, stdout, stderr)
	}
}

// While running requests are finished the server is not ready, and the page is still
// there.
func TestReadyFollowsDrain(t *testing.T) {
	needSignals(t)
	t.Parallel()
	sock := filepath.Join(shortDir(t), "admin")
	p, d := slowDownload(t, "--admin", "unix:"+sock)
	adminLine(t, p)
	c := newClient(t, sock)
	if status, _ := get(t, c, "http://localhost/readyz"); status != 200 {
		t.Errorf("%d before the drain", status)
	}
	p.signal(syscall.SIGTERM)
	until(t, func() bool {
		status, _ := get(t, c, "http://localhost/readyz")
		return status == 503
	})
	if status, body := get(t, c, "http://localhost/debug/connections"); status != 200 || !strings.Contains(body, `"Peer"`) {
		t.Errorf("the page during the drain: %d %s", status, body)
	}
	if err := d.finish(); err != nil {
		t.Error(err)
	}
	p.waitFor(exitOK)
	if len(p.stderr.String()) > 0 {
		t.Errorf("stderr: %s", p.stderr.String())
	}
}

func TestAdminInFile(t *testing.T) {
	needSignals(t)
	t.Parallel()
	dir := folder(t, map[string]string{"www/f": "x"})
	file := filepath.Join(dir, "chert.toml")
	config := func(admin string) string {
		return "admin = \"" + admin + "\"\nlisten = \"127.0.0.1:0\"\n[[site]]\nhosts = [\"*\"]\nroot = \"www\"\n"
	}
	write(t, file, config("127.0.0.1:0"))
	p := start(t, "--config", file)
	if status, _ := get(t, newClient(t, ""), adminLine(t, p)+"readyz"); status != 200 {
		t.Errorf("readyz %d", status)
	}
	// A reload says what it does not change.
	write(t, file, config("127.0.0.1:1"))
	p.reload()
	until(t, func() bool {
		return strings.Contains(p.stderr.String(), "the admin address stays as it was at the start")
	})
}

// The page has the sites, when certificates expire, and why a reload has failed.
func TestAdminSetup(t *testing.T) {
	needSignals(t)
	t.Parallel()
	dir := folder(t, map[string]string{"www/f": "x"})
	file := filepath.Join(dir, "chert.toml")
	newCA(t).server(dir, "a.example", "a.example")
	text := "admin = \"127.0.0.1:0\"\nlisten = \"127.0.0.1:0\"\n[[site]]\nhosts = [\"a.example\", \"*.a.example\"]\nroot = \"www\"\n" +
		"tls_cert = \"a.example.pem\"\ntls_key = \"a.example-key.pem\"\n[[site.route]]\npath = \"/x\"\nrespond = 204\n"
	write(t, file, text)
	p := start(t, "--config", file)
	page := adminLine(t, p)
	c := newClient(t, "")
	now := func() (s admin.Setup) {
		status, body := get(t, c, page+"setup")
		if err := json.Unmarshal([]byte(body), &s); err != nil || status != 200 {
			t.Fatal(status, body, err)
		}
		return s
	}
	first := now()
	if site := first.Sites[0]; len(first.Sites) != 1 || !slices.Equal(site.Hosts, []string{"a.example", "*.a.example"}) ||
		site.What != quote(filepath.Join(dir, "www"))+", 1 route" || !strings.Contains(site.Certificate, "a.example.pem") ||
		time.Until(site.Expires) < time.Minute || first.Config != quote(file) || time.Since(first.Loaded) > time.Hour ||
		first.Reload != nil || len(first.Addrs) != 1 || first.Addrs[0] != p.urls[0] {
		t.Errorf("%+v", first)
	}
	write(t, file, text+"roots = 1\n")
	p.signal(syscall.SIGHUP)
	until(t, func() bool { return now().Reload != nil })
	if s := now(); !strings.Contains(s.Reload.Error, "chert.toml:11:1: ") || s.Loaded != first.Loaded || len(s.Sites) != 1 {
		t.Errorf("%+v %+v", s, s.Reload)
	}
	write(t, file, text+"[[redirect]]\nhosts = \"b.a.example\"\nto = \"https://a.example\"\ntls_self = true\n")
	p.reload()
	until(t, func() bool { return len(now().Sites) == 2 })
	if s := now(); s.Reload.Error != "" || !s.Loaded.After(first.Loaded) || s.Sites[1].What != "redirects to https://a.example" ||
		s.Sites[1].Certificate != "chert's own" || s.Sites[1].Expires.IsZero() {
		t.Errorf("%+v %+v", s, s.Reload)
	}
}

func TestAdminErrors(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"www/f": "x", "c.toml": "listen = \":8080\"\nadmin = \"8080\"\n[[site]]\nhosts = [\"*\"]\nroot = \"www\"\n"})
	file := filepath.Join(dir, "c.toml")
	socket := "unix:" + filepath.Join(shortDir(t), "s") // ports may be in use
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "want host:port, :port, a port, unix:/path or fd:NAME", []string{"serve", dir, "--admin", "http://x"}},
		{exitFailure, "--admin " + socket + ": it is given already", []string{"serve", dir, "-l", socket, "--admin", socket}},
		{exitFailure, file + ":2:9: admin: :8080 includes it already", []string{"check", file}},
		{exitFailure, "--admin", []string{"serve", dir, "--listen", "127.0.0.1:0", "--admin", "192.0.2.1:80"}},
		{exitFailure, "is a server running with --admin?", []string{"top", "127.0.0.1:1"}},
		{exitUsage, `"server" has no port`, []string{"top", "server"}},
		{exitUsage, "--interval 1ms is too short", []string{"top", "--interval", "1ms"}},
		{exitUsage, "one URL at most", []string{"top", "a", "b"}},
	} {
		code, _, stderr := inProcess(t, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("chert %q: %d %q, want %d %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}
