package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"golang.org/x/crypto/bcrypt"
)

// guardedSites have files that nobody gets without a password or from here, beside all that
// may lead to them.
const guardedSites = `
[errors]
"5xx" = "pages/5xx.html"
[[site]]
hosts = "try.example"
root = "www"
try = ["{path}", "{path}.html", "/admin{path}.html", "{path}.gz", "{path}/index.html", "{path}/"]
spa = "index.html"
hidden = ["*.bak", "/vault/**"]
[site.errors]
"4xx" = "pages/4xx.html"
[[site.rewrite]]
from = "^/r/(.*)$"
to = "/{1}"
[[site.rewrite]]
from = "^/(.*)~(.*)$"
to = "/{2}/{1}?{query}&a={1}"
ROUTES

[[site]]
hosts = "clean.example"
root = "www"
clean_urls = true
listing = true
dotfiles = true
hidden = ["*.bak", "/vault/**", ".env"]
not_found = "404.html"
[[site.rewrite]]
from = "^/r(/.*)?$"
to = "/{1}"
ROUTES

[[site]]
hosts = "alias.example"
root = "www"
listing = true
index = ["index.html", "x.html"]
hidden = ["*.bak", "/vault/**", ".env"]
[[site.rewrite]]
from = "^/r/(.*)$"
to = "/{1}"
ROUTES
[[site.route]]
path = "/img/{path...}"
root = "img"
try = ["{path}", "{path}.html", "/own{path}", "{path}/"]
[[site.route.rewrite]]
from = "^/r/(.*)$"
to = "/{1}"
[[site.route]]
path = "/img/own/{path...}"
root = "img/own"
deny = "all"
[[site.route]]
path = "/img/one.html"
deny = "all"
respond = 200
[[site.route]]
path = "/img/a/index.html"
deny = "all"
respond = 200
`

const guardedRoutes = `
[[site.route]]
path = "/admin/{path...}"
root = "www/admin"
not_found = ""
[site.route.basic_auth]
users = { bob = "HASH" }
[[site.route]]
path = "/secret.html"
allow = "192.0.2.1"
respond = 200
[[site.route]]
path = "/secret"
deny = "all"
respond = 200
[[site.route]]
path = "/one/index.html"
methods = ["GET"]
deny = "all"
respond = 200
[[site.route]]
path = "/page/{$}"
deny = "all"
respond = 200
[[site.route]]
path = "/choice/{path...}"
root = "www/choice"
not_found = ""
deny = "all"
cookie = { beta = "*" }
[[site.route]]
path = "/choice/{path...}"
root = "www/choice"
not_found = ""
deny = "all"
`

// guardedMark is in every file that must not be sent, and in no path.
const guardedMark = "<what-is-guarded>"

