package filename

import (
	"runtime"
	"strings"
	"testing"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.css", "a/b/site.css", true},
		{"*", "a/b", true},
		{"a/*", "a/b", true},
		{"/a/*", "a/b", true},
		{"a/*", "a/b/c", false},
		{"a/**", "a/b/c", true},
		{"[a-c].{js,css}", "d/b.js", true},
		{"/x", "x", true},
		{"/x", "a/x", false},
	} {
		p, err := ParsePattern(tt.pattern)
		if err != nil || p.Match(tt.name) != tt.want {
			t.Errorf("%q, %q: %v, want %v", tt.pattern, tt.name, err, tt.want)
		}
	}
	for _, s := range []string{"", "/", "[a", "a/{b"} {
		if _, err := ParsePattern(s); err == nil {
			t.Errorf("%q: no error", s)
		}
		if _, err := NewSet([]string{"ok", s}); err == nil {
			t.Errorf("a set of %q: no error", s)
		}
	}
}

// A set that is negated in a pattern is not another one for small letters.
func TestSetCase(t *testing.T) {
	t.Parallel()
	s, err := NewSet([]string{"x[^A-Z]", "[^a]Q"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"xa": true, "x1": true, "bq": true, "BQ": true, "y": false, "d/xa": true, "xa/y": true} {
		if s.Has(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Compressed forms are as what is compressed, in any case.
func TestSetCompressed(t *testing.T) {
	t.Parallel()
	s, err := NewSet([]string{"*.bak", "/a/b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"x.bak.gz": true, "d/X.BAK.ZST": true, "a/b.br": true, "a/b/c.gz": true, "x.bak.gz.gz": false, "b.gz": false} {
		if s.Has(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestDotfile(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"": false, "a": false, "a.b": false, ".a": true, "a/.b/c": true, ".well-known": false, ".well-known/a": false, ".well-known/.a": true, "a/.well-known": true} {
		if Dotfile(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestCandidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, name string // of a request for /docs/a
		own        bool
	}{
		{"{path}", "/docs/a", true},
		{"/{path}/", "//docs/a/", true},
		{"{path}.html", "/docs/a.html", false},
		{"/index.html", "/index.html", false},
	} {
		c, err := ParseCandidate(tt.text)
		if err != nil || c.Status != 0 || c.Own() != tt.own || string(c.AppendName(nil, "/docs/a")) != tt.name {
			t.Errorf("%q: %+v, %v", tt.text, c, err)
		}
	}
	if c, err := ParseCandidate("=410"); err != nil || c.Status != 410 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, text := range []string{"", "..", "a/../b", ".", "a\x00", "$uri", "{path}{path}", "{host}", "=200", "=4040", "=x"} {
		if _, err := ParseCandidate(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestCheckType(t *testing.T) {
	t.Parallel()
	if err := CheckType(".foo", "text/x-foo; charset=utf-8"); err != nil {
		t.Error(err)
	}
	for suffix, typ := range map[string]string{"foo": "a/b", ".": "a/b", "": "a/b", ".a/b": "a/b", ".foo": "ab", ".x": "a/b\r\nX: y", ".y": ""} {
		if CheckType(suffix, typ) == nil {
			t.Errorf("%q, %q: no error", suffix, typ)
		}
	}
}

func TestCheckFollow(t *testing.T) {
	t.Parallel()
	if !canFollow {
		if err := CheckFollow("/srv"); err == nil || !strings.Contains(err.Error(), "this system") {
			t.Errorf("%s: %v", runtime.GOOS, err)
		}
		return
	}
	if err := CheckFollow("/srv/shared"); err != nil {
		t.Error(err)
	}
	for _, prefix := range []string{"", "srv", "/", "/srv/../etc", "/srv\x00"} {
		if CheckFollow(prefix) == nil {
			t.Errorf("%q: no error", prefix)
		}
	}
}
