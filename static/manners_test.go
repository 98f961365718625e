package static

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestOptionErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.WriteFile(dir+"/file", nil, 0o666)
	os.Mkdir(dir+"/folder", 0o777)
	for _, tt := range []struct {
		dir  string
		o    *Options
		want string // in the error; "" for none
	}{
		{dir, nil, ""},
		{dir, &Options{SPA: "file", NotFound: "/file"}, ""},
		{dir + "/file", nil, "is not a folder"},
		{dir + "/nope", nil, "no such file"},
		{dir, &Options{SPA: "index.html"}, `SPA: there is no file "index.html"`},
		{dir, &Options{SPA: "folder"}, `SPA: "folder" is not a file`},
		{dir, &Options{SPA: "/"}, `SPA: there is no file "/"`},
		{dir, &Options{NotFound: "../../../etc/passwd"}, "NotFound: there is no file"},
		{dir, &Options{NotFound: "404.html"}, "NotFound: there is no file"},
		{dir, &Options{Index: []string{"a/b"}}, `Index: "a/b" is not a file name`},
		{dir, &Options{Index: []string{""}}, `Index: "" is not a file name`},
		{dir, &Options{Index: []string{".index"}}, "is a dotfile"},
		{dir, &Options{Index: []string{".index"}, Dotfiles: true}, ""},
		{dir, &Options{Rules: []Rule{{Match: "[a"}}}, `"[a" is not a valid pattern`},
		{dir, &Options{Rules: []Rule{{Match: ""}}}, "is not a valid pattern"},
		{dir, &Options{Rules: []Rule{{"*", map[string]string{"content-length": "1"}}}}, `the field "content-length" cannot be set`},
		{dir, &Options{Rules: []Rule{{"*", map[string]string{"a b": "1"}}}}, `the field "a b" cannot be set`},
		{dir, &Options{Rules: []Rule{{"*", map[string]string{"A": "1\r\nB: 2"}}}}, "control character"},
		{dir, &Options{Rules: []Rule{{"*", map[string]string{"content-type": ""}}}}, "cannot be removed"},
		{dir, &Options{Rules: []Rule{{"**/*.{js,css}", map[string]string{"Cache-Control": "no-cache"}}}}, ""},
	} {
		h, err := New(tt.dir, tt.o)
		switch {
		case err == nil:
			h.Close()
			if tt.want != "" {
				t.Errorf("%+v: no error, want %q", tt.o, tt.want)
			}
		case tt.want == "" || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{
		"index.html": "i", "assets/app.3f9ac21b.js": text(1000), "assets/deep/x.css": "x", "plain.txt": "p", "no.tag": "n", "vary.txt": "v", "assets/large.bin": noise(big),
	}, &Options{Immutable: true, Listing: true, Rules: []Rule{
		{"**", map[string]string{"X-All": "1", "X-Frame-Options": "DENY"}},
		{"assets/**", map[string]string{"Cache-Control": "max-age=60", "content-language": "en"}},
		{"*.css", map[string]string{"X-All": "", "Cache-Control": "no-cache"}},
		{"no.tag", map[string]string{"ETag": "", "Last-Modified": "", "Content-Type": "text/x-own"}},
		{"vary.txt", map[string]string{"Vary": "Origin"}},
	}})
	for _, tt := range []struct{ target, field, want string }{
		{"/", "X-All", "1"}, {"/index.html", "X-Frame-Options", "DENY"}, {"/index.html", "Cache-Control", ""},
		{"/assets/app.3f9ac21b.js", "Cache-Control", "max-age=60"}, {"/assets/app.3f9ac21b.js", "Content-Language", "en"},
		{"/assets/deep/x.css", "Cache-Control", "no-cache"}, {"/assets/deep/x.css", "X-All", ""}, {"/assets/deep/x.css", "X-Frame-Options", "DENY"},
		{"/assets/large.bin", "Cache-Control", "max-age=60"},
		{"/plain.txt", "Content-Language", ""}, {"/no.tag", "Etag", ""}, {"/no.tag", "Last-Modified", ""}, {"/no.tag", "Content-Type", "text/x-own"},
		{"/vary.txt", "Vary", "Origin, Accept-Encoding"},
		// Redirects, listings and errors: nothing of content, errors are not kept.
		{"/assets", "X-All", "1"}, {"/assets", "Location", "assets/"}, {"/assets/", "X-All", "1"}, {"/assets/", "Content-Language", ""},
		{"/assets/nope.js", "X-Frame-Options", "DENY"}, {"/assets/nope.js", "Cache-Control", ""}, {"/assets/nope.js", "Content-Language", ""},
		{"/nope.css", "X-All", ""},
	} {
		r, _ := s.ask("GET", tt.target)
		if got := r.head.Get(tt.field); got != tt.want {
			t.Errorf("%s: %s is %q, want %q", tt.target, tt.field, got, tt.want)
		}
	}
	for _, tt := range []struct {
		line   string
		status int
		cached string
	}{
		{"If-None-Match: *", 304, "max-age=60"}, {"If-Match: \"x\"", 412, ""}, {"Range: bytes=5-6", 206, "max-age=60"}, {"Range: bytes=5000-", 416, ""},
	} {
		r, _ := s.ask("GET", "/assets/app.3f9ac21b.js", tt.line)
		if r.status != tt.status || r.head.Get("X-All") != "1" || r.head.Get("Cache-Control") != tt.cached {
			t.Errorf("%s: %v", tt.line, r)
		}
	}
	// Without a tag and a time there are no conditions.
	if got := s.status("/no.tag", "If-Modified-Since: "+time.Now().UTC().Format(http.TimeFormat)); got != 200 {
		t.Errorf("got %d", got)
	}
}