// guardedServer serves guardedSites on a socket of the file system, with the connections of
// a real server.
func guardedServer(t testing.TB) (socket string) {
	t.Helper()
	files := map[string]string{
		"www/index.html": "index", "www/open.html": "open", "www/open.html.gz": "gz of open", "www/404.html": "404", "www/a/b/f": "f",
		"www/one/f": "f", "www/page/f": "f", "pages/4xx.html": "4xx", "pages/5xx.html": "5xx", "img/f.html": "f", "img/a/f": "f",
	}
	for _, name := range []string{
		"outside", "www/admin/x.html", "www/admin/index.html", "www/admin/x.html.gz", "www/secret.html", "www/secret.html.gz",
		"www/secret.html.br", "www/secret", "www/one/index.html", "www/one/index.html.zst", "www/page/index.html",
		"www/page/index.html.gz", "www/page.html.bak", "www/choice/f", "www/choice/index.html", "img/own/f", "img/own/x.html",
		"img/own/index.html", "img/one.html", "img/one.html.br", "img/a/index.html", "img/a/index.html.gz",
	} {
		files[name] = guardedMark
	}
	hidden := map[string]string{"www/vault/f": guardedMark, "www/vault/index.html": guardedMark, "www/x.bak": guardedMark, "www/.env": guardedMark}
	dir, err := os.MkdirTemp("", "chert") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, all := range []map[string]string{files, hidden} {
		for name, text := range all {
			write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
		}
	}
	for _, link := range []string{"www/link", "img/link"} {
		if err := os.Symlink("..", filepath.Join(dir, filepath.FromSlash(link))); err != nil {
			t.Skip(err)
		}
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	routes := strings.ReplaceAll(guardedRoutes, "HASH", string(hash))
	all := openSites(t, loadConfig(t, dir, strings.ReplaceAll(guardedSites, "ROUTES", routes)))
	srv := &chert.Server{Handler: all, ErrorLog: log.New(io.Discard, "", 0)}
	socket = filepath.Join(dir, "s")
	l, err := srv.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	t.Cleanup(func() {
		srv.Close()
		<-done
	})
	return socket
}

// askRaw sends a request, whatever the bytes of its target are, and returns all that comes back.
func askRaw(t *testing.T, socket, method, target, host string, fields ...string) []byte {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	// The server may refuse it before it has read everything.
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", method, target, host, strings.Join(fields, ""))
	answer, err := io.ReadAll(c)
	if len(answer) == 0 {
		t.Errorf("%s %q of %s: no response: %v", method, target, host, err)
	}
	return answer
}

// FuzzGuarded asks for any path without a password: no response has a byte of a file that a
// route guards, that is hidden, or that is outside of the folders.
func FuzzGuarded(f *testing.F) {
	for _, target := range guardedForms {
		f.Add(target)
	}
	for _, target := range []string{
		"/one/", "/one", "/one/index.html.zst", "/page/", "/page/index.html", "/page/index.html.gz", "/secret.html.gz", "/SECRET.HTML",
		"/Admin/x.html", "/choice/f", "/img/own/f", "/img/f", "/img/one.html.br", "/img/r/own/f", "/img/r/one.html", "/img/a/", "/img/a",
		"/img/a/index.html.gz", "/r/img/own/f", "/vault/f", "/vault/", "/x.bak", "/VAULT/f", "/.env", "/r/.env", "/link/outside",
		"/link/www/secret.html", "/img/link/img/own/f", "/../outside", "/..%2foutside", "/%2e%2e%2foutside", "/%252e%252e/outside",
		"/..%5coutside", "/..\\outside", "/secret.html;a=b", "/;/secret.html", "/secret.html%3b", "/secret.html?", "/secret.html%3f",
		"/secret.html#x", "/secret.html%23", "/secret.html.", "/secret.html%20", "/secret.html::$DATA", "/x~admin", "/x.html~admin",
		"/~secret.html", "/secret.html~", "/outside~..", "http://try.example/secret.html", "//try.example/secret.html", "*", "",
		"/" + strings.Repeat("a", 5000), "/" + strings.Repeat("%2e%2e/", 1000) + "outside", "/\x00/secret.html", "/\xff", "/%", "/%zz",
	} {
		f.Add(target)
	}
	socket := guardedServer(f)
	f.Fuzz(func(t *testing.T, target string) {
		if strings.ContainsAny(target, "\r\n") || strings.Contains(target, guardedMark) {
			return // it would not be a target
		}
		for _, host := range []string{"try.example", "clean.example", "alias.example"} {
			for _, fields := range []string{"", "Accept-Encoding: br, zstd, gzip\r\nCookie: beta=1\r\n", "Range: bytes=0-\r\nAccept: text/html\r\n"} {
				answer := askRaw(t, socket, http.MethodGet, target, host, fields)
				if bytes.Contains(answer, []byte(guardedMark)) {
					t.Errorf("%q of %s with %q:\n%s", target, host, fields, answer)
				}
			}
		}
	})
}

// What FuzzGuarded asks for is there.
func TestGuardedServer(t *testing.T) {
	t.Parallel()
	socket := guardedServer(t)
	for _, tt := range []struct{ host, target, fields, want string }{
		{"try.example", "/open", "", "open"},
		{"try.example", "/r/open", "", "open"},
		{"try.example", "/nothing", "Accept: text/html\r\n", "index"},
		{"try.example", "/nothing.js", "Accept: */*\r\n", "4xx"},
		{"clean.example", "/open", "Accept-Encoding: gzip\r\n", "gz of open"},
		{"clean.example", "/nothing", "", "404"},
		{"alias.example", "/img/f", "", "f"},
		{"alias.example", "/img/r/f", "", "f"},
		{"alias.example", "/admin/x.html", "Authorization: Basic Ym9iOnB3\r\n", guardedMark},
	} {
		if got := askRaw(t, socket, "GET", tt.target, tt.host, tt.fields); !bytes.HasSuffix(got, []byte(tt.want)) {
			t.Errorf("%+v:\n%s", tt, got)
		}
	}
}
