package static

import (
	"encoding/json"
	"strings"
	"testing"
)

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
