package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

const alikeFile = `
[errors]
"5xx" = "pages/5xx.html.tmpl"
421 = "pages/421.html"
[rate_limit]
limit = "1000000/s"
[[site]]
hosts = "*"
root = "www"
listing = true
immutable = true
not_found = "404.html"
headers = { X-Site = "s", Vary = "Origin", X-Gone = "" }
[[site.response_headers]]
status = ["4xx", 304]
set = { X-Refused = "1", Cache-Control = "no-cache" }
add = { X-Site = "added", RateLimit = "mine" }
[[site.response_headers]]
status = ["2xx"]
add = { Link = ["<a>", "<b>"], Vary = "X" }
remove = ["Last-Modified"]
[site.errors]
403 = "pages/403.html.tmpl"
[[site.rules]]
match = "*.txt"
headers = { X-Rule = "r", Link = "<rule>" }
[[site.route]]
path = "/denied/{p...}"
root = "www"
deny = "all"
[[site.route]]
path = "/own"
respond = 503
body = "maintenance"
headers = { Retry-After = "9" }
[[site.route]]
path = "/bare"
respond = 503
[[site.route]]
path = "/nothing"
respond = 204
[[site.route]]
path = "/moved/{p...}"
redirect = "/f/{p}"
[[site.route]]
path = "/post"
methods = ["POST"]
respond = 200
body = "posted"
[[site.route]]
path = "/choice"
respond = 200
body = "new"
cookie = { beta = "*" }
query = { v = "a b" }
header = { X-Version = "2" }
headers = { X-Site = "new" }
[[site.route]]
path = "/choice"
respond = 404
[[site.route]]
path = "/limited"
respond = 200
[site.route.limits]
concurrent = 100
rate = "100000/s"
body = "1kB"
[[site.route]]
path = "/pages/{p...}"
root = "www"
[site.route.errors]
404 = "pages/route.html"
405 = "pages/5xx.html.tmpl"
`

// What takes the fast path and what takes the ordinary one, as paths with a percent sign do,
// are answered alike, byte for byte.
func TestPathsAlike(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, alikeFile, map[string]string{
		"www/f.txt": "of www", "www/big.css": strings.Repeat("body { color: red }\n", 2000), "www/404.html": "<p>not_found", "www/dir/x": "x",
		"www/empty": "", "www/app-5f3a9c2b.js": "js", "www/large.bin": strings.Repeat("0123456789", 10_000),
		"pages/5xx.html.tmpl": "<p>{status} {text}", "pages/421.html": "<p>421", "pages/403.html.tmpl": "<p>{status} {text}", "pages/route.html": "<p>route 404",
	})
	varies := regexp.MustCompile(`(?m)^(Date: |Ratelimit: "address").*\r\n`)
	ask := func(method, target string, fields []string) string {
		c := dial(t, p.urls[0])
		defer c.Close()
		fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", method, target, strings.Join(append(fields, ""), "\r\n"))
		b, err := io.ReadAll(c)
		if err != nil {
			t.Fatal(err)
		}
		return varies.ReplaceAllString(string(b), "")
	}
	for _, target := range []string{"/f.txt", "/big.css", "/none", "/dir", "/dir/", "/empty", "/app-5f3a9c2b.js", "/large.bin", "/denied/f.txt", "/own", "/bare",
		"/nothing", "/moved/x", "/post", "/choice", "/choice?v=a+b", "/choice?v=a%20b&v=c", "/choice?v=%zz&v=a+b", "/choice?a;v=a+b", "/limited", "/pages/none", "/pages/f.txt"} {
		slash := strings.IndexByte(target, '/')
		other := fmt.Sprintf("/%%%02x%s", target[slash+1], target[slash+2:])
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS", "DELETE"} {
			for _, fields := range [][]string{nil, {"Accept-Encoding: gzip"}, {"If-None-Match: *"}, {"Range: bytes=1-2"}, {"Range: bytes=999999-"},
				{"If-Modified-Since: Fri, 17 May 2099 10:20:30 GMT"}, {"If-Match: \"x\""}, {"Accept: text/html"},
				{"Cookie: beta=1", "X-Version: 2"}, {"Cookie: a=b;beta=", "X-Version: 1", "X-Version: 2"}, {"Cookie: a=b", "Cookie: c; beta=\"1\"", "x-version:2 "},
				{"Cookie: beta", "X-Version: 2"}, {"Cookie: Beta=1", "X_Version: 2"}} {
				for range 2 { // the second time what was cached
					both := func() (want, got string) {
						want, got = ask(method, other, fields), ask(method, target, fields)
						return strings.ReplaceAll(want, other[1:], target[1:]), got // in Location
					}
					want, got := both()
					if got != want { // the tag of a new file changes once: when it has settled
						want, got = both()
					}
					if got != want {
						t.Errorf("%s %s %q:\nfast:\n%s\nordinary:\n%s", method, target, fields, head(got), head(want))
					}
				}
			}
		}
	}
}

func head(response string) string {
	h, body, _ := strings.Cut(response, "\r\n\r\n")
	return fmt.Sprintf("%s\n%d bytes %.60q", h, len(body), body)
}
