package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/static"
)

// request sends a request with target unchanged; fields are whole lines.
func request(t *testing.T, base, method, target string, fields ...string) reply {
	t.Helper()
	c := dial(t, base)
	defer c.Close()
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n", method, target)
	for _, f := range fields {
		fmt.Fprintf(c, "%s\r\n", f)
	}
	fmt.Fprint(c, "\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %q: %v", method, target, err)
	}
	return reply{res.StatusCode, string(body), res.Header}
}

const routesFile = `
[[site]]
hosts = "*"
root = "www"
headers = { X-Site = "s" }
[[site.route]]
path = "/{$}"
respond = 200
body = "front"
[[site.route]]
path = "/healthz"
respond = 200
body = "ok\n"
methods = ["GET"]
headers = { Cache-Control = "no-store", X-Site = "r" }
[[site.route]]
path = "/img/{path...}"
root = "pictures"
listing = true
[[site.route]]
path = "/img/own/{path...}"
root = "own"
spa = "app.html"
[[site.route]]
path = "/old/{name}"
redirect = "/new/{name}?from={name}"
[[site.route]]
path = "/moved/{rest...}"
redirect = "https://cdn.example/x/{rest}"
status = 308
[[site.route]]
path = "/to/{rest...}"
redirect = "/{rest}"
status = 302
[[site.route]]
path = "/all/{rest...}"
redirect = "https://{host}:8443{uri}"
status = 307
[[site.route]]
path = "/down/{rest...}"
respond = 503
file = "maintenance.html"
headers = { Retry-After = "60", X-Site = "" }
[[site.route]]
path = "/gone"
respond = 410
[[site.route]]
path = "/u/{user}/files/{path...}"
methods = ["GET"]
root = "pictures"
`

