package static_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chert-http/chert/static"
)

// Redirects lead to where the folder or file is, in a few steps, and never to
// another host: not for a browser that takes a backslash for a slash or leaves
// out control characters, and not for one that does not.
func TestRedirectTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeTree(t, dir, map[string]string{
		"dir/index.html": "dir", "a.txt": "a", "dir/a.txt": "b", "evil.example/index.html": "evil", "evil.example/a.txt": "c",
		"\\evil.example/index.html": "evil", "a:b/index.html": "colon", "javascript:alert(1)/index.html": "script", "x\r\nSet-Cookie: a=b/index.html": "split",
		"x y/index.html": "space", "\xff/index.html": "bytes", "q?x/index.html": "query", "h#x/index.html": "hash", "%2f/index.html": "percent", "\u202ex/index.html": "right to left",
		" /index.html": "blank", "http:/evil.example/index.html": "scheme", "@evil.example/index.html": "at", "..x/index.html": "dots",
	})
	h := serveDir(t, dir, &static.Options{Dotfiles: true})
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			c := newClient(t, w.serve(t, h))
			for _, tt := range []struct {
				target string
				end    string // the body at the end; "" is 404; "?" anything
			}{
				{"/dir", "dir"}, {"//dir", "dir"}, {"/dir?a=b", "dir"}, {"/./dir", "dir"}, {"/x/../dir", "dir"}, {"/a.txt/", "a"}, {"/a.txt//", "a"}, {"//a.txt/", "a"}, {"/dir/a.txt/", "b"},
				{"/a.txt/./", "?"}, {"/a.txt/.", ""}, {"/a.txt%2f", ""}, {"/a.txt%2F/", "?"}, {"/a.txt/%2e", ""}, {"/a.txt/%2e/", ""}, {"/a.txt/x/..", "?"}, {"/a.txt/x/../", "?"}, {"/a.txt/%2e%2e/a.txt/", "a"}, {"/dir%2f", "dir"}, {"/x%2f..%2fdir", "dir"},
				{"//evil.example", "evil"}, {"///evil.example", "evil"}, {"//evil.example/", "evil"}, {"/%2fevil.example", "evil"}, {"/%2f%2fevil.example", "evil"}, {"//evil.example/a.txt/", "c"}, {"//evil.example//a.txt/", "c"}, {"/%2f%2fevil.example%2fa.txt/", "c"},
				{"/\\evil.example", "evil"}, {"/%5cevil.example", "evil"}, {"/%5Cevil.example", "evil"}, {"/.%2f%5cevil.example", "?"}, {"/..%5cevil.example", ""}, {"//evil.example%2f..", "?"}, {"//evil.example/..%2fdir", "dir"}, {"/%5cevil.example/%2e%2e/dir", "dir"},
				{"/a:b", "colon"}, {"/a%3ab", "colon"}, {"/javascript:alert(1)", "script"}, {"/javascript%3Aalert(1)", "script"}, {"/http:/evil.example", "scheme"}, {"/http:%2fevil.example", "scheme"}, {"/http://evil.example", "scheme"}, {"/@evil.example", "at"}, {"//@evil.example", "at"},
				{"/x%0d%0aSet-Cookie:%20a=b", "split"}, {"/x%0D%0ASet-Cookie%3A%20a=b", "split"}, {"/dir%0d%0aX:%20y", ""}, {"/dir?%0d%0aX:%20y", "dir"}, {"/dir?x=//evil.example/", "dir"}, {"/dir?\\", "dir"}, {"/dir?\xff", "dir"}, {"/dir??", "dir"}, {"/dir?", "dir"},
				{"/x%20y", "space"}, {"/%ff", "bytes"}, {"/\xff", "bytes"}, {"/q%3fx", "query"}, {"/h%23x", "hash"}, {"/%252f", "percent"}, {"/%e2%80%aex", "right to left"}, {"/%20", "blank"}, {"/..x", "dots"}, {"/%2e%2ex", "dots"},
				{"http://example.com/dir", "dir"}, {"http://example.com//evil.example", "evil"}, {"http://evil.example/dir", "dir"}, {"http://evil.example//dir", "dir"},
			} {
				at, err := url.Parse("http://example.com/")
				if err != nil {
					t.Fatal(err)
				}
				target := tt.target
				for step := 0; ; step++ {
					a := c.ask("GET", target)
					if a.status != 301 {
						if tt.end != "?" && (a.status != 200 || a.body != tt.end) && (a.status < 400 || tt.end != "") {
							t.Errorf("%q ends at %q: %v", tt.target, target, a)
						}
						break
					}
					to := a.field("Location")
					if len(a.head["Location"]) != 1 || a.field("Set-Cookie") != "" || a.field("X") != "" {
						t.Errorf("%q: %v", target, a)
					}
					if err := staysHere(target, to); err != nil {
						t.Errorf("%q: %v", target, err)
						break
					}
					if step == 4 {
						t.Errorf("%q leads to %q and so on", tt.target, to)
						break
					}
					if u, err := url.ParseRequestURI(strings.TrimPrefix(target, "http://example.com")); err == nil {
						at = at.ResolveReference(&url.URL{Path: u.Path, RawPath: u.EscapedPath()})
						if _, query, _ := strings.Cut(tt.target, "?"); query != "" && query != "\xff" && !strings.HasSuffix(to, "?"+query) {
							t.Errorf("%q: the query is lost in %q", target, to)
						}
					}
					next, err := at.Parse(to)
					if err != nil {
						t.Errorf("%q: Location %q: %v", target, to, err)
						break
					}
					target = next.RequestURI()
				}
			}
		})
	})
}
