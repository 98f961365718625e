package static

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

var tryFiles = map[string]string{
	"index.html": "front", "about.html": "about", "docs/index.html": "docs", "docs/a.html": "docs a", "a": "file a", "a.html": "page a", "both.html": "both's page",
	"both/index.html": "both's folder", "empty/x": "x", "empty.html": "empty's page", "app/pre.js": text(5000), "app/pre.js.br": "br", ".env": "SECRET", ".env.html": "SECRET",
	"sub/.html": "SECRET", "big.html": noise(big), "100%.html": "percent", "a b.html": "space", "c:d.html": "colon", "index/index.html": "index folder", "x.html.html": "double",
}

func TestTry(t *testing.T) {
	t.Parallel()
	full := []string{"{path}", "{path}.html", "{path}/index.html", "/index.html"}
	nginx := []string{"{path}", "{path}.html", "{path}/", "=404"}
	for _, tt := range []struct {
		try    []string
		target string
		status int
		body   string
		to     string // Location
	}{
		{full, "/about.html", 200, "about", ""},
		{full, "/about", 200, "about", ""},
		{full, "/about?q", 200, "about", ""},
		{full, "/a", 200, "file a", ""}, // the first that exists
		{full, "/docs/a", 200, "docs a", ""},
		{full, "/docs", 200, "docs", ""},
		{full, "/docs/", 200, "docs", ""},
		{full, "/", 200, "front", ""},
		{full, "/none", 200, "front", ""},
		{full, "/none.js", 200, "front", ""}, // whatever the client accepts
		{full, "/about/", 200, "front", ""},
		{full, "/empty", 200, "empty's page", ""},
		{full, "/empty/", 200, "front", ""},
		{full, "/both", 200, "both's page", ""},
		{full, "/both/", 200, "both's folder", ""},
		{full, "/.env", 404, "", ""}, // what is hidden is not asked for by a page
		{full, "/sub/", 200, "front", ""},
		{full, "/x/../about", 200, "about", ""},
		{full, "//about", 200, "about", ""},
		{full, "/%61bout", 200, "about", ""},
		{full, "/about%00", 200, "front", ""},
		{full, "/" + strings.Repeat("long", 2000), 200, "front", ""},
		{nginx, "/about", 200, "about", ""},
		{nginx, "/docs", 301, "", "docs/"},
		{nginx, "/docs?q=1", 301, "", "docs/?q=1"},
		{nginx, "/docs/", 200, "docs", ""},
		{nginx, "/", 200, "front", ""},
		{nginx, "/none", 404, "", ""},
		{nginx, "/about/", 404, "", ""},
		{nginx, "/a/", 301, "", "../a"},
		{nginx, "/empty/", 404, "", ""},
		{nginx, "/big", 200, noise(big), ""},
		{[]string{"{path}", "=410"}, "/none", 410, "Gone\n", ""},
		{[]string{"{path}", "=410"}, "/a", 200, "file a", ""},
		{[]string{"{path}", "=410"}, "/docs/", 410, "Gone\n", ""},
		{[]string{"{path}"}, "/docs", 404, "", ""},
		{[]string{"/docs{path}", "{path}"}, "/a.html", 200, "docs a", ""},
		{[]string{"docs/{path}.html"}, "/a", 200, "docs a", ""},
		{[]string{"docs/{path}.html"}, "/about", 404, "", ""},
		{[]string{"/docs/"}, "/whatever", 200, "docs", ""},
		{[]string{"/about.html"}, "/", 200, "about", ""},
		{[]string{"{path}.html", "{path}"}, "/a", 200, "page a", ""},
	} {
		s := newSite(t, tryFiles, &Options{Try: tt.try})
		for range 2 {
			r, _ := s.ask("GET", tt.target)
			if r.status != tt.status || tt.body != "" && r.body != tt.body || r.head.Get("Location") != tt.to || strings.Contains(r.body, "SECRET") {
				t.Errorf("%q: %s: got %v, want %d %.20q %s", tt.try, tt.target, r, tt.status, tt.body, tt.to)
			}
		}
	}
}