func TestHasHash(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"app.3f9ac21b.js": true, "index-B7xK2a9Q.css": true, "chunk-5QYLBJ3C.js": true, "app.3f9ac21b.js.map": true, "app.3f9ac21b.chunk.js": true,
		"main.1a2b3c4d5e6f7a8b9c0d.css": true, "logo-D_x9-aQ1.svg": true, "vendor_3f9ac21b4d.js": true, "0123456789abcdef0123456789abcdef-img.png": false,
		"app.js": false, "photo-20240517.jpg": false, "IMG_20240517.jpg": false, "report-version2.pdf": false, "jquery-3.7.1.min.js": false, "deadbeef.js": false,
		"app-deadbeef.js": false, "3f9ac21b": false, "DSC00012.jpg": false, "photo-DSC00012.jpg": false, "readme": false, "": false, ".js": false, "a.b.c.d.e": false,
		"background-image.png": false, "chapter-12345678.html": false, "font-awesome.woff2": false, "3f9ac21b.js": false,
	} {
		if hasHash(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

func TestImmutable(t *testing.T) {
	t.Parallel()
	files := map[string]string{"app.3f9ac21b.js": text(2000), "app.js": text(2000)}
	s := newSite(t, files, &Options{Immutable: true})
	for _, lines := range [][]string{nil, {"Accept-Encoding: br"}, {"If-None-Match: *"}, {"Range: bytes=0-1"}} {
		if r, _ := s.ask("GET", "/app.3f9ac21b.js", lines...); r.head.Get("Cache-Control") != immutable {
			t.Errorf("%q: %v", lines, r)
		}
		if r, _ := s.ask("GET", "/app.js", lines...); r.head.Get("Cache-Control") != "" {
			t.Errorf("%q: %v", lines, r)
		}
	}
}

func TestSPA(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"app.html": text(1000), "a.js": "a", "empty/": "", "404.html": "own"}, &Options{SPA: "/app.html", NotFound: "404.html"})
	html := "Accept: text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct {
		method, target, accept string
		status                 int
		vary                   string
	}{
		{"GET", "/route/of/app", html, 200, "Accept-Encoding, Accept"},
		{"GET", "/route/", html, 200, "Accept-Encoding, Accept"},
		{"GET", "/route/v1.2", html, 200, "Accept-Encoding, Accept"},
		{"GET", "/empty/", html, 200, "Accept-Encoding, Accept"},
		{"GET", "/", html, 200, "Accept-Encoding, Accept"},
		{"HEAD", "/route", html, 200, "Accept-Encoding, Accept"},
		{"GET", "/route", "", 200, "Accept-Encoding, Accept"},
		{"GET", "/route", "Accept: */*", 200, "Accept-Encoding, Accept"},
		{"GET", "/lost.js", "Accept: */*", 404, "Accept"},
		{"GET", "/lost.js", "", 404, "Accept"},
		{"GET", "/api/x", "Accept: application/json", 404, "Accept"},
		{"GET", "/lost", "Accept: image/avif,image/*", 404, "Accept"},
		{"POST", "/route", html, 405, "Accept"},
		{"GET", "/app.html", html, 200, "Accept-Encoding"},
		{"GET", "/a.js", html, 200, "Accept-Encoding"},
	} {
		var lines []string
		if tt.accept != "" {
			lines = []string{tt.accept}
		}
		r, _ := s.ask(tt.method, tt.target, lines...)
		if r.status != tt.status || r.head.Get("Vary") != tt.vary || r.status == 404 && r.body != "own" {
			t.Errorf("%s %s %q: %v", tt.method, tt.target, lines, r)
		}
	}
	r, _ := s.ask("GET", "/route", html)
	if u, _ := s.ask("GET", "/other", html, "If-None-Match: "+r.head.Get("Etag")); u.status != 304 {
		t.Errorf("got %v", u)
	}
	if u, _ := s.ask("GET", "/other", html, "Accept-Encoding: br"); decoded(t, u) != text(1000) || u.head.Get("Content-Encoding") != "br" {
		t.Errorf("got %v", u)
	}
}

