package static_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/chert-http/chert/static"
	"github.com/klauspost/compress/zstd"
)

// decode undoes a content coding.
func decode(body, coding string) (string, error) {
	r := io.Reader(strings.NewReader(body))
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return "", err
		}
		r = z
	case "br":
		r = brotli.NewReader(r)
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(8<<20)) // RFC 9659
		if err != nil {
			return "", err
		}
		defer z.Close()
		r = z
	case "":
	default:
		return "", fmt.Errorf("an unknown coding %q", coding)
	}
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestCodingsOnTheWire(t *testing.T) {
	t.Parallel()
	content := map[string]string{
		"app.js": strings.Repeat("function f() { return 1 }\n", 500), "large.css": strings.Repeat("body { color: red }\n", 20_000),
		"image.png": pattern(1, 5000), "tiny.txt": "tiny", "noise.bin.txt": "",
	}
	noise := make([]byte, 5000)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	content["noise.bin.txt"] = string(noise)
	dir := t.TempDir()
	makeTree(t, dir, content)
	settle(t, time.Now())
	h := serveDir(t, dir, nil)
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			c := newClient(t, w.serve(t, h))
			for _, tt := range []struct{ accept, want string }{ // want: one of, "-" is none
				{"", "-"}, {"gzip", "gzip"}, {"br", "br"}, {"zstd", "zstd"}, {"gzip, br", "br"}, {"gzip, deflate, br, zstd", "br"},
				{"gzip;q=1.0, br;q=0.1", "gzip"}, {"gzip;q=0.001, br;q=0", "gzip"}, {"br;q=0, *", "zstd gzip"}, {"*", "br"}, {"*;q=0.1, identity", "-"},
				{"identity", "-"}, {"identity;q=0, gzip", "gzip"}, {"deflate", "-"}, {"gzip;q=0", "-"}, {"GZIP", "gzip"}, {"gzip;Q=0.5", "gzip"},
				{"gzip ; q=0.5 , br ; q=0.4", "gzip"}, {"gzip;q=2", "- gzip"}, {",,gzip,,", "gzip"}, {"brotli, gzipped", "-"}, {"gzip;q=0.5;q=0, br", "br"},
			} {
				for name, plain := range content {
					var lines []string
					if tt.accept != "" {
						lines = []string{"Accept-Encoding: " + tt.accept}
					}
					what := fmt.Sprintf("%s for %q", name, tt.accept)
					// A busy machine may not compress the first time.
					var a *answer
					compressible := name == "app.js" || name == "large.css"
					eventually(t, what+" is as it should be", func() bool {
						a = c.ask("GET", "/"+name, lines...)
						got := a.field("Content-Encoding")
						if got == "" {
							got = "-"
						}
						return a.status != 200 || !compressible || strings.Contains(" "+tt.want+" ", " "+got+" ")
					})
					coding := a.field("Content-Encoding")
					if a.status != 200 || !compressible && coding != "" {
						t.Errorf("%s: %v", what, a)
						continue
					}
					if got, err := decode(a.body, coding); err != nil || got != plain {
						t.Errorf("%s: %v, %d bytes", what, err, len(got))
					}
					checkVariant(t, c, name, lines, a)
				}
			}
			if a := c.ask("GET", "/app.js", "Accept-Encoding: identity;q=0, *;q=0"); a.status != 200 || a.field("Vary") != "Accept-Encoding" || a.body != content["app.js"] {
				t.Errorf("nothing is acceptable: %v", a)
			}
			// Several lines are one list.
			if a := c.ask("GET", "/app.js", "Accept-Encoding: deflate", "accept-encoding: br;q=0.1", "Accept-Encoding: zstd;q=0.5"); a.field("Content-Encoding") != "zstd" {
				t.Errorf("of three lines: %v", a)
			}
		})
	})
}

