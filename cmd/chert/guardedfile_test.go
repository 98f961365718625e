package main

import (
	"strings"
	"testing"
)

// A route for one file guards it by its other names too: that of the folder whose index it
// is, and those of its compressed forms. So does one for the page of a folder.
func TestGuardedFile(t *testing.T) {
	t.Parallel()
	const secret = "SECRET"
	p, _ := startConfig(t, `
[[site]]
hosts = "*"
root = "www"
index = ["index.html", "default.html"]
[[site.rewrite]]
from = "^/r/(.*)$"
to = "/{1}"
[[site.route]]
path = "/private/index.html"
respond = 200
[site.route.basic_auth]
users = { bob = "$2a$04$EJwATaVfUMEHDkOCnhcYvO0K4Lt8fZQXsYX5kVe9H1kYtNKCcOLO6" }
[[site.route]]
path = "/plan.html"
deny = "all"
respond = 200
[[site.route]]
path = "/open.html.gz"
deny = "all"
respond = 200
[[site.route]]
path = "/page/{$}"
methods = ["GET"]
deny = "all"
respond = 200
[[site.route]]
path = "/img/{path...}"
root = "img"
[[site.route]]
path = "/img/own/index.html"
deny = "all"
respond = 200
[[site.route]]
path = "/shown/index.html"
redirect = "/shown/"
headers = { X-A = "b" }
[[site.route]]
path = "/head/index.html"
methods = ["HEAD"]
deny = "all"
respond = 200
`, map[string]string{
		"www/private/index.html": secret, "www/private/index.html.gz": secret, "www/plan.html": secret, "www/plan.html.gz": secret,
		"www/plan.html.br": secret, "www/plan.html.zst": secret, "www/open.html": "open", "www/open.html.gz": secret,
		"www/page/index.html": secret, "www/page/default.html": secret, "www/page/index.html.br": secret, "www/page/f": "f of page",
		"img/own/index.html": secret, "img/own/index.html.gz": secret, "img/own/f": "f of img", "www/shown/index.html": "shown",
		"www/head/index.html": "head",
	})
	for _, target := range []string{
		"/private/index.html", "/private/", "/private", "/private/.", "//private/", "/private/index.html.gz", "/private/index.html/",
		"/%70rivate/", "/private/index%2ehtml.gz", "/r/private/", "/r/private", "/r/private/index.html", "/r/private/index.html/",
		"/r/private/index.html.gz", "/plan.html", "/plan.html.gz", "/plan.html.br", "/plan.html.zst", "/plan.html%2egz",
		"/r/plan.html.gz", "/r/plan.html.br/", "/open.html.gz", "/open.html", "/page/", "/page", "/page/index.html",
		"/page/default.html", "/page/index.html.br", "/r/page/", "/r/page", "/r/page/index.html", "/img/own/", "/img/own",
		"/img/own/index.html.gz", "/img/own/index.html",
	} {
		for _, accept := range []string{"Accept-Encoding: identity", "Accept-Encoding: gzip", "Accept-Encoding: br, zstd"} {
			for _, method := range []string{"GET", "HEAD"} {
				r := request(t, p.urls[0], method, target, accept)
				if strings.Contains(r.body, secret) || r.header.Get("Content-Length") == "6" && r.status == 200 {
					t.Errorf("%s %s, %s: %d %q", method, target, accept, r.status, r.body)
				}
			}
		}
	}
	for target, want := range map[string]string{"/page/f": "f of page", "/img/own/f": "f of img", "/open.html": "open", "/shown/": "shown",
		"/head/": "head", "/r/open.html": "open", "/r/page/f": "f of page"} {
		if r := request(t, p.urls[0], "GET", target); r.status != 200 || r.body != want {
			t.Errorf("%s: %d %q", target, r.status, r.body)
		}
	}
	if r := request(t, p.urls[0], "GET", "/private/index.html"); r.status != 401 {
		t.Errorf("the route itself: %d", r.status)
	}
}
