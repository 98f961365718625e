package static

import (
	"encoding/json"
	"strings"
	"testing"
)

// A name that another handler guards is not tried for another path.
func TestGuardedTry(t *testing.T) {
	t.Parallel()
	guarded := func(name string) bool {
		return name == "about.html" || name == "docs" || strings.HasPrefix(name, "docs/")
	}
	for _, o := range []*Options{{CleanURLs: true, Guarded: guarded},
		{Try: []string{"{path}", "{path}.html", "/docs{path}", "{path}/"}, Guarded: guarded}} {
		s := newSite(t, tryFiles, o)
		s.ask("GET", "/docs/a.html") // in the cache
		s.ask("GET", "/docs/")
		for target, want := range map[string]int{"/about": 404, "/docs/a": 404, "/about/": 404, "/both": 200, "/index.html": 301} {
			if target == "/index.html" && !o.CleanURLs {
				want = 200
			}
			if r, _ := s.ask("GET", target); r.status != want {
				t.Errorf("%s: got %v", target, r)
			}
		}
	}
}

// Neither the folder whose index a guarded file is leads to it, nor a name beside it; on
// both paths, with and without Try, and also when the file itself is in the cache, as it has
// been sent for its own path.
func TestGuardedForms(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"private/index.html": "SECRET", "private/index.html.gz": "SECRET", "plan.html": "SECRET", "plan.html.br": "SECRET",
		"plan.html.gz.zst": "SECRET", "open.html": text(5000), "open.html.gz": "SECRET", "open.html.br": "br of open",
		"second/index.html": "SECRET", "second/default.html": "second", "page/index.html": "SECRET", "page/f": "f of page",
		"index.html": "SECRET", "other.gz": "other",
	}
	guarded := map[string]bool{"private/index.html": true, "plan.html": true, "open.html.gz": true, "second/index.html": true,
		"page/": true, "/": true, "page": true}
	for _, o := range []Options{{}, {Listing: true}, {CleanURLs: true}, {Try: []string{"{path}", "{path}/", "{path}.gz",
		"/page{path}index.html", "/index.html"}}, {NoPrecompressed: true}, {CacheBytes: -1, OpenFiles: -1}} {
		o.Index = []string{"index.html", "default.html"}
		o.Guarded = func(name string) bool { return guarded[name] }
		s := newSite(t, files, &o)
		for _, own := range []string{"/private/index.html", "/plan.html", "/second/index.html"} {
			s.ask("GET", own)
			if r, _ := s.ask("GET", own); !o.CleanURLs && (r.status != 200 || r.body != "SECRET") {
				t.Errorf("%+v: %s: %v", o, own, r)
			}
		}
		for range 2 { // the second time from the cache
			for _, target := range []string{"/", "/index.html", "/private/", "/private", "/private/index.html.gz", "/plan.html.br",
				"/plan.html.gz.zst", "/page/", "/page", "/page/index.html", "/second/", "/second", "/open.html", "/open",
				"/plan", "/plan.html/", "/private/index.html/", "/none", "//private/", "/./private/.", "/plan.html.br/"} {
				for _, accept := range []string{"", "gzip", "br", "zstd, gzip"} {
					r, _ := s.ask("GET", target, "Accept-Encoding", accept)
					if strings.Contains(r.body, "SECRET") {
						t.Errorf("%+v: %s, %q: %v", o, target, accept, r)
					}
				}
			}
		}
		for target, want := range map[string]string{"/second/": "second", "/page/f": "f of page", "/other.gz": "other"} {
			if r, _ := s.ask("GET", target); r.body != want {
				t.Errorf("%+v: %s: %v", o, target, r)
			}
		}
	}
}

// Listings leave out files that are guarded, and folders whose page is, but not what only has guarded files in it.
func TestGuardedListing(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"f": "", "guarded.txt": "", "guarded.txt.gz": "", "guarded/f": "", "page/f": "", "named/f": "", "sub/f": "", "sub/guarded.txt": "",
		"sub/guarded/f": "", "sub/page/f": "",
	}
	guarded := func(name string) bool {
		switch name {
		case "guarded.txt", "sub/guarded.txt", "guarded", "page/", "named", "sub/guarded":
			return true
		}
		return strings.HasPrefix(name, "guarded/") || strings.HasPrefix(name, "sub/guarded/")
	}
	s := newSite(t, files, &Options{Listing: true, Guarded: guarded})
	for target, want := range map[string]string{"/": "named sub f", "/sub/": "page f"} {
		r, _ := s.ask("GET", target)
		if strings.Contains(r.body, "guarded") || !strings.Contains(r.body, `href="./f"`) {
			t.Errorf("%s: %v", target, r)
		}
		r, _ = s.ask("GET", target+"?format=json")
		var list struct{ Entries []struct{ Name string } }
		if err := json.Unmarshal([]byte(r.body), &list); err != nil {
			t.Errorf("%s: %v: %v", target, err, r)
		}
		var names []string
		for _, e := range list.Entries {
			names = append(names, e.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
}