// What is found is a file as any other: ranges, conditions, siblings, rules by its name.
func TestTriedFile(t *testing.T) {
	t.Parallel()
	s := newSite(t, tryFiles, &Options{Try: []string{"{path}", "/app{path}.js", "/index.html"}, NotFound: "a.html",
		Rules: []Rule{{"app/*.js", map[string]string{"X-Rule": "app"}}}})
	r, _ := s.ask("GET", "/pre")
	if r.body != text(5000) || r.head.Get("X-Rule") != "app" || !strings.HasPrefix(r.head.Get("Content-Type"), "text/javascript") {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("GET", "/pre", "Range: bytes=0-4"); r.status != 206 || r.body != text(5) {
		t.Errorf("got %v", r)
	}
	if r, direct := s.ask("GET", "/pre", "Accept-Encoding: br"); r.body != "br" || r.head.Get("Content-Encoding") != "br" || !direct {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("GET", "/pre", "If-None-Match: "+r.head.Get("Etag")); r.status != 304 {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("HEAD", "/pre"); r.status != 200 || r.head.Get("Content-Length") != "5000" {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("POST", "/pre"); r.status != 405 {
		t.Errorf("got %v", r)
	}
	// An earlier candidate that appears is found, and one that disappears is not.
	s.write("pre", "now")
	if r, _ := s.ask("GET", "/pre"); r.body != "now" {
		t.Errorf("got %v", r)
	}
	s.remove("pre")
	s.remove("app")
	s.later()
	if r, _ := s.ask("GET", "/pre"); r.body != "front" {
		t.Errorf("got %v", r)
	}
	s.remove("index.html")
	s.later()
	if r, _ := s.ask("GET", "/pre"); r.status != 404 || r.body != "page a" {
		t.Errorf("got %v", r)
	}
}

func TestCleanURLs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		target string
		status int
		body   string
		to     string // where the Location leads
	}{
		{"/about", 200, "about", ""},
		{"/about.html", 301, "", "/about"},
		{"/about.html?a=b%20c", 301, "", "/about?a=b%20c"},
		{"/about%2Ehtml", 301, "", "/about"},
		{"/about/", 301, "", "/about"},
		{"/about/?q", 301, "", "/about?q"},
		{"/index.html", 301, "", "/"},
		{"/index", 301, "", "/"},
		{"/index/", 200, "index folder", ""},
		{"/docs/index.html", 301, "", "/docs/"},
		{"/docs/index", 301, "", "/docs/"},
		{"/docs", 301, "", "/docs/"},
		{"/docs/", 200, "docs", ""},
		{"/docs/a", 200, "docs a", ""},
		{"/docs/a.html?q", 301, "", "/docs/a?q"},
		{"/a", 200, "file a", ""},
		{"/a.html", 200, "page a", ""}, // the clean one is another file
		{"/both", 200, "both's page", ""},
		{"/both/", 200, "both's folder", ""},
		{"/both.html", 301, "", "/both"},
		{"/empty/", 301, "", "/empty"},
		{"/x.html", 200, "double", ""},
		{"/x.html.html", 301, "", "/x.html"},
		{"/100%25", 200, "percent", ""},
		{"/100%25.html", 301, "", "/100%25"},
		{"/a%20b.html", 301, "", "/a%20b"},
		{"/c:d.html", 301, "", "/c:d"},
		{"/none", 404, "", ""}, {"/none.html", 404, "", ""}, {"/none/", 404, "", ""}, {"/.env", 404, "", ""}, {"/.env.html", 404, "", ""}, {"/sub/.html", 404, "", ""}, {"/sub/", 404, "", ""},
		{"/app/pre.js", 200, text(5000), ""},
		{"/docs%2fa.html", 200, "docs a", ""}, // nothing to redirect to
	} {
		s := newSite(t, tryFiles, &Options{CleanURLs: true})
		for range 2 {
			r, _ := s.ask("GET", tt.target)
			base, err := url.Parse("http://a.example" + tt.target)
			if err != nil {
				t.Fatal(err)
			}
			to := ""
			if l := r.head.Get("Location"); l != "" {
				u, err := base.Parse(l)
				if err != nil {
					t.Fatal(err)
				}
				to = u.RequestURI()
			}
			if r.status != tt.status || tt.body != "" && r.body != tt.body || to != tt.to {
				t.Errorf("%s: got %v, leads to %q, want %d %.20q %s", tt.target, r, to, tt.status, tt.body, tt.to)
			}
		}
	}
}

// A path that was rewritten is answered where it is: a redirect would be relative to what
// the client has written.
func TestTryRewritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		target, path string
		o            *Options
		status       int
		body, to     string
	}{
		{"/x", "/docs", nil, 200, "docs", ""},
		{"/x", "/a/", nil, 200, "file a", ""},
		{"/p/docs", "/docs", nil, 301, "", "docs/"},
		{"/x", "/docs", &Options{CleanURLs: true}, 200, "docs", ""},
		{"/x", "/about.html", &Options{CleanURLs: true}, 200, "about", ""},
		{"/p/about.html", "/about.html", &Options{CleanURLs: true}, 301, "", "./about"},
	} {
		s := newSite(t, tryFiles, tt.o)
		r := httptest.NewRequest("GET", tt.target, nil)
		r.URL.Path = tt.path
		for range 2 {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tt.status || tt.body != "" && w.Body.String() != tt.body || w.Header().Get("Location") != tt.to {
				t.Errorf("%s as %s: %d %q %v", tt.target, tt.path, w.Code, w.Body, w.Header())
			}
		}
	}
}

func TestTryErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "f"), nil, 0o666)
	for _, tt := range []struct {
		try  string // separated by spaces
		want string
	}{
		{"{path} {path}.html {path}/ =404", ""}, {"{path} /f", ""}, {"{path} f", ""}, {"/f/ {path}", ""}, {"/", ""}, {"/a{path}b/c", ""},
		{"{path} =404 {path}.html", `Try[1]: "=404" is a status, so nothing can follow it`},
		{"=200", `"=200" is no status of an error`}, {"=4004", "is no status"}, {"=x", "is no status"}, {"=+40", "is no status"},
		{"$uri", `the path of the request is {path} here`}, {"{uri}", "only {path} can be filled in, once"}, {"{path}{path}", "only {path} can be filled in, once"}, {"{path", "only {path}"},
		{"../x", "is not a path within the folder"}, {"/a/../{path}", "is not a path within"}, {"{path}/../x", "is not a path within"}, {".{path}", "is not a path within"}, {"a\x00", "is not a path within"},
		{"{path} /none.html", `Try: there is no file "/none.html"`}, {"{path} /", ""},
	} {
		h, err := New(dir, &Options{Try: strings.Split(tt.try, " ")})
		switch {
		case err == nil:
			h.Close()
			if tt.want != "" {
				t.Errorf("%q: no error", tt.try)
			}
		case tt.want == "" || !strings.Contains(err.Error(), tt.want):
			t.Errorf("%q: %v, want %q", tt.try, err, tt.want)
		}
	}
	if _, err := New(dir, &Options{Try: []string{""}}); err == nil {
		t.Error("nothing is a candidate")
	}
	if _, err := New(dir, &Options{Try: []string{"{path}"}, CleanURLs: true}); err == nil || !strings.Contains(err.Error(), "CleanURLs") {
		t.Error(err)
	}
}

