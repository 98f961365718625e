package static

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decoded is the content of an answer.
func decoded(t *testing.T, r reply) string {
	t.Helper()
	var from io.Reader = strings.NewReader(r.body)
	switch c := r.head.Get("Content-Encoding"); c {
	case "gzip":
		z, err := gzip.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	case "br":
		from = brotli.NewReader(from)
	case "zstd":
		z, err := zstd.NewReader(from)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		from = z
	}
	return mustRead(t, from)
}

func TestCodings(t *testing.T) {
	t.Parallel()
	js, large := text(5000), text(300<<10)
	files := map[string]string{
		"app.js": js, "large.js": large, "small.js": "x()", "noise.txt": noise(2000), "img.png": text(5000), "arch.js": js, "arch.js.gz": "arch gz",
		"pre.js": js, "pre.js.br": "pre br", "pre.js.zst": "pre zst", "pre.js.gz": "pre gz",
		"old.js": js, "old.js.br": "old br", "big.js": large, "big.js.br": noise(big), "dir.js": js, "dir.js.br/": "", "x.svgz": js,
	}
	s := newSite(t, files, &Options{Rules: []Rule{{"*.svgz", map[string]string{"Content-Encoding": "gzip", "Content-Type": "image/svg+xml"}}}})
	s.date("old.js.br", old.Add(-3*time.Second))
	s.date("pre.js.br", old.Add(-1*time.Second))
	for _, tt := range []struct {
		target, accept string
		coding         string
		raw            string // the coded bytes, where they are a sibling's
		vary           bool
		status         int
	}{
		{"/app.js", "gzip, deflate, br, zstd", "br", "", true, 200},
		{"/app.js", "gzip, deflate", "gzip", "", true, 200},
		{"/app.js", "zstd", "zstd", "", true, 200},
		{"/app.js", "gzip;q=1, br;q=0.5", "gzip", "", true, 200},
		{"/app.js", "br;q=0", "", "", true, 200},
		{"/app.js", "identity, gzip;q=0.5", "", "", true, 200},
		{"/app.js", "deflate", "", "", true, 200},
		{"/app.js", "", "", "", true, 200},
		{"/app.js", "*", "br", "", true, 200},
		{"/app.js", "x-gzip", "gzip", "", true, 200},
		{"/app.js", "identity;q=0, deflate", "", "", true, 200},
		{"/app.js", "*;q=0", "", "", true, 200},
		{"/app.js", "identity;q=0, gzip", "gzip", "", true, 200},
		{"/small.js", "identity;q=0, gzip", "", "", true, 200},
		{"/noise.txt", "identity;q=0, gzip", "", "", true, 200},
		{"/pre.js", "identity;q=0, zstd", "zstd", "pre zst", true, 200},
		{"/large.js", "br", "br", "", true, 200},
		{"/small.js", "br", "", "", true, 200},
		{"/noise.txt", "br", "", "", true, 200},
		{"/noise.txt", "gzip, br", "", "", true, 200},
		{"/img.png", "br", "", "", false, 200},
		{"/img.png", "identity;q=0", "", "", false, 200},
		{"/pre.js", "gzip, br, zstd", "br", "pre br", true, 200},
		{"/pre.js", "gzip, zstd", "zstd", "pre zst", true, 200},
		{"/pre.js", "gzip", "gzip", "pre gz", true, 200},
		{"/arch.js", "br, gzip", "gzip", "arch gz", true, 200},
		{"/arch.js", "br", "br", "", true, 200},
		{"/old.js", "br", "br", "", true, 200},
		{"/big.js", "br", "br", noise(big), true, 200},
		{"/dir.js", "br", "br", "", true, 200},
		{"/x.svgz", "br", "gzip", js, false, 200},
		{"/pre.js.br", "br", "", "pre br", false, 200},
	} {
		what := fmt.Sprintf("%s for %q", tt.target, tt.accept)
		lines := []string{"Accept-Encoding: " + tt.accept}
		r, direct := s.ask("GET", tt.target, lines...)
		if !direct {
			t.Errorf("%s: not direct", what)
		}
		if r.status != tt.status || r.head.Get("Content-Encoding") != tt.coding || (r.head.Get("Vary") == "Accept-Encoding") != tt.vary {
			t.Errorf("%s: %v", what, r)
			continue
		}
		if r.status != 200 {
			continue
		}
		want := files[strings.TrimPrefix(tt.target, "/")]
		switch {
		case tt.raw != "" && r.body != tt.raw:
			t.Errorf("%s: %v", what, r)
		case tt.raw == "" && decoded(t, r) != want:
			t.Errorf("%s: content differs", what)
		}
		// Each form has a tag of its own, which is its condition, and ranges.
		tag := r.head.Get("Etag")
		if u, _ := s.ask("GET", tt.target, append(lines, "If-None-Match: "+tag)...); u.status != 304 || u.head.Get("Etag") != tag ||
			(u.head.Get("Vary") == "Accept-Encoding") != tt.vary || u.head.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", what, u)
		}
		if p, _ := s.ask("GET", tt.target, append(lines, "Range: bytes=1-2", "If-Range: "+tag)...); p.status != 206 || p.body != r.body[1:3] ||
			p.head.Get("Content-Encoding") != tt.coding {
			t.Errorf("%s: %v", what, p)
		}
		if tt.coding != "" && tt.vary {
			plain, _ := s.ask("GET", tt.target)
			if plain.head.Get("Etag") == tag || plain.head.Get("Content-Encoding") != "" || plain.body != want {
				t.Errorf("%s: without: %v", what, plain)
			}
		}
	}
}

