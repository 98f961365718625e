package main

import "testing"

// Of routes with the same path the first whose condition a request meets is its own, with
// what protects it, and the one without a condition has the rest.
func TestConditions(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, `
trusted_proxies = ["127.0.0.1"]
[[site]]
hosts = "*"
root = "www"
headers = { X-Site = "s" }
[[site.route]]
path = "/app/{path...}"
root = "new"
cookie = { beta = "yes" }
header = { X-Version = "2" }
headers = { X-Site = "new" }
[[site.route]]
path = "/app/{path...}"
root = "old"
[[site.route]]
path = "/app/{path...}"
redirect = "https://mobile.example/{path}"
query = { mobile = "*" }
[[site.route]]
path = "/app/{path...}"
respond = 200
body = "inside"
from = "10.0.0.0/8"
deny = "10.0.0.66"
[[site.route]]
path = "/one"
methods = ["GET"]
respond = 204
[[site.route]]
path = "/one"
methods = ["GET"]
respond = 410
header = { X-Old = "*" }
`, map[string]string{"www/x": "", "new/f": "new", "old/f": "old"})
	const beta, two = "Cookie: a=b; beta=yes", "X-Version: 2"
	for _, tt := range []struct {
		method, target string
		fields         []string
		status         int
		body, site     string
	}{
		{"GET", "/app/f", nil, 200, "old", "s"},
		{"GET", "/app/f", []string{beta, two}, 200, "new", "new"},
		{"GET", "/app/%66", []string{beta, two}, 200, "new", "new"},
		{"GET", "/app/f?mobile", []string{beta, two}, 200, "new", "new"}, // the first
		{"GET", "/app/f", []string{beta}, 200, "old", "s"},
		{"GET", "/app/f", []string{"Cookie: beta=yess", two}, 200, "old", "s"},
		{"GET", "/app/f", []string{beta, "X_Version: 2"}, 200, "old", "s"},
		{"GET", "/app/none", []string{beta, two}, 404, "", "new"},
		{"GET", "/app/..%2fnew/f", nil, 404, "", "s"},
		{"GET", "/app/f?a=b&mobile=", nil, 301, "", "s"},
		{"GET", "/app/f", []string{"X-Forwarded-For: 10.1.2.3"}, 200, "inside", "s"},
		{"GET", "/app/f", []string{"X-Forwarded-For: 10.0.0.66"}, 403, "", "s"}, // and not the next one
		{"GET", "/app/f", []string{"X-Forwarded-For: 10.1.2.3, 192.0.2.1"}, 200, "old", "s"},
		{"GET", "/app", nil, 307, "", "s"},
		{"GET", "/one", nil, 204, "", "s"},
		{"GET", "/one", []string{"X-Old: 1"}, 410, "", "s"},
		{"POST", "/one", []string{"X-Old: 1"}, 405, "", "s"},
	} {
		for range 2 {
			r := request(t, p.urls[0], tt.method, tt.target, tt.fields...)
			if r.status != tt.status || tt.body != "" && r.body != tt.body || r.header.Get("X-Site") != tt.site {
				t.Errorf("%+v: %d %q %v", tt, r.status, r.body, r.header)
			}
			if to := r.header.Get("Location"); r.status == 301 && to != "https://mobile.example/f" {
				t.Errorf("%+v: to %q", tt, to)
			}
		}
	}
}