// The first candidate is found without an allocation, in a folder's index too.
func TestTryAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	s := newSite(t, tryFiles, nil)
	for _, tt := range []struct {
		o    *Options
		path string
	}{
		{&Options{Try: []string{"{path}", "{path}.html", "/index.html"}}, "/about.html"},
		{&Options{Try: []string{"/docs{path}.html", "{path}"}}, "/a"},
		{&Options{CleanURLs: true}, "/a"},
		{&Options{CleanURLs: true}, "/docs/"},
		{&Options{CleanURLs: true}, "/"},
		{&Options{CleanURLs: true, Guarded: func(string) bool { return false }}, "/a"},
		{&Options{Guarded: func(string) bool { return false }}, "/docs/"},
		{&Options{Guarded: func(string) bool { return false }}, "/docs/a.html"},
	} {
		h, err := New(s.dir, tt.o)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		s.use(h)
		askPlain(h, "GET", tt.path)
		var x direct.Exchange
		r := wire.Request{Method: "GET", Target: []byte(tt.path), Path: []byte(tt.path), Fields: &wireFields{}}
		n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			if !h.ServeDirect(&x) {
				t.Errorf("%q: %s: left", tt.o.Try, tt.path)
			}
			x.Wire().Drop()
		})
		if n != 0 {
			t.Errorf("%q: %s: %v allocations", tt.o.Try, tt.path, n)
		}
	}
	// A later one stays on the fast path.
	h, err := New(s.dir, &Options{CleanURLs: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	s.use(h)
	if _, onDirect := s.ask("GET", "/about"); !onDirect {
		t.Error("a later candidate is left")
	}
}

// Whatever the path, and whatever it is rewritten to: a file of the folder that is not
// hidden, a redirect to the same host, or an error; and both ways say the same.
func FuzzTry(f *testing.F) {
	for _, p := range []string{"/", "/about", "/about.html", "/docs/", "/docs/a", "/../secret", "/..%2fsecret", "/%2e%2e/secret", "/%252e%252e%252fsecret", "/..\\secret", "/..%5csecret", "//secret",
		"/out/secret", "/abs", "/about%00", "/about/.", "/about/..", "/about.", "/ABOUT", "/.env", "/.", "/..", "/docs%2fa.html", "/index", "/docs/index/", "/docs/../about.html", "//evil.example/about.html",
		"/\\evil.example/about.html", "/%2f/evil.example.html", "/about.html/", "/docs//a.html", "/./about.html", "/%2e%2ehtml", "/...html"} {
		f.Add(p)
	}
	files := map[string]string{"//evil.example/x": ""}
	for name, content := range tryFiles {
		files[name] = content
	}
	s := newSite(f, files, nil)
	os.WriteFile(filepath.Join(filepath.Dir(s.dir), "secret"), []byte("SECRET"), 0o666)
	os.WriteFile(filepath.Join(filepath.Dir(s.dir), "secret.html"), []byte("SECRET"), 0o666)
	os.Symlink("..", s.path("out"))
	os.Symlink(filepath.Join(filepath.Dir(s.dir), "secret"), s.path("abs.html"))
	var all []*site
	for _, o := range []*Options{{CleanURLs: true}, {Try: []string{"{path}", "{path}.html", "{path}/index.html", "/index.html"}}, {Try: []string{"/docs{path}", "{path}/", "out{path}", "=410"}, Listing: true}} {
		h, err := New(s.dir, o)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { h.Close() })
		one := &site{dir: s.dir}
		one.use(h)
		all = append(all, one)
	}
	f.Fuzz(func(t *testing.T, target string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		for _, one := range all {
			s := &site{Handler: one.Handler, t: t, dir: one.dir}
			r, _ := s.ask("GET", target)
			if strings.Contains(r.body, "SECRET") {
				t.Errorf("%q: %v", target, r)
			}
			switch r.status {
			case 200, 404, 410:
			case 301:
				base := &url.URL{Scheme: "http", Host: "example.com", Path: u.Path, RawPath: u.RawPath}
				l := r.head.Get("Location")
				to, err := base.Parse(l)
				if err != nil || to.Host != "example.com" || to.Scheme != "http" || strings.ContainsAny(l, "\\ \"<>") && u.RawQuery == "" {
					t.Errorf("%q: %v", target, r)
				}
				if to != nil && to.EscapedPath() == u.EscapedPath() {
					t.Errorf("%q leads to itself: %v", target, r)
				}
			default:
				t.Errorf("%q: %v", target, r)
			}
			// Rewritten to it.
			w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/elsewhere", nil)
			req.URL.Path = u.Path
			s.ServeHTTP(w, req)
			if strings.Contains(w.Body.String(), "SECRET") || w.Code != 200 && w.Code != 404 && w.Code != 410 {
				t.Errorf("rewritten to %q: %d %v", u.Path, w.Code, http.Header(w.Header()))
			}
		}
	})
}
