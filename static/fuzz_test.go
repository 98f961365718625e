package static

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// Whatever the path: never a byte from outside, nothing hidden, no redirect to
// another host, and both ways say the same.
func FuzzPath(f *testing.F) {
	for _, p := range []string{
		"/", "/a.txt", "/../secret", "/..%2fsecret", "/%2e%2e/secret", "/%252e%252e/secret", "/..\\secret", "/..%5csecret", "//secret", "/out/secret", "/abs",
		"/docs", "//docs", "/docs/../..", "/.hidden", "/docs/%2ehidden", "/a.txt%00", "/a.txt/", "/\xff", "/%", "/%zz", "/?../secret", "/docs//", "/./.", "/link/../../secret",
		"//evil.example/%2e%2e/docs", "/a:b", "/\\\\evil.example",
	} {
		f.Add(p)
	}
	s := newSite(f, map[string]string{"a.txt": "inside", "docs/index.html": "inside", ".hidden": "SECRET", "docs/.hidden": "SECRET", "a:b/": "", "\\\\evil.example/": ""}, &Options{Listing: true})
	os.WriteFile(filepath.Join(filepath.Dir(s.dir), "secret"), []byte("SECRET"), 0o666)
	os.Symlink("..", s.path("out"))
	os.Symlink(filepath.Join(filepath.Dir(s.dir), "secret"), s.path("abs"))
	os.Symlink("docs", s.path("link"))
	f.Fuzz(func(t *testing.T, target string) {
		s := &site{Handler: s.Handler, t: t, dir: s.dir}
		u, err := url.ParseRequestURI(target)
		if err != nil || !strings.HasPrefix(target, "/") {
			// No server gives such a path; the handler must stand it.
			var x direct.Exchange
			x.Wire().Reset(wire.Request{Method: "GET", Target: []byte(target), Path: []byte(target), Fields: fields{}})
			if s.ServeDirect(&x) {
				if a := x.Wire().Finish(); strings.Contains(string(a.Body), "SECRET") {
					t.Errorf("%q: %q", target, a.Body)
				}
			}
			return
		}
		r, _ := s.ask("GET", target)
		if strings.Contains(r.body, "SECRET") {
			t.Errorf("%q: %v", target, r)
		}
		switch r.status {
		case 200, 404:
		case 301:
			base := &url.URL{Scheme: "http", Host: "example.com", Path: u.Path, RawPath: u.RawPath}
			to, err := base.Parse(r.head.Get("Location"))
			if err != nil || to.Host != "example.com" || to.Scheme != "http" || strings.ContainsAny(r.head.Get("Location"), "\\ \"<>") && u.RawQuery == "" {
				t.Errorf("%q: %v", target, r)
			}
		default:
			t.Errorf("%q: %v", target, r)
		}
	})
}