var routesFiles = map[string]string{
	"www/f.txt": "of www", "www/index.html": "index of www", "www/img/f.txt": "HIDDEN", "www/healthz": "posted", "www/a b.txt": "spaced",
	"pictures/f.txt": "picture", "pictures/sub/g.txt": "below", "pictures/own/f.txt": "HIDDEN",
	"own/app.html": "app", "own/index.html": "own index", "maintenance.html": "<p>later", "secret": "SECRET",
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, routesFile, routesFiles)
	for _, tt := range []struct {
		method, target string
		status         int
		body           string // contained
		fields         string // "Name: value" in lines; "-Name" is missing
	}{
		{"GET", "/", 200, "front", "Content-Type: text/plain; charset=utf-8\nContent-Length: 5\nX-Site: s"},
		{"HEAD", "/", 200, "", "Content-Length: 5"},
		{"POST", "/", 200, "front", ""}, // a route without methods is for all
		{"GET", "/f.txt", 200, "of www", "X-Site: s"},
		{"GET", "/a%20b.txt", 200, "spaced", "X-Site: s"},
		{"GET", "/none", 404, "", "X-Site: s"},
		{"GET", "/healthz", 200, "ok\n", "Cache-Control: no-store\nX-Site: r"},
		{"HEAD", "/healthz", 200, "", "Content-Length: 3\nX-Site: r"},
		{"GET", "/%68ealthz?x", 200, "ok\n", "X-Site: r"},
		{"POST", "/healthz", 405, "", "X-Site: s\nAllow: GET, HEAD, OPTIONS"}, // root's
		{"OPTIONS", "/healthz", 204, "", "X-Site: s\nAllow: GET, HEAD, OPTIONS"},
		{"GET", "/img/f.txt", 200, "picture", "X-Site: s"},
		{"HEAD", "/img/f.txt", 200, "", "Content-Length: 7"},
		{"GET", "/img/f%2etxt", 200, "picture", ""},
		{"GET", "/img/sub", 301, "", "Location: sub/"}, // relative to the outer path
		{"GET", "/img/sub?q", 301, "", "Location: sub/?q"},
		{"GET", "/img", 307, "", "Location: /img/\nX-Site: s"},
		{"GET", "/img/", 200, "f.txt", ""}, // the listing
		{"GET", "/img/sub/g.txt", 200, "below", ""},
		{"GET", "/img/none", 404, "", "X-Site: s"},
		{"POST", "/img/f.txt", 405, "", "Allow: GET, HEAD, OPTIONS"},
		{"GET", "/img/own/", 200, "own index", ""},
		{"GET", "/img/own/f.txt", 404, "", ""},
		{"GET", "/old/a", 301, "", "Location: /new/a?from=a\nX-Site: s"},
		{"HEAD", "/old/a", 301, "", "Location: /new/a?from=a"},
		{"GET", "/old/a%2Fb%26c", 301, "", "Location: /new/a%2Fb%26c?from=a%2Fb%26c"},
		{"GET", "/old/a/b", 404, "", ""},
		{"GET", "/moved/a/b%20c/", 308, "", "Location: https://cdn.example/x/a/b%20c/"},
		{"GET", "/moved/", 308, "", "Location: https://cdn.example/x/"},
		{"GET", "/all/a?b=c", 307, "", "Location: https://a.example:8443/all/a?b=c"},
		{"GET", "/to/a?b", 302, "", "Location: /a"},
		{"GET", "/to/%2e%2e/x", 404, "", ""},
		{"GET", "/to/x%2f%2fy", 404, "", ""},
		{"GET", "/down/x/y", 503, "<p>later", "Content-Type: text/html; charset=utf-8\nRetry-After: 60\n-X-Site"},
		{"HEAD", "/down/", 503, "", "Content-Length: 8\n-X-Site"},
		{"GET", "/gone", 410, "", "Content-Length: 0\n-Content-Type"},
		{"GET", "/u/ann/files/sub/g.txt", 200, "below", "X-Site: s"},
		{"HEAD", "/u/a%2Fb/files/sub/g.txt", 200, "", "Content-Length: 5"},
		{"GET", "/u/ann/files/sub", 301, "", "Location: sub/"},
		{"GET", "/u/ann/files/..%2fsecret", 404, "", ""},
		{"PUT", "/u/ann/files/f.txt", 405, "", "Allow: GET, HEAD, OPTIONS"},
		{"GET", "/x/../img/f.txt", 307, "", "Location: /img/f.txt\nX-Site: s"},
	} {
		for range 2 { // the second may come from memory
			r := request(t, p.urls[0], tt.method, tt.target)
			if r.status != tt.status || !strings.Contains(r.body, tt.body) || tt.method == "HEAD" && r.body != "" {
				t.Errorf("%s %s: %d %q, want %d %q", tt.method, tt.target, r.status, r.body, tt.status, tt.body)
			}
			for f := range strings.SplitSeq(tt.fields, "\n") {
				name, value, _ := strings.Cut(f, ": ")
				if missing, ok := strings.CutPrefix(name, "-"); ok && r.header[missing] != nil || !ok && name != "" && !slices.Equal(r.header[name], []string{value}) {
					t.Errorf("%s %s: want %s, got %v", tt.method, tt.target, f, r.header)
				}
			}
		}
	}
}

// Without root there is 404, 405 and the answer to OPTIONS, with the site's fields.
func TestRoutesAlone(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, "[[site]]\nhosts = '*'\nheaders = { X-Site = 's' }\n[[site.route]]\npath = '/a'\nmethods = ['GET', 'PUT']\nrespond = 204\n", nil)
	for _, tt := range []struct {
		method, target string
		status         int
		allow          string
	}{
		{"GET", "/a", 204, ""}, {"PUT", "/a", 204, ""}, {"HEAD", "/a", 204, ""}, {"POST", "/a", 405, "GET, HEAD, OPTIONS, PUT"},
		{"OPTIONS", "/a", 204, "GET, HEAD, OPTIONS, PUT"}, {"GET", "/b", 404, ""}, {"GET", "/", 404, ""}, {"OPTIONS", "/b", 404, ""},
		{"GET", "//a", 307, ""}, {"GET", "/%61", 204, ""}, {"GET", "/%zz", 400, ""}, {"GET", "/a%00", 404, ""},
	} {
		r := request(t, p.urls[0], tt.method, tt.target)
		if r.status != tt.status || r.header.Get("Allow") != tt.allow || r.header.Get("X-Site") != "s" && tt.target != "/%zz" {
			t.Errorf("%s %s: %d %v", tt.method, tt.target, r.status, r.header)
		}
	}
}

