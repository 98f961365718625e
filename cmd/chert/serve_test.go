package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestServeFiles(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"hello.txt":       "hello, world",
		"site/index.html": "<p>front page",
		"list/a.txt":      "a",
		"list/b.txt":      "b",
	})
	p := start(t, dir, "--listen", "127.0.0.1:0")
	c := newClient(t, "")
	tests := []struct {
		path   string
		status int
		body   string // is contained
	}{
		{"hello.txt", 200, "hello, world"},
		{"site/", 200, "front page"},
		{"list/", 200, `href="./b.txt"`},
		{"", 200, `href="./hello.txt"`},
		{"missing", 404, "not found"},
		{"hello.txt/below", 404, "not found"},         // a file is no folder
		{strings.Repeat("x", 5000), 404, "not found"}, // longer than the system takes
		{"nul%00", 404, "not found"},                  // malformed for the system
	}
	for _, tt := range tests {
		status, body := get(t, c, p.urls[0]+tt.path)
		if status != tt.status || !strings.Contains(body, tt.body) {
			t.Errorf("GET /%.40s: %d %.200q, want %d with %q", tt.path, status, body, tt.status, tt.body)
		}
	}
}

func TestServeRange(t *testing.T) {
	t.Parallel()
	p := start(t, folder(t, map[string]string{"f": "0123456789"}), "--listen", "127.0.0.1:0")
	req, err := http.NewRequest("GET", p.urls[0]+"f", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=3-5")
	res, err := newClient(t, "").Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 206 || string(body) != "345" {
		t.Fatalf("%d %q %v, want 206 with 345", res.StatusCode, body, err)
	}
	if got := res.Header.Get("Content-Range"); got != "bytes 3-5/10" {
		t.Errorf("Content-Range %q", got)
	}
}

// A client's library would clean the paths before they are sent, so these requests are written by hand.
func TestNothingOutside(t *testing.T) {
	t.Parallel()
	top := folder(t, map[string]string{
		"secret":      "SECRET",
		"www/in/file": "inside",
		"wwwx/secret": "SECRET", // a neighbour that shares a prefix
	})
	www := filepath.Join(top, "www")
	links := map[string]string{
		"file-out":  filepath.Join("..", "secret"),
		"file-abs":  filepath.Join(top, "secret"),
		"dir-out":   "..",
		"in/deeper": filepath.Join("..", "..", "secret"),
		"loop":      "loop",
		"good":      filepath.Join("in", "file"),
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(www, name)); err != nil {
			t.Skip("cannot make links here: ", err)
		}
	}
	p := start(t, www, "--listen", "127.0.0.1:0")
	if status, body := get(t, newClient(t, ""), p.urls[0]+"good"); status != 200 || body != "inside" {
		t.Errorf("a link that stays inside: %d %q", status, body)
	}
	for _, target := range []string{
		"/../secret",
		"/in/../../secret",
		"/%2e%2e/secret",
		"/%2e%2e%2fsecret",
		"/..%2fsecret",
		"/..%5csecret",
		"/in/%2e%2e/%2e%2e/secret",
		"/../wwwx/secret",
		"//../secret",
		"/file-out",
		"/file-abs",
		"/dir-out/secret",
		"/dir-out/",
		"/in/deeper",
		"/loop",
	} {
		status, body := raw(t, p.urls[0], target)
		if status != 404 && status != 400 || strings.Contains(body, "SECRET") {
			t.Errorf("GET %s: %d %q, want 404 or 400", target, status, body)
		}
	}
}

// raw sends target unchanged.
func raw(t *testing.T, base, target string) (int, string) {
	t.Helper()
	return rawTo(t, base, "x", target)
}

// rawTo is raw for a host.
func rawTo(t *testing.T, base, host, target string) (int, string) {
	t.Helper()
	c := dial(t, base)
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", target, host)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", target, err)
	}
	return res.StatusCode, string(body)
}

func dial(t *testing.T, base string) *net.TCPConn {
	t.Helper()
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func TestDefaultFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"here": "yes"})
	p := &proc{t: t, cmd: command(t, "serve", "--listen", "127.0.0.1:0")}
	p.cmd.Dir = dir
	p.begin()
	if status, body := get(t, newClient(t, ""), p.urls[0]+"here"); status != 200 || body != "yes" {
		t.Errorf("%d %q", status, body)
	}
}

func TestTwoListeners(t *testing.T) {
	needSignals(t)
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	p := start(t, folder(t, map[string]string{"f": "both"}), "-l", "127.0.0.1:0", "-l", "unix:"+sock)
	if len(p.urls) != 2 || p.urls[1] != "unix:"+sock {
		t.Fatalf("addresses %q", p.urls)
	}
	for _, where := range []struct{ socket, base string }{{"", p.urls[0]}, {sock, "http://unix/"}} {
		if status, body := get(t, newClient(t, where.socket), where.base+"f"); status != 200 || body != "both" {
			t.Errorf("%v: %d %q", where, status, body)
		}
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
	if _, err := os.Lstat(sock); !os.IsNotExist(err) {
		t.Errorf("the socket file is still there: %v", err)
	}
}

func TestStartLine(t *testing.T) {
	t.Parallel()
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	up := &setup{what: showFolder("."), listen: []endpoint{defaultListen}}
	l := listener{Listener: address{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}}}
	want := "chert: serving " + quote(wd) + " at http://127.0.0.1:8080/" +
		" (this machine only; --listen :8080 opens it to the network)"
	if got := startLine(up, []listener{l}); got != want {
		t.Errorf("default:\ngot  %s\nwant %s", got, want)
	}
	up.chosen = true
	all := listener{Listener: address{&net.TCPAddr{IP: net.IPv6zero, Port: 8080}}}
	want = "chert: serving " + quote(wd) + " at http://localhost:8080/ and http://127.0.0.1:8080/"
	// The second line has the addresses of this machine.
	if got, _, _ := strings.Cut(startLine(up, []listener{all, l}), "\n"); got != want {
		t.Errorf("two:\ngot  %s\nwant %s", got, want)
	}
}

// A quiet server says nothing at all, so its readiness shows only in its socket.
func TestQuiet(t *testing.T) {
	needSignals(t)
	t.Parallel()
	sock := filepath.Join(shortDir(t), "s")
	p := launch(t, "serve", folder(t, map[string]string{"f": "shh"}), "--quiet", "--listen", "unix:"+sock)
	until(t, func() bool {
		c, err := net.Dial("unix", sock)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if status, _ := get(t, newClient(t, sock), "http://unix/f"); status != 200 {
		t.Errorf("status %d", status)
	}
	p.signal(syscall.SIGTERM)
	out, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	p.waitFor(exitOK)
	if len(out) > 0 || len(p.stderr.String()) > 0 {
		t.Errorf("stdout %q, stderr %q, want nothing", out, p.stderr.String())
	}
}
