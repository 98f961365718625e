package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

const responsesFile = `
[rate_limit]
limit = "100000/s"
[errors]
"5xx" = "pages/5xx.txt"
421 = "pages/421.html"
404 = "pages/outer.html"
[[site]]
hosts = "a.example"
root = "www"
hidden = ["*.bak", "/private/**"]
types = { ".foo" = "application/x-foo" }
headers = { X-Site = "s" }
not_found = "404.html"
[[site.response_headers]]
status = ["4xx", 304]
set = { X-Refused = "1" }
[[site.response_headers]]
status = 200
add = { Link = ["<a>", "<b>"] }
[site.errors]
403 = "pages/403.html.tmpl"
405 = "pages/405.json.tmpl"
401 = "pages/403.html.tmpl"
[[site.route]]
path = "/denied/{p...}"
root = "www"
deny = "all"
[[site.route]]
path = "/password"
respond = 200
[site.route.basic_auth]
users = { ann = "$2a$04$r8kyErBM4qAZ4rbRWNmVmeqMTFn0Ghz0LYDzVwlvQ6gzyBbMU6KGO" }
[[site.route]]
path = "/own"
respond = 503
body = "maintenance"
headers = { Retry-After = "9" }
[[site.route]]
path = "/bare"
respond = 503
headers = { Retry-After = "9" }
[[site.route]]
path = "/as-it-is"
respond = 403
[site.route.errors]
403 = ""
[[site.route]]
path = "/r/{p...}"
root = "www"
[site.route.errors]
404 = "pages/route.html"
[[redirect]]
hosts = "b.example"
to = "https://a.example/"
headers = { X-Redirect = "1" }
`

var responsesFiles = map[string]string{
	"www/f.txt": "of www", "www/a.foo": "foo", "www/404.html": "<p>not_found", "www/x.bak": "BAK", "www/private/f": "PRIV", "www/private/index.html": "PRIV",
	"pages/5xx.txt": "outer 5xx", "pages/421.html": "<p>421", "pages/outer.html": "<p>outer 404", "pages/403.html.tmpl": "<p>{status} {text}",
	"pages/405.json.tmpl": `{"s":{status}}`, "pages/route.html": "<p>route 404",
}

func TestResponses(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, responsesFile, responsesFiles)
	for _, tt := range []struct {
		method, target string
		status         int
		body           string // whole
		fields         string // "Name: value" in lines; "-Name" is missing
	}{
		{"GET", "/f.txt", 200, "of www", "X-Site: s\n-X-Refused\nLink: <a>"},
		{"GET", "/a.foo", 200, "foo", "Content-Type: application/x-foo"},
		{"GET", "/none", 404, "<p>not_found", "X-Site: s\nX-Refused: 1\n-Link\nContent-Type: text/html; charset=utf-8"},
		{"GET", "/x.bak", 404, "<p>not_found", ""},
		{"GET", "/X.BAK", 404, "<p>not_found", ""},
		{"GET", "/private/f", 404, "<p>not_found", ""},
		{"GET", "/private/", 404, "<p>not_found", ""},
		{"GET", "/r/none", 404, "<p>route 404", "X-Refused: 1"},
		{"GET", "/r/x.bak", 404, "<p>route 404", ""},
		{"HEAD", "/r/none", 404, "", "Content-Length: 12"},
		{"GET", "/f%2ftxt", 404, "<p>outer 404", ""}, // no file can have such a path
		{"GET", "/denied/f.txt", 403, "<p>403 Forbidden", "Content-Length: 16\nX-Refused: 1"},
		{"HEAD", "/denied/f.txt", 403, "", "Content-Length: 16"},
		{"GET", "/password", 401, "<p>401 Unauthorized", "Www-Authenticate: Basic realm=\"restricted\", charset=\"UTF-8\"\nContent-Type: text/html; charset=utf-8"},
		{"POST", "/f.txt", 405, `{"s":405}`, "Allow: GET, HEAD, OPTIONS\nContent-Type: application/json"},
		{"GET", "/own", 503, "maintenance", "Retry-After: 9\nContent-Type: text/plain; charset=utf-8"},
		{"GET", "/bare", 503, "outer 5xx", "Retry-After: 9\nCache-Control: no-store"},
		{"GET", "/as-it-is", 403, "", ""},
		{"GET", "//f.txt", 307, "*", "-X-Refused"},
	} {
		for range 2 {
			r := request(t, p.urls[0], tt.method, tt.target, "If-None-Match: *", "Range: bytes=0-1", "If-Range: \"x\"")
			if tt.status == 200 {
				r = request(t, p.urls[0], tt.method, tt.target)
			}
			if r.status != tt.status || r.body != tt.body && tt.body != "*" {
				t.Errorf("%s %s: %d %q %v", tt.method, tt.target, r.status, r.body, r.header)
			}
			if tt.body != "" && tt.body != "*" && r.header.Get("Content-Length") != strconv.Itoa(len(tt.body)) {
				t.Errorf("%s %s: Content-Length %q", tt.method, tt.target, r.header.Get("Content-Length"))
			}
			for line := range strings.Lines(tt.fields) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				if missing, ok := strings.CutPrefix(name, "-"); ok {
					name = missing
				}
				if got := r.header.Get(name); got != value {
					t.Errorf("%s %s: %s is %q, want %q", tt.method, tt.target, name, got, value)
				}
			}
		}
	}
}

// A host without a site has the server's pages, and a redirect its fields.
func TestResponsesOfHosts(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, responsesFile, responsesFiles)
	for _, tt := range []struct {
		host   string
		status int
		body   string
		field  string
	}{{"none.example", 421, "<p>421", ""}, {"b.example", 301, "", "1"}} {
		c := dial(t, p.urls[0])
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", tt.host)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		c.Close()
		if err != nil || res.StatusCode != tt.status || string(body) != tt.body || res.Header.Get("X-Redirect") != tt.field {
			t.Errorf("%s: %d %v %q, %v", tt.host, res.StatusCode, res.Header, body, err)
		}
	}
}