// Whatever a client writes, it neither reaches a file past the route that guards it, nor
// is it sent to another host.
func TestRoutePathTricks(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, `
[[site]]
hosts = "*"
root = "www"
[[site.route]]
path = "/admin/{path...}"
root = "www/admin"
deny = "all"
[[site.route]]
path = "/img/{path...}"
root = "www/img"
[[site.route]]
path = "/to/{rest...}"
redirect = "/{rest}"
[[site.route]]
path = "/one/{name}"
redirect = "/{name}"
[[site.route]]
path = "/cdn/{rest...}"
redirect = "https://cdn.example/{rest}"
[[site.route]]
path = "/two/{a}/{b}"
redirect = "/{a}/{b}"
`, map[string]string{"www/admin/secret": "SECRET", "www/img/f": "picture", "www/f": "file", "secret": "SECRET"})
	var targets []string
	for _, before := range []string{"", "/.", "/x/..", "/%2e", "/x/%2e%2e", "/img/..", "/img/%2e%2e", "/x%2f..", "/img%2f..", "/x%5c..", `/x\..`, "/./.", "//", "/%2f", "/img/.%2e", "/..", "/%2e%2e"} {
		for _, name := range []string{"/admin/secret", "/admin%2fsecret", "/admin%2Fsecret", "/%61dmin/secret", "/admin//secret", "/admin/./secret", "/admin/%2e/secret", "%2fadmin%2fsecret", "%2fadmin/secret", "/admin%5csecret", `/admin\secret`, "/admin/secret%00", "/admin/x/../secret", "/admin/x%2f..%2fsecret", "/../secret", "/%2e%2e/secret", "%2f..%2fsecret", "/..%2f..%2fsecret"} {
			targets = append(targets, before+name)
		}
	}
	for _, route := range []string{"/to", "/one", "/cdn"} {
		for _, rest := range []string{"//evil.example", "/%2fevil.example", "/%2f/evil.example", "/%2f%2fevil.example", "/%5cevil.example", `/\evil.example`, `/%5c%5cevil.example`, "/evil.example", "/%09/evil.example", "/%0d%0aX-Evil:%201", "/%0aLocation:%20https:%2f%2fevil.example", "/.%2f/evil.example", "/%2e/%2fevil.example", "/..", "/%2e%2e", "/a/%2e%2e/%2e%2e/b", "/%2e%2e/%2e%2e//evil.example", "/https:%2f%2fevil.example", "/@evil.example", "/%40evil.example", "/:80", "/.evil.example", "/%00", "/{host}", "/%7bhost%7d", "/%3f@evil.example", "/%23", "/%25%32%66/evil.example"} {
			targets = append(targets, route+rest)
		}
	}
	targets = append(targets, "//evil.example/..", "//evil.example", `/\evil.example/`, "/%2f/evil.example", "///evil.example/", `//\evil.example/`, "http://evil.example//x/..", "http://a.example/admin%2fsecret", "http://a.example/%2e/admin/secret")
	// Its paths are not cleaned, so a wildcard may match nothing.
	if r := request(t, p.urls[0], "CONNECT", "/two//evil.example"); r.status != 404 {
		t.Errorf("CONNECT with an empty segment: %d, Location %q", r.status, r.header.Get("Location"))
	}
	for _, target := range targets {
		r := request(t, p.urls[0], "GET", target)
		if strings.Contains(r.body, "SECRET") || r.header["X-Evil"] != nil || r.status >= 500 {
			t.Errorf("%q: %d %v %q", target, r.status, r.header, r.body)
		}
		to := r.header.Get("Location")
		if r.status/100 != 3 || len(r.header["Location"]) != 1 {
			continue
		}
		base, _ := url.Parse("http://a.example/x")
		if strings.HasPrefix(target, "http://evil.example") {
			continue // its own host
		}
		// Browsers remove tabs and newlines, and take backslashes for slashes.
		seen, err := base.Parse(strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(to))
		host := "a.example"
		if strings.HasPrefix(target, "/cdn/") && r.status == 301 && strings.HasPrefix(to, "https:") {
			host = "cdn.example"
		}
		if err != nil || seen.Host != host || seen.User != nil {
			t.Errorf("%q leads to %q: %v %v", target, to, seen, err)
		}
	}
	if r := request(t, p.urls[0], "GET", "/admin/secret"); r.status != 403 {
		t.Errorf("%d", r.status)
	}
}

