package static

import (
	"strings"
	"testing"
)

// What is hidden is as if it were not there, by every name.
func TestHidden(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{
		"a.bak": "BAK", "sub/A.BAK": "BAK", "a.bak.gz": "BAK", "old.bak/f": "BAK", "private/f": "PRIV", "private/deep/f": "PRIV", "Private2/f": "open", "sub/private/f": "open",
		"git/.git/f": "GIT", ".git/f": "GIT", ".well-known/x": "open", ".well-known/secret": "SEC", "index.html": "front", "sub/index.html": "HIDDEN", "sub/second.html": "second",
		"page.js": text(3000), "page.js.br": "BR", "x.txt": "open", "tmp/x": "TMP",
	}, &Options{Hidden: []string{"*.bak", "/private/**", ".git", "secret", "sub/index.html", "*.js.br", "/tmp/"}, Listing: true, Dotfiles: true,
		Index: []string{"index.html", "second.html"}})
	for _, tt := range []struct {
		target string
		status int
	}{
		{"/a.bak", 404}, {"/sub/A.BAK", 404}, {"/a.bak.gz", 404}, {"/old.bak/f", 404}, {"/old.bak/", 404}, {"/old.bak", 404}, {"/private/f", 404}, {"/private/deep/f", 404},
		{"/private", 404}, {"/private/", 404}, {"/PRIVATE/f", 404}, {"/x/../private/f", 404}, {"//private//f", 404}, {"/%70rivate/f", 404}, {"/Private2/f", 200}, {"/sub/private/f", 200},
		{"/git/.git/f", 404}, {"/.git/f", 404}, {"/.well-known/x", 200}, {"/.well-known/secret", 404}, {"/", 200}, {"/sub/index.html", 404}, {"/sub/", 200}, {"/page.js", 200},
		{"/page.js.br", 404}, {"/x.txt", 200}, {"/tmp/x", 404}, {"/tmp", 404},
	} {
		for range 2 { // also if it could be in the cache by now
			if got := s.status(tt.target); got != tt.status {
				t.Errorf("%s: %d, want %d", tt.target, got, tt.status)
			}
		}
	}
	if r, _ := s.ask("GET", "/sub/"); r.body != "second" {
		t.Errorf("/sub/: %v", r)
	}
	if r, _ := s.ask("GET", "/page.js", "Accept-Encoding: br"); strings.Contains(string(r.body), "BR") {
		t.Errorf("the hidden form is sent: %v", r)
	}
	for _, dir := range []string{"/git/?format=json", "/.well-known/?format=json"} {
		if r, _ := s.ask("GET", dir); strings.Contains(string(r.body), ".git\"") || strings.Contains(string(r.body), "secret") {
			t.Errorf("%s: %v", dir, r)
		}
	}
	for _, o := range []Options{{Hidden: []string{"[a"}}, {Hidden: []string{""}}, {Hidden: []string{"/"}}, {Hidden: []string{"*.txt"}, SPA: "x.txt"}, {Hidden: []string{"x.txt"}, NotFound: "x.txt"}} {
		if h, err := New(s.dir, &o); err == nil {
			h.Close()
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestTypes(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{
		"a.foo": "a", "A.FOO": "a", "b.tar.foo": "b", "c.html": "c", "foo": "d", ".foo": "e", "big.foo": noise(big), "a.foo.d/x.txt": "f", "z.xyz": text(3000),
	}, &Options{Dotfiles: true, Types: map[string]string{".foo": "application/x-foo", ".tar.FOO": "application/x-tar-foo", ".html": "text/plain", ".xyz": "text/x-xyz; charset=utf-8"},
		Rules: []Rule{{"d/**", map[string]string{"Content-Type": "text/x-rule"}}}})
	for target, want := range map[string]string{
		"/a.foo": "application/x-foo", "/A.FOO": "application/x-foo", "/b.tar.foo": "application/x-tar-foo", "/c.html": "text/plain", "/foo": "text/plain; charset=utf-8",
		"/.foo": "application/x-foo", "/big.foo": "application/x-foo", "/a.foo.d/x.txt": "text/plain; charset=utf-8", "/z.xyz": "text/x-xyz; charset=utf-8",
	} {
		if r, _ := s.ask("GET", target); r.head.Get("Content-Type") != want {
			t.Errorf("%s: %q", target, r.head.Get("Content-Type"))
		}
	}
	if r, _ := s.ask("GET", "/z.xyz", "Accept-Encoding: gzip"); r.head.Get("Content-Encoding") != "gzip" || r.head.Get("Content-Type") != "text/x-xyz; charset=utf-8" {
		t.Errorf("%v", r)
	}
	for suffix, typ := range map[string]string{"foo": "a/b", ".": "a/b", "": "a/b", ".a/b": "a/b", ".foo": "ab", ".x": "a/b\r\nX: y", ".y": ""} {
		if h, err := New(s.dir, &Options{Types: map[string]string{suffix: typ}}); err == nil {
			h.Close()
			t.Errorf("%q, %q: New has no error", suffix, typ)
		}
	}
}
