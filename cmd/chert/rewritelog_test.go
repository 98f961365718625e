package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A line of the log has the path that the client has sent, and that alone, after rewrite and
// try too: on the fast path, which files in the cache take, and on the ordinary one.
func TestLogAfterRewrite(t *testing.T) {
	t.Parallel()
	p, file := startConfig(t, `
log = { format = "json", file = "access.log", fields = ["method", "path", "query", "status"] }
[[site]]
hosts = "*"
root = "www"
clean_urls = true
[[site.rewrite]]
from = "^/old/([0-9]+)$"
to = "/new/{1}"
[[site.rewrite]]
from = "^/gone/"
to = "/secret.html?a=secret"
[[site.rewrite]]
from = "^/private/"
to = "/guarded/f"
[[site.route]]
path = "/alias/{path...}"
root = "www/new"
[[site.route.rewrite]]
from = "^/([a-z])/(.*)$"
to = "/{2}?{query}&from={1}"
[[site.route]]
path = "/guarded/{path...}"
root = "www/new"
deny = "all"
[[site.route]]
path = "/api/{path...}"
root = "www/new"
[site.route.log]
format = "common"
file = "route.log"
[[site.route.rewrite]]
from = "^/v1/"
to = "/7.html"
`, map[string]string{"www/new/7.html": "seven", "www/secret.html": "x", "www/guarded/f": "x"})
	seen := make(map[string]int) // lines, by log
	for _, tt := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"GET", "/old/7?q=1", 200, "seven"},
		{"HEAD", "/old/7", 200, ""},
		{"GET", "/%6fld/7?q=1", 200, "seven"}, // never on the fast path
		{"GET", "/gone/x?q=1", 200, "x"},
		{"GET", "/private/f", 404, ""},
		{"GET", "/new/7", 200, "seven"}, // by try
		{"GET", "/alias/a/7?q=1", 200, "seven"},
		{"GET", "/alias/a/none", 404, ""},
		{"GET", "/api/v1/x", 200, "seven"},
		{"POST", "/old/7", 405, ""},
	} {
		for range 3 { // the first loads the file
			r := request(t, p.urls[0], tt.method, tt.target)
			if r.status != tt.status || tt.body != "" && r.body != tt.body {
				t.Errorf("%s %s: %d %q", tt.method, tt.target, r.status, r.body)
			}
		}
		name := "access.log"
		path, query, _ := strings.Cut(tt.target, "?")
		own := strings.HasPrefix(path, "/api/")
		if own {
			name = "route.log"
		}
		log := filepath.Join(filepath.Dir(file), name)
		until(t, func() bool { return len(linesOf(t, log)) == seen[name]+3 })
		lines := linesOf(t, log)[seen[name]:]
		seen[name] += 3
		for _, line := range lines {
			want := `"path":"` + path + `"`
			if own {
				want = `"` + tt.method + " " + path + " HTTP/1.1\" "
			}
			if !strings.Contains(line, want) || strings.Contains(line, "secret") || strings.Contains(line, "from=") ||
				strings.Contains(line, `"query"`) != (query != "") || query != "" && !strings.Contains(line, `"query":"`+query+`"`) {
				t.Errorf("%s %s: %s", tt.method, tt.target, line)
			}
		}
	}
}