// Access comes before authentication, and that before the action; both are the site's
// unless a route has its own. Fields are on all responses.
func TestRoutePolicies(t *testing.T) {
	t.Parallel()
	hash, err := basicauth.Hash("secret")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := startConfig(t, `
trusted_proxies = ["127.0.0.1"]
[[site]]
hosts = "*"
root = "www"
allow = ["192.0.2.0/24", "2001:db8::/32"]
deny = "192.0.2.66"
headers = { X-Site = "s" }
[site.basic_auth]
realm = "inside"
users = { ann = "`+hash+`" }
[[site.route]]
path = "/health"
respond = 200
basic_auth = false
allow = "all"
deny = []
[[site.route]]
path = "/public/{path...}"
root = "www"
basic_auth = false
[[site.route]]
path = "/bob"
respond = 200
body = "hello bob"
[site.route.basic_auth]
htpasswd = "users"
[[site.route]]
path = "/go"
redirect = "/f"
[[site]]
hosts = "plain.example"
root = "www"
deny = ["192.0.2.66"]
`, map[string]string{"www/f": "file", "users": "bob:" + hash + "\n"})
	const ann, bob, wrong = "Authorization: Basic YW5uOnNlY3JldA==", "Authorization: Basic Ym9iOnNlY3JldA==", "Authorization: Basic YW5uOndyb25n"
	for _, tt := range []struct {
		method, target, from, auth string
		status                     int
	}{
		{"GET", "/f", "192.0.2.1", ann, 200},
		{"GET", "/f", "192.0.2.1", ann, 200}, // remembered
		{"HEAD", "/f", "192.0.2.1", ann, 200},
		{"GET", "/f", "2001:db8::7", ann, 200},
		{"GET", "/f", "192.0.2.1", wrong, 401},
		{"GET", "/f", "192.0.2.1", "X: y", 401},
		{"GET", "/none", "192.0.2.1", "X: y", 401}, // what there is is not shown
		{"GET", "/go", "192.0.2.1", "X: y", 401},
		{"GET", "/go", "192.0.2.1", ann, 301},
		{"GET", "/x/../f", "192.0.2.1", "X: y", 401},
		{"GET", "/f", "192.0.2.66", ann, 403},
		{"GET", "/f", "198.51.100.1", ann, 403},
		{"GET", "/f", "192.0.2.1, 198.51.100.1", ann, 403}, // the client has written the first
		{"GET", "/f", "", ann, 403},                        // the proxy itself
		{"GET", "/health", "198.51.100.1", "X: y", 200},
		{"GET", "/health", "192.0.2.66", "X: y", 200},
		{"GET", "/public/f", "192.0.2.1", "X: y", 200},
		{"GET", "/public/f", "198.51.100.1", "X: y", 403},
		{"GET", "/bob", "192.0.2.1", bob, 200},
		{"GET", "/bob", "192.0.2.1", ann, 401},
		{"GET", "/f", "192.0.2.1", bob, 401},
		{"GET", "/bob", "198.51.100.1", bob, 403},
	} {
		r := request(t, p.urls[0], tt.method, tt.target, "X-Forwarded-For: "+tt.from, tt.auth)
		if r.status != tt.status || r.header.Get("X-Site") != "s" {
			t.Errorf("%+v: %d %v", tt, r.status, r.header)
		}
		realm := `Basic realm="restricted", charset="UTF-8"`
		if tt.target != "/bob" {
			realm = `Basic realm="inside", charset="UTF-8"`
		}
		if got := r.header.Get("Www-Authenticate"); (got != "") != (tt.status == 401) || got != "" && got != realm {
			t.Errorf("%+v: %q", tt, got)
		}
	}
	c := newClient(t, "")
	for from, want := range map[string]int{"192.0.2.66": 403, "192.0.2.67": 200} {
		if r := send(t, c, p.urls[0], "f", "plain.example", http.Header{"X-Forwarded-For": {from}}); r.status != want {
			t.Errorf("a site without routes: %s: %d", from, r.status)
		}
	}
}