// checkVariant asks for a, an answer to GET with lines, in other ways.
func checkVariant(t *testing.T, c *client, name string, lines []string, a *answer) {
	t.Helper()
	with := func(more ...string) []string { return append(append([]string{}, lines...), more...) }
	tag, coding := a.field("Etag"), a.field("Content-Encoding")
	negotiable := name != "image.png"
	if (a.field("Vary") == "Accept-Encoding") != negotiable || !strings.HasPrefix(tag, `"`) {
		t.Errorf("%s %q: %v", name, lines, a)
	}
	h := c.ask("HEAD", "/"+name, lines...)
	for _, r := range []*answer{a, h} {
		r.head.Del("Date")
	}
	if h.status != 200 || h.body != "" || fmt.Sprint(h.head) != fmt.Sprint(a.head) {
		t.Errorf("%s %q: HEAD has %v, GET %v", name, lines, h.head, a.head)
	}
	if u := c.ask("GET", "/"+name, with("If-None-Match: "+tag)...); u.status != 304 || u.field("Etag") != tag || u.field("Vary") != a.field("Vary") || u.field("Content-Encoding") != "" {
		t.Errorf("%s %q: %v", name, lines, u)
	}
	p := c.ask("GET", "/"+name, with("Range: bytes=1-2", "If-Range: "+tag)...)
	if p.status != http.StatusPartialContent || p.body != a.body[1:3] || p.field("Content-Encoding") != coding || p.field("Etag") != tag || p.field("Vary") != a.field("Vary") ||
		p.field("Content-Range") != fmt.Sprintf("bytes 1-2/%d", len(a.body)) {
		t.Errorf("%s %q: range: %v", name, lines, p)
	}
	if coding == "" {
		return
	}
	// The file as it is, under the tag of the coded form.
	plain := c.ask("GET", "/"+name, "If-None-Match: "+tag)
	if plain.status != 200 || plain.field("Etag") == tag || plain.field("Content-Encoding") != "" || plain.field("Vary") != "Accept-Encoding" {
		t.Errorf("%s: as it is: %v", name, plain)
	}
	if m := c.ask("GET", "/"+name, "Range: bytes=1-2", "If-Range: "+tag); m.status != 200 {
		t.Errorf("%s: a part of another form: %v", name, m)
	}
}

// Fallbacks, the page for what is not there, and listings.
func TestMannersOnTheWire(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeTree(t, dir, map[string]string{
		"app.html": "the app", "404.html": "not here", "assets/a.js": "a()", "docs/b.txt": "b", ".env": hiddenMark, "docs/.secret": hiddenMark,
	})
	spa := serveDir(t, dir, &static.Options{SPA: "app.html"})
	page := serveDir(t, dir, &static.Options{NotFound: "404.html", Listing: true})
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			c := newClient(t, w.serve(t, spa))
			for _, tt := range []struct {
				method, target, accept string
				status                 int
				body                   string
			}{
				{"GET", "/users/7", "text/html", 200, "the app"}, {"HEAD", "/users/7", "text/html", 200, ""}, {"GET", "/users/a.b", "text/html,*/*;q=0.8", 200, "the app"},
				{"GET", "/users/7", "*/*", 200, "the app"}, {"GET", "/a.js", "*/*", 404, ""}, {"GET", "/api", "application/json", 404, ""}, {"POST", "/users/7", "text/html", 405, ""},
				{"GET", "/assets/a.js", "text/html", 200, "a()"}, {"GET", "/../../etc/passwd", "text/html", 200, "the app"}, {"GET", "/.env", "text/html", 200, "the app"}, {"GET", "/a%00b", "text/html", 200, "the app"},
			} {
				a := c.ask(tt.method, tt.target, "Accept: "+tt.accept)
				if a.status != tt.status || tt.body != "" && a.body != tt.body || markIn(a.body) != "" {
					t.Errorf("%+v: %v", tt, a)
				}
				if (a.status == 404 || a.body == "the app") && !strings.Contains(a.field("Vary"), "Accept") {
					t.Errorf("%+v: a cache would mix them up: %v", tt, a)
				}
			}
			c = newClient(t, w.serve(t, page))
			for _, target := range []string{"/nope", "/docs/nope", "/.env", "/docs/.secret", "/%00", "/docs/b.txt/x"} {
				for _, lines := range [][]string{nil, {"Range: bytes=0-1"}, {"If-None-Match: *"}, {"Accept-Encoding: br"}} {
					if a := c.ask("GET", target, lines...); a.status != 404 || a.body != "not here" || a.field("Etag") != "" || a.field("Last-Modified") != "" {
						t.Errorf("%s %q: %v", target, lines, a)
					}
				}
			}
			for _, target := range []string{"/", "/docs/", "/docs/?format=json", "/?sort=size&order=desc"} {
				if a := c.ask("GET", target); a.status != 200 || strings.Contains(a.body, ".env") || strings.Contains(a.body, ".secret") || markIn(a.body) != "" {
					t.Errorf("%s: %v", target, a)
				}
			}
		})
	})
}