func TestNotFound(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, big} {
		s := newSite(t, map[string]string{".404.html": text(size)}, &Options{NotFound: ".404.html"})
		r, _ := s.ask("GET", "/nope", "Range: bytes=0-1", "If-None-Match: *")
		if r.status != 404 || r.body != text(size) || r.head.Get("Content-Type") != "text/html; charset=utf-8" || r.head.Get("Etag") != "" ||
			r.head.Get("Content-Length") != fmt.Sprint(size) || r.head.Get("Last-Modified") != "" {
			t.Errorf("got %v", r)
		}
		if r, _ := s.ask("HEAD", "/nope"); r.status != 404 || r.head.Get("Content-Length") != fmt.Sprint(size) {
			t.Errorf("got %v", r)
		}
		// It is hidden all the same.
		if r, _ := s.ask("GET", "/.404.html"); r.status != 404 {
			t.Errorf("got %v", r)
		}
		s.write(".404.html", "new")
		s.later()
		if r, _ := s.ask("GET", "/nope"); r.status != 404 || r.body != "new" {
			t.Errorf("got %v", r)
		}
		s.remove(".404.html")
		s.later()
		if r, _ := s.ask("GET", "/nope"); r.status != 404 || r.body != "404 page not found\n" {
			t.Errorf("got %v", r)
		}
	}
}

func TestIndexes(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a/index.html": "ah", "a/index.htm": "am", "b/index.htm": "bm", "c/x": "", "d/index.html/x": ""}
	s := newSite(t, files, &Options{Index: []string{"index.html", "index.htm"}})
	for target, want := range map[string]string{"/a/": "ah", "/b/": "bm"} {
		if got := s.get(target); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
	if s.status("/c/") != 404 || s.status("/d/") != 404 {
		t.Error("something for nothing")
	}
	s = newSite(t, files, &Options{Index: []string{}})
	if s.status("/a/") != 404 {
		t.Error("an index that nobody wants")
	}
}

func TestDotfiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, pages, &Options{Dotfiles: true, Listing: true})
	if s.get("/.git/config") != "secret" || s.get("/docs/.x") != "secret" {
		t.Error("hidden")
	}
	s = newSite(t, map[string]string{".well-known/x": "x", ".well-known/.y": "y", "a/.well-known/z": "z", ".well-knownnot/x": "x", "b.txt": "b"}, &Options{Listing: true})
	for target, want := range map[string]int{
		"/.well-known/x": 200, "/.well-known/": 200, "/.well-known": 301, "/.well-known/.y": 404, "/a/.well-known/z": 404, "/.well-knownnot/x": 404,
	} {
		if got := s.status(target); got != want {
			t.Errorf("%s: %d", target, got)
		}
	}
	if list := s.get("/"); strings.Contains(list, ".well-known") || !strings.Contains(list, "b.txt") {
		t.Errorf("listed: %s", list)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"docs/b.txt": "bb", "docs/a.txt": "a", "docs/sub/x": "", "docs/.hidden": "", "with/index.html": "index"}, &Options{Listing: true})
	r, direct := s.ask("GET", "/docs/")
	if r.status != 200 || !direct || r.head.Get("Content-Type") != "text/html; charset=utf-8" || r.head.Get("Cache-Control") != "no-cache" ||
		!strings.Contains(r.head.Get("Content-Security-Policy"), "default-src 'none'") || r.head.Get("Vary") != "Accept, Accept-Encoding" || strings.Contains(r.body, "/.hidden") {
		t.Errorf("got %v", r)
	}
	if u, _ := s.ask("GET", "/docs/", "If-None-Match: "+r.head.Get("Etag")); u.status != 304 {
		t.Errorf("got %v", u)
	}
	if r, _ := s.ask("GET", "/with/"); r.body != "index" {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("GET", "/docs"); r.status != 301 || r.head.Get("Location") != "docs/" {
		t.Errorf("got %v", r)
	}
	names := func(target string, lines ...string) string {
		r, _ := s.ask("GET", target, lines...)
		var list struct {
			Entries []struct{ Name string }
		}
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.head.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v: %v", target, err, r)
		}
		var out []string
		for _, e := range list.Entries {
			out = append(out, e.Name)
		}
		return strings.Join(out, " ")
	}
	for _, tt := range []struct{ target, accept, want string }{
		{"/docs/?format=json", "", "sub a.txt b.txt"},
		{"/docs/", "Accept: application/json", "sub a.txt b.txt"},
		{"/docs/?format=json&sort=name&order=desc", "", "sub b.txt a.txt"},
		{"/docs/?format=json&sort=size&order=desc", "", "sub b.txt a.txt"},
		{"/docs/?format=json&sort=size", "", "sub a.txt b.txt"},
	} {
		if got := names(tt.target, tt.accept); got != tt.want {
			t.Errorf("%s: %s", tt.target, got)
		}
	}
	if r, _ := s.ask("GET", "/docs/?format=html", "Accept: application/json"); !strings.HasPrefix(r.body, "<!DOCTYPE") {
		t.Errorf("got %v", r)
	}
	// A moment later it is new.
	s.write("docs/c.txt", "c")
	s.later()
	if got := names("/docs/?format=json"); got != "sub a.txt b.txt c.txt" {
		t.Errorf("got %s", got)
	}
}