// Fields of a site without routes are on every response, and over those of rules.
func TestSiteHeaders(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, `
[[site]]
hosts = "*"
root = "www"
headers = { Cache-Control = "private", ETag = "", Vary = "Origin" }
[[site.rules]]
headers = { Cache-Control = "public", X-Rule = "1" }
`, map[string]string{"www/f.txt": strings.Repeat("text ", 1000), "www/sub/x": ""})
	for target, status := range map[string]int{"/f.txt": 200, "/none": 404, "/sub": 301, "/f.txt?x": 200} {
		for range 3 {
			r := request(t, p.urls[0], "GET", target, "Accept-Encoding: gzip")
			h := r.header
			if r.status != status || !slices.Equal(h["Cache-Control"], []string{"private"}) || h["Etag"] != nil || !slices.Contains(h["Vary"], "Origin") {
				t.Errorf("%s: %d %v", target, r.status, h)
			}
			if status == 200 && (h.Get("X-Rule") != "1" || h.Get("Content-Encoding") != "gzip" || !strings.Contains(strings.Join(h["Vary"], ","), "Accept-Encoding")) {
				t.Errorf("%s: %v", target, h)
			}
		}
	}
	if r := request(t, p.urls[0], "GET", "/f.txt", "Range: bytes=0-3"); r.status != 206 || r.body != "text" || r.header.Get("Cache-Control") != "private" {
		t.Errorf("%d %v", r.status, r.header)
	}
}

// Peers on unix sockets have no address.
func TestAccessOfSockets(t *testing.T) {
	t.Parallel()
	for allow, want := range map[string]int{"unix": 200, "all": 200, "127.0.0.1": 403, "0.0.0.0/0": 403} {
		sock := filepath.Join(shortDir(t), "s")
		file := filepath.Join(folder(t, map[string]string{"www/f": "x"}), "c.toml")
		write(t, file, "[[site]]\nhosts = '*'\nroot = 'www'\nallow = '"+allow+"'\n")
		start(t, "--config", file, "--listen", "unix:"+sock)
		if status, _ := get(t, newClient(t, sock), "http://localhost/f"); status != want {
			t.Errorf("%s: %d, want %d", allow, status, want)
		}
	}
}

// A reload replaces routes; no request is lost, and each gets what was there before or
// what is there now.
func TestReloadRoutes(t *testing.T) {
	needSignals(t)
	t.Parallel()
	text := func(body string) string {
		return "[[site]]\nhosts = '*'\n[[site.route]]\npath = '/f'\nrespond = 200\nbody = '" + body + "'\n"
	}
	p, file := startConfig(t, text("0"), nil)
	var stop atomic.Bool
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			keepAlive(t, p.urls[0], &stop, func(status int, body string) bool { return status == 200 && len(body) == 1 })
		})
	}
	for i := range 5 {
		write(t, file, text(fmt.Sprint(i+1)))
		p.reload()
		if r := request(t, p.urls[0], "GET", "/f"); r.body != fmt.Sprint(i+1) {
			t.Errorf("%d: %q", i, r.body)
		}
	}
	write(t, file, text("x")+"[[site.route]]\npath = '/f'\nrespond = 200\n")
	if said := p.refuse(); !strings.Contains(said, `:8:8: the path "/f" cannot be beside the one in line 4: both match the same requests`) {
		t.Error(said)
	}
	if r := request(t, p.urls[0], "GET", "/f"); r.body != "5" {
		t.Errorf("%q", r.body)
	}
	stop.Store(true)
	clients.Wait()
	p.signal(syscall.SIGTERM)
	p.waitFor(exitOK)
}