// Siblings that come, change and go are noticed as files are.
func TestSiblingsChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": text(5000)}, nil)
	br := "Accept-Encoding: br"
	var bodies []string
	step := func(want string, change func()) {
		t.Helper()
		change()
		s.later()
		got := s.get("/a.js", br)
		if want != "" && got != want {
			t.Errorf("got %.100q, want %q", got, want)
		}
		bodies = append(bodies, got)
	}
	step("", func() {})
	step("one", func() { s.write("a.js.br", "one") })
	step("two", func() { s.write("a.js.br", "two") })
	step("", func() { s.remove("a.js.br") })
	step("three", func() { s.write("a.js.br", "three") })
	// The file itself is newer now: the sibling is of another version.
	step("", func() { s.write("a.js", text(6000)); s.date("a.js", old.Add(time.Minute)) })
	if bodies[0] != bodies[3] || bodies[0] == bodies[5] || bodies[5] == "three" {
		t.Errorf("got %.50q", bodies)
	}
	// What is compressed follows the file.
	s.write("a.js", strings.Repeat("new();\n", 1000))
	s.date("a.js", old.Add(2*time.Minute))
	s.later()
	r, _ := s.ask("GET", "/a.js", br)
	if decoded(t, r) != strings.Repeat("new();\n", 1000) {
		t.Error("an old form of a new file")
	}
}

func TestCompressionLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		size   int
		o      Options
		coding string
	}{
		{"the smallest", compressMin, Options{}, "br"},
		{"smaller", compressMin - 1, Options{}, ""},
		{"the largest", 10000, Options{CompressMax: 10000}, "br"},
		{"larger", 10001, Options{CompressMax: 10000}, ""},
		{"off", 5000, Options{NoCompression: true}, ""},
		{"no cache to keep it", 5000, Options{CacheBytes: -1}, ""},
		{"too large for the cache", 5000, Options{CacheBytes: 10000}, ""},
		{"no siblings, but on the fly", 5000, Options{NoPrecompressed: true}, "br"},
	} {
		s := newSite(t, map[string]string{"a.js": text(tt.size)}, &tt.o)
		r, _ := s.ask("GET", "/a.js", "Accept-Encoding: br")
		if r.status != 200 || r.head.Get("Content-Encoding") != tt.coding || decoded(t, r) != text(tt.size) {
			t.Errorf("%s: %v", tt.name, r)
		}
	}
	// With nothing to choose from the answer does not depend on the request.
	s := newSite(t, map[string]string{"a.js": text(5000), "a.js.br": "br"}, &Options{NoPrecompressed: true, NoCompression: true})
	if r, _ := s.ask("GET", "/a.js", "Accept-Encoding: br"); r.head.Get("Vary") != "" || r.body != text(5000) {
		t.Errorf("got %v", r)
	}
}

