package static

import (
	"net/http"
	"os"
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
		"index-BxZ8p4Lq.mjs": true, "inter-latin-Dx4kXJAl.woff2": true, "chunk-X7Q2ZJ3K.js": true, "hero.4c1f09be.webp": true,
		// Words and numbers.
		"Resume-JohnDoe2024.png": false, "photo-2024JohnDoe.jpg": false, "team-AcmeCorp2023Q4.png": false, "case-iPhone15ProMax.jpg": false,
		"logo-SUMMER23.png": false, "route-22ABCDEF.svg": false, "scan-20240517a.png": false, "old-facade1990.jpg": false,
		"app-Win10Build19045.js": false, "shot-Screenshot2024at10.png": false, "moment-TimeZone2.js": false,
		// Types that people name.
		"Resume-JohnDoe2024.pdf": false, "report-B7xK2a9Q.pdf": false, "data.3f9ac21b.json": false, "setup-3f9ac21b.zip": false, "page-3f9ac21b.html": false,
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

// Zero is the default and negative is none, or no limit, in every field.
func TestOptionDefaults(t *testing.T) {
	t.Parallel()
	type sizes struct{ compress, cache, file int64 }
	for _, tt := range []struct {
		name string
		o    *Options
		want sizes
	}{
		{"nil", nil, sizes{8 << 20, 64 << 20, 16 << 10}},
		{"zero", &Options{}, sizes{8 << 20, 64 << 20, 16 << 10}},
		{"no limit to compression", &Options{CompressMax: -1}, sizes{16 << 20, 64 << 20, 16 << 10}},
		{"no files in memory", &Options{CacheFileSize: -1}, sizes{8 << 20, 64 << 20, -1}},
		{"a small cache", &Options{CacheBytes: 1000, CompressMax: -1}, sizes{250, 1000, 250}},
		{"no cache", &Options{CacheBytes: -1, CompressMax: -1}, sizes{0, -1, -1}},
	} {
		c, err := newConfig(tt.o)
		if got := (sizes{c.CompressMax, c.CacheBytes, c.CacheFileSize}); got != tt.want || err != nil {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}