// What is served from memory and redirects without placeholders of the path stay on the
// fast path; the routes add no allocation to it.
func TestRoutesAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	dir := folder(t, map[string]string{"www/f": "file", "img/f": "picture"})
	cfg := loadConfig(t, dir, `
[[site]]
hosts = "*"
root = "www"
allow = ["192.0.2.0/24"]
headers = { X-Site = "s" }
[[site.route]]
path = "/img/{path...}"
root = "img"
[[site.route]]
path = "/health"
methods = ["GET"]
respond = 200
[[site.route]]
path = "/old"
redirect = "/new"
[[site]]
hosts = "alone.example"
root = "www"
`)
	all := openSites(t, cfg)
	var x direct.Exchange
	count := func(host, path string) float64 {
		req := wire.Request{Method: "GET", Target: []byte(path), Path: []byte(path), Host: []byte(host), RemoteAddr: "192.0.2.1:1234", Fields: wire.FieldsOf(nil)}
		for range 3 { // a file is loaded on the ordinary path
			serveTarget(all, host, &url.URL{Path: path}, path)
		}
		return testing.AllocsPerRun(100, func() {
			x.Wire().Reset(req)
			if !all.ServeDirect(&x) {
				t.Errorf("%s %s: not direct", host, path)
			}
			if a := x.Wire().Finish(); a.File.Done != nil {
				a.File.Done()
			}
		})
	}
	if h, _ := vhost.Find(&all.table, "alone.example"); reflect.TypeOf(h) != reflect.TypeFor[*static.Handler]() {
		t.Errorf("a site without routes has a %T", h)
	}
	today := count("alone.example", "/f")
	redirect := func() float64 { // as it is for whole hosts
		d := &redirect{target(t, "https://example.com/new", nil), 301}
		req := wire.Request{Method: "GET", Target: []byte("/old"), Path: []byte("/old")}
		return testing.AllocsPerRun(100, func() { x.Wire().Reset(req); d.ServeDirect(&x); x.Wire().Finish() })
	}()
	for path, most := range map[string]float64{"/f": today, "/img/f": today, "/health": 0, "/old": redirect} {
		if n := count("a.example", path); n > most {
			t.Errorf("%s: %v allocations, and %v without routes", path, n, most)
		}
	}
	t.Logf("%v for a file, %v for a redirect", today, redirect)
}

