package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// guardedForms are forms in which a client may write the paths of guarded files.
var guardedForms = []string{
	"/admin/x", "/admin/x.html", "/admin", "/admin/", "/admin/index", "/secret", "/secret.html", "/x", "/index",
	"/r/admin/x.html", "/r/admin/x", "/r/admin/", "/r/admin", "/r/admin/index", "/r/admin/index.html", "/r/secret.html",
	"/r/secret", "/r/x", "/r/r/admin/x.html", "/r//admin/x.html", "/r/./admin/x.html", "/r/a/../admin/x.html",
	"/r/%61dmin/x.html", "/r/%2fadmin/x.html", "/r/..%2fadmin/x.html", "/r/%2e/secret.html", "/r/secret%2ehtml",
	"/r/%252e/secret", "/r/?/secret.html", "/r/secret.html/", "/r/admin%5cx.html", "/r/admin%5c..%5cx.html",
	"/%61dmin/x", "/admin%2fx.html", "/admin%2fx", "//admin/x.html", "/./admin/x.html", "/a/../admin/x",
	"/a/..%2fadmin/x", "/%2e/admin/x", "/%2e%2e/admin/x", "/admin/./x", "/admin//x.html", "/admin/x.html/", "/admin/x/",
	"/secret.html/", "/secret/", "/secret%2ehtml", "/secret.html%00", "/admin%5cx.html", "/;/admin/x", "/admin;/x.html",
	"/" + strings.Repeat("a/../", 100) + "admin/x", "/r/" + strings.Repeat("./", 300) + "admin/x.html",
}

// Neither try nor rewrite of a site leads to files for which a route has other rules, in
// whatever form a client writes their paths.
func TestGuardedPaths(t *testing.T) {
	t.Parallel()
	const secret = "SECRET"
	dir := folder(t, map[string]string{"www/admin/x.html": secret, "www/admin/index.html": secret, "www/secret.html": secret,
		"www/open.html": "open", "www/index.html": "index"})
	file := filepath.Join(dir, "c.toml")
	write(t, file, `listen = "127.0.0.1:0"
[[site]]
hosts = "*"
root = "www"
try = ["{path}", "{path}.html", "/admin{path}.html", "{path}/"]
[[site.rewrite]]
from = "^/r/(.*)$"
to = "/{1}"
[[site.route]]
path = "/admin/{path...}"
root = "www/admin"
deny = "all"
[[site.route]]
path = "/secret.html"
deny = "all"
respond = 200
[[site.route]]
path = "/secret"
deny = "all"
respond = 200
`)
	p := start(t, "--config", file)
	for _, target := range []string{"/open", "/r/open", "/r/open.html"} {
		if r := request(t, p.urls[0], "GET", target); r.status != 200 || r.body != "open" {
			t.Errorf("%s: %d %q", target, r.status, r.body)
		}
	}
	for _, target := range guardedForms {
		for _, method := range []string{"GET", "HEAD"} {
			r := request(t, p.urls[0], method, target)
			if strings.Contains(r.body, secret) || r.header.Get("Content-Length") == "6" && r.status == 200 {
				t.Errorf("%s %s: %d %q", method, target, r.status, r.body)
			}
		}
	}
}
