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
)

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