// loadConfig reads a configuration file in dir.
func loadConfig(t testing.TB, dir, text string) *config.Config {
	t.Helper()
	file := filepath.Join(dir, "c.toml")
	write(t, file, text)
	cfg, err := config.Load(file, configChecks)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A router finds what a list of rules of precedence finds, on both paths: of the patterns
// that match, the one that every other one covers.
func FuzzRoutes(f *testing.F) {
	patterns := []string{"/{$}", "/a", "/a/{x}", "/a/b", "/a/b/{rest...}", "/c/{rest...}", "/c/{x}/{y}", "/c/{x}/d", "/c/e/{$}", "/e/", "/e/f/{x}/g"}
	text := "[[site]]\nhosts = '*'\nroot = 'www'\n"
	for i, p := range patterns {
		text += fmt.Sprintf("[[site.route]]\npath = '%s'\nrespond = %d\n", p, 500+i)
	}
	dir := f.TempDir()
	write(f, filepath.Join(dir, "www", "file"), "x")
	all := openSites(f, loadConfig(f, dir, text))
	for _, s := range []string{"/", "/a", "/a/", "/a/b", "/a/x", "/a/b/b", "/a/b/c/d", "/c", "/c/", "/c/d", "/c/d/", "/c/d/e", "/c/x/y", "/x/e/", "/x/e", "/a%2Fb", "/%61", "/a/%2e%2e", "//a", "/a/../c/", "/c/%2F", "/file", "/a/%62/b", "/c/e", "/e", "/e/f/g/g", "/c/%2F/d", "/a//b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || target[0] != '/' || u.Scheme != "" || u.Host != "" {
			return
		}
		status, location := serveTarget(all, "a.example", u, target)
		raw := u.EscapedPath()
		clean := path.Clean(raw)
		if clean != "/" && strings.HasSuffix(raw, "/") {
			clean += "/"
		}
		want := linear(patterns, raw)
		switch {
		case status == http.StatusTemporaryRedirect:
			// To the clean path, or to a route's with a slash at its end.
			if raw == clean && linear(patterns, raw+"/") < 0 || strings.HasPrefix(location, "//") || strings.HasPrefix(location, `/\`) {
				t.Errorf("%q is redirected to %q", target, location)
			}
		case raw != clean:
			t.Errorf("%q is not clean, and has status %d", target, status)
		case want >= 0 && status != 500+want:
			t.Errorf("%q: %d, want %s", target, status, patterns[want])
		case want < 0 && status >= 500:
			t.Errorf("%q: %s, want the folder", target, patterns[status-500])
		}
	})
}

// No path that a client writes makes a redirect lead to another host, or adds a field.
func FuzzRedirects(f *testing.F) {
	dir := f.TempDir()
	text := "[[site]]\nhosts = '*'\n"
	for path, to := range map[string]string{"/to/{rest...}": "/{rest}", "/one/{x}": "/{x}", "/two/{x}/{y}": "/{x}{y}?q={x}#{y}", "/in/{rest...}": "/.{rest}",
		"/uri/{rest...}": "/x{uri}", "/cdn/{rest...}": "https://cdn.example/{rest}", "/host/{x}": "https://{host}/{x}"} {
		text += fmt.Sprintf("[[site.route]]\npath = '%s'\nredirect = '%s'\n", path, to)
	}
	all := openSites(f, loadConfig(f, dir, text))
	for _, s := range []string{"/to//evil", "/to/%2f/evil", "/to/%5c/evil", "/one/%2fevil", "/two/%2e/%2e", "/in/./evil", "/in//evil", "/uri//evil", "/cdn/@evil", "/host/%0d%0ax", "//evil/%2e%2e", "/to/%2e%2e//evil", "/two/%09/%2f"} {
		f.Add(s)
	}
	base := &url.URL{Scheme: "http", Host: "a.example", Path: "/x"}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		// No server passes on a request line with a space in its target.
		if err != nil || target[0] != '/' || u.Scheme != "" || u.Host != "" || strings.ContainsAny(target, " \x7f") {
			return
		}
		status, to := serveTarget(all, "a.example", u, target)
		if status/100 != 3 {
			return
		}
		for _, c := range []byte(to) {
			if c <= ' ' || c >= 0x7f || c == '\\' && status == http.StatusMovedPermanently { // 307 is the router's, and has the query as it is
				t.Fatalf("%q leads to %q", target, to)
			}
		}
		seen, err := base.Parse(to)
		if err != nil || seen.User != nil || seen.Host != "a.example" && !strings.HasPrefix(to, "https://cdn.example/") {
			t.Errorf("%q leads to %q: %v %v", target, to, seen, err)
		}
	})
}

// linear returns the number of the most specific pattern that matches a path, -1 if none
// does: at the first segment where two differ, text is before {x}, and that before the
// rest.
func linear(patterns []string, raw string) int {
	best, rank := -1, ""
	for i, p := range patterns {
		if r, ok := matches(p, raw); ok && (best < 0 || r < rank) {
			best, rank = i, r
		}
	}
	return best
}

func matches(pattern, raw string) (rank string, ok bool) {
	want, have := strings.Split(pattern[1:], "/"), strings.Split(raw[1:], "/")
	for i, w := range want {
		last := i == len(want)-1
		if last && (w == "" || strings.HasSuffix(w, "...}")) {
			return rank + "3", len(have) > i
		}
		if i >= len(have) {
			return "", false
		}
		segment, err := url.PathUnescape(have[i])
		switch {
		case err != nil:
			return "", false
		case w == "{$}":
			// A segment that is a slash is the end too, as in http.ServeMux.
			if len(have) != i+1 || segment != "" && segment != "/" {
				return "", false
			}
			rank += "1"
		case strings.HasPrefix(w, "{"):
			if have[i] == "" || segment == "/" {
				return "", false
			}
			rank += "2"
		default:
			if segment != w {
				return "", false
			}
			rank += "1"
		}
	}
	return rank, len(have) == len(want)
}

// openSites opens the sites of a configuration.
func openSites(t testing.TB, cfg *config.Config) *sites {
	t.Helper()
	all, err := buildSites(cfg, nil, limiter{store: ratelimit.NewMemory(nil)}, nil, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(all.close)
	return all
}

// serveTarget serves a GET of target as a server does: on the fast path, and on the
// ordinary one if the fast path declines.
func serveTarget(h direct.Handler, host string, u *url.URL, target string) (status int, location string) {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Target: []byte(target), Path: []byte(u.Path), RawQuery: []byte(u.RawQuery),
		Host: []byte(host), RemoteAddr: "192.0.2.1:1234", Fields: wire.FieldsOf(nil)})
	if h.ServeDirect(&x) {
		status, location = x.Wire().Status(), x.Wire().GetHeader("Location")
		x.Wire().Drop()
		return status, location
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, &http.Request{Method: "GET", URL: u, RequestURI: target, Host: host, RemoteAddr: "192.0.2.1:1234",
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody})
	return w.Code, w.Header().Get("Location")
}