// Every name that the system has is served under its URL, and listed.
func TestOddNames(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("names that only Linux has")
	}
	odd := []string{
		"a b", "a%20b", "%", "100%.txt", "q?x=1", "hash#x", "amp&lt;", "<b>", `"quoted"`, "it's", "new\nline", "tab\t", "back\\slash", "co:lon", "semi;colon",
		"\xff\xfe", "a\x80b", "\u202etxt.exe", "日本語", "e\u0301", "~tilde", "plus+", "..x", "x..", "-dash", " lead", "trail ", "\x01", "\x7f", "a,b", "[x]", "{x}", "|", "$x", "*",
	}
	files := map[string]string{}
	for _, n := range odd {
		files["odd/"+n] = n
	}
	s := newSite(t, files, &Options{Listing: true, Dotfiles: true, NoCompression: true})
	for _, n := range odd {
		if got := s.get("/odd/" + url.PathEscape(n)); got != n {
			t.Errorf("%q: %q", n, got)
		}
	}
	var list struct {
		Entries []struct{ URL string }
	}
	if err := json.Unmarshal([]byte(s.get("/odd/?format=json")), &list); err != nil || len(list.Entries) != len(odd) {
		t.Fatalf("%v, %d of %d", err, len(list.Entries), len(odd))
	}
	for _, e := range list.Entries {
		u, err := url.Parse("http://example.com/odd/")
		if err == nil {
			u, err = u.Parse(e.URL)
		}
		if err != nil {
			t.Errorf("%q: %v", e.URL, err)
			continue
		}
		s.get(u.EscapedPath())
	}
	// As folders, with redirects that lead to where they should.
	for _, n := range odd {
		os.Remove(s.path("odd/" + n))
		s.write("odd/"+n+"/index.html", "in "+n)
	}
	s.later()
	for _, n := range odd {
		at := "/odd/" + url.PathEscape(n)
		r, _ := s.ask("GET", at)
		base, _ := url.Parse("http://example.com" + at)
		to, err := base.Parse(r.head.Get("Location"))
		if r.status != 301 || err != nil || to.Host != "example.com" {
			t.Errorf("%q: %v, %v", n, r, err)
			continue
		}
		if got := s.get(to.EscapedPath()); got != "in "+n {
			t.Errorf("%q: %q", n, got)
		}
	}
}

// The redirect never leads to another host, and behind http.StripPrefix it is
// right as well.
func TestRedirects(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"evil.example/index.html": "x", "docs/index.html": "d", "a.txt": "a"}, nil)
	for _, target := range []string{
		"//evil.example", "///evil.example", "/\\evil.example", "/%5cevil.example", "/%2fevil.example", "//evil.example/%2e%2e/evil.example", "/./evil.example",
		"/docs/..//evil.example", "//a.txt/", "/evil.example/../a.txt/",
	} {
		r, _ := s.ask("GET", target)
		to := r.head.Get("Location")
		if strings.HasPrefix(to, "/") || strings.HasPrefix(to, "\\") || strings.Contains(to, "//") || strings.Contains(strings.TrimPrefix(to, "./"), ":") {
			t.Errorf("%s: %q", target, to)
		}
	}
	h := http.StripPrefix("/files", s.Handler)
	for target, want := range map[string]string{"/files/docs": "docs/", "/files": "files/", "/files/a.txt/": "../a.txt"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != 301 || w.Header().Get("Location") != want {
			t.Errorf("%s: %d %q", target, w.Code, w.Header().Get("Location"))
		}
	}
	for target, want := range map[string]int{"/files/": 404, "/files/docs/": 200, "/filesdocs/": 200} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if w.Code != want {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}