// If all places for compressing are taken, the file is sent as it is, and in the
// coding the next time.
func TestCompressBusy(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": text(5000)}, nil)
	for range cap(s.squeeze) {
		s.squeeze <- struct{}{}
	}
	r := askPlain(s, "GET", "/a.js", "Accept-Encoding: br")
	if r.status != 200 || r.head.Get("Content-Encoding") != "" || r.head.Get("Vary") != "Accept-Encoding" || r.body != text(5000) {
		t.Errorf("got %v", r)
	}
	<-s.squeeze
	if r, _ := s.ask("GET", "/a.js", "Accept-Encoding: br"); r.head.Get("Content-Encoding") != "br" {
		t.Errorf("got %v", r)
	}
}

// Concurrent requests for a coding get it or the file.
func TestCompressTogether(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": text(100 << 10)}, nil)
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			r := askPlain(s, "GET", "/a.js", "Accept-Encoding: "+[]string{"br", "gzip", "zstd"}[i%3])
			if r.status != 200 || r.body != text(100<<10) && len(r.body) > 50<<10 {
				t.Errorf("got %v", r)
			}
		})
	}
	all.Wait()
}

// The same content has the same tag wherever it is, so several servers agree.
func TestTags(t *testing.T) {
	t.Parallel()
	a := newSite(t, map[string]string{"a.js": text(5000), "b.bin": noise(big)}, nil)
	b := newSite(t, map[string]string{"a.js": text(5000), "b.bin": noise(big)}, nil)
	b.date("a.js", time.Now().Add(-time.Hour))
	for _, lines := range [][]string{nil, {"Accept-Encoding: br"}, {"Accept-Encoding: gzip"}} {
		x, _ := a.ask("GET", "/a.js", lines...)
		y, _ := b.ask("GET", "/a.js", lines...)
		if tag := x.head.Get("Etag"); tag != y.head.Get("Etag") || len(tag) < 5 || tag[0] != '"' {
			t.Errorf("%q: %s, %s", lines, tag, y.head.Get("Etag"))
		}
	}
	x, _ := a.ask("GET", "/b.bin")
	y, _ := b.ask("GET", "/b.bin")
	if x.head.Get("Etag") != y.head.Get("Etag") {
		t.Error("large ones differ")
	}
	b.date("b.bin", old.Add(1)) // a nanosecond
	b.later()
	if y, _ = b.ask("GET", "/b.bin"); x.head.Get("Etag") == y.head.Get("Etag") {
		t.Error("another time, the same tag")
	}
}

// A release of which all files have one time, as those of reproducible builds, replaces the codings of a file too.
func TestCodingsOfOneTime(t *testing.T) {
	t.Parallel()
	a, b := text(100<<10), strings.ToUpper(text(100<<10))
	s := newSite(t, map[string]string{"a.js": a}, nil)
	for _, want := range []string{a, b, a} {
		s.write("new.js", want)
		if err := os.Rename(s.path("new.js"), s.path("a.js")); err != nil {
			t.Fatal(err)
		}
		s.later()
		for _, accept := range []string{"identity", "gzip", "br", "gzip"} {
			if r, _ := s.ask("GET", "/a.js", "Accept-Encoding: "+accept); r.status != 200 || decoded(t, r) != want {
				t.Errorf("%s: %v", accept, r)
			}
		}
	}
}

// The time of files that have none is no date, as in net/http.
func TestEpoch(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": text(5000), "b.bin": noise(big)}, nil)
	for _, name := range []string{"a.js", "b.bin"} {
		s.date(name, time.Unix(0, 0))
		for range 2 {
			r, _ := s.ask("GET", "/"+name, "If-Modified-Since: "+old.UTC().Format(http.TimeFormat))
			if r.status != 200 || r.head.Get("Last-Modified") != "" || r.head.Get("Etag") == "" {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// Siblings of one size and time, as tools make them that copy the time, are
// different representations all the same.
func TestTagsOfSiblings(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": noise(big), "a.js.gz": noise(big), "a.js.br": noise(big), "a.js.zst": noise(big)}, nil)
	seen := map[string]string{}
	for _, accept := range []string{"identity", "gzip", "br", "zstd"} {
		r, _ := s.ask("GET", "/a.js", "Accept-Encoding: "+accept)
		tag := r.head.Get("Etag")
		if r.status != 200 || seen[tag] != "" {
			t.Errorf("%s: %d, the tag %s is that of %q too", accept, r.status, tag, seen[tag])
		}
		seen[tag] = accept
	}
}

// Listings are compressed as files are, each form with its own tag.
func TestListingCodings(t *testing.T) {
	t.Parallel()
	files := map[string]string{"docs.br": "not this", "docs/.br": "nor this"}
	for i := range 40 {
		files[fmt.Sprintf("docs/file-%d.txt", i)] = text(i)
	}
	s := newSite(t, files, &Options{Listing: true, Dotfiles: true, Rules: []Rule{{"**", map[string]string{"X-Rule": "yes"}}}})
	targets := []string{"/docs/", "/docs/?format=json", "/docs/?sort=size", "/docs/?sort=size&order=desc", "/docs/?sort=size&order=desc&format=json"}
	seen := map[string]string{}
	for round := range 2 { // the second finds the coded forms of a listing that was made again
		for _, target := range targets {
			plain, direct := s.ask("GET", target, "Accept-Encoding: identity")
			if plain.status != 200 || !direct || plain.head.Get("Content-Encoding") != "" || plain.head.Get("Vary") != "Accept, Accept-Encoding" {
				t.Fatalf("%s: %v", target, plain)
			}
			for _, c := range []string{"", "br", "zstd", "gzip"} {
				what, accept := target+" in "+c, "Accept-Encoding: "+c
				r, direct := s.ask("GET", target, accept)
				if r.status != 200 || !direct || r.head.Get("Content-Encoding") != c || decoded(t, r) != plain.body || c != "" && len(r.body) > len(plain.body)/2 {
					t.Errorf("%s: %v", what, r)
				}
				tag := r.head.Get("Etag")
				if other, ok := seen[tag]; ok && other != what {
					t.Errorf("%s and %s have the tag %s", what, other, tag)
				}
				if seen[tag] = what; len(seen) > 4*len(targets) {
					t.Errorf("%s: the same listing has another tag", what)
				}
				head := plain.head.Clone()
				for _, name := range []string{"Etag", "Content-Encoding", "Content-Length"} {
					head[name] = r.head[name]
					if r.head[name] == nil {
						delete(head, name)
					}
				}
				if !reflect.DeepEqual(head, r.head) {
					t.Errorf("%s: %v, as it is %v", what, r.head, plain.head)
				}
				if h, _ := s.ask("HEAD", target, accept); h.status != 200 || h.body != "" || !reflect.DeepEqual(h.head, r.head) {
					t.Errorf("%s: HEAD has %v, GET %v", what, h.head, r.head)
				}
				if u, _ := s.ask("GET", target, accept, "If-None-Match: "+tag); u.status != 304 || u.head.Get("Etag") != tag || u.head.Get("Vary") != "Accept, Accept-Encoding" {
					t.Errorf("%s: %v", what, u)
				}
				if u, _ := s.ask("GET", target, "Accept-Encoding: identity", "If-None-Match: "+tag); (u.status == 304) != (c == "") {
					t.Errorf("%s: as it is, by the tag of the other form: %v", what, u)
				}
				if p, _ := s.ask("GET", target, accept, "Range: bytes=0-1"); p.status != 200 {
					t.Errorf("%s: a range of a listing: %v", what, p)
				}
			}
		}
		if round == 0 {
			s.later()
		}
	}
	// Another file makes it another listing, in every form.
	s.write("docs/new.txt", "new")
	s.later()
	for _, c := range []string{"", "br", "zstd", "gzip"} {
		r, _ := s.ask("GET", "/docs/", "Accept-Encoding: "+c)
		if seen[r.head.Get("Etag")] != "" || !strings.Contains(decoded(t, r), "new.txt") {
			t.Errorf("in %s it is as before", c)
		}
	}
	off := newSite(t, files, &Options{Listing: true, NoCompression: true})
	if r, _ := off.ask("GET", "/docs/", "Accept-Encoding: br"); r.head.Get("Content-Encoding") != "" || r.head.Get("Vary") != "Accept" {
		t.Errorf("off: %v", r)
	}
}
