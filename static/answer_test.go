package static

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const big = 200 << 10

var pages = map[string]string{
	"a.txt": "hello, world\n", "index.html": "<p>root</p>", "docs/index.html": "<p>docs</p>", "docs/x y.txt": "xy",
	"empty.txt": "", "big.bin": noise(big), "empty/": "", "docs/sub/file.css": "p {}", "noext": "just text",
	".git/config": "secret", ".hidden": "secret", ".well-known/acme": "token", "docs/.x": "secret", "colon/a:b/f.txt": "f",
}

// sources are the ways to the same files. exact is false where times are kept in
// whole seconds, or not at all.
var sources = []struct {
	name string
	use  func(s *site)
}{
	{"folder", func(*site) {}},
	{"os.Root", func(s *site) {
		tr, err := openRootTree(s.dir)
		if err != nil {
			s.t.Fatal(err)
		}
		useTree(s, tr)
	}},
	{"os.DirFS", func(s *site) { useFS(s, os.DirFS(s.dir)) }},
	{"MapFS", func(s *site) {
		m := fstest.MapFS{}
		for name, content := range pages {
			m[strings.TrimSuffix(name, "/")] = &fstest.MapFile{Data: []byte(content), ModTime: old, Mode: mode(name)}
		}
		useFS(s, m)
	}},
	{"zip", func(s *site) {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for name, content := range pages {
			f, err := w.CreateHeader(&zip.FileHeader{Name: name, Modified: old, Method: zip.Deflate})
			if err == nil && content != "" {
				_, err = io.WriteString(f, content)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
		w.Close()
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			s.t.Fatal(err)
		}
		useFS(s, z)
	}},
}

func mode(name string) fs.FileMode {
	if strings.HasSuffix(name, "/") {
		return fs.ModeDir | 0o777
	}
	return 0o666
}

// useFS makes s serve fsys.
func useFS(s *site, fsys fs.FS) {
	h, err := NewFS(fsys, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Handler.Close()
	s.use(h)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, src := range sources {
		t.Run(src.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, pages, nil)
			src.use(s)
			testAnswers(t, s, src.name)
		})
	}
}

func testAnswers(t *testing.T, s *site, source string) {
	for _, tt := range []struct {
		method, target string
		fields         string
		status         int
		head           string // "Name: value" that must be there, separated by |
		body           string // "*" is not compared
		direct         bool
	}{
		{"GET", "/a.txt", "", 200, "Content-Type: text/plain; charset=utf-8|Content-Length: 13|Accept-Ranges: bytes|Last-Modified: Fri, 17 May 2024 10:20:30 GMT|Vary: Accept-Encoding", "hello, world\n", true},
		{"HEAD", "/a.txt", "", 200, "Content-Length: 13", "", true},
		{"GET", "/a.txt?v=1", "", 200, "", "hello, world\n", true},
		{"GET", "/", "", 200, "Content-Type: text/html; charset=utf-8", "<p>root</p>", true},
		{"GET", "/docs/", "", 200, "", "<p>docs</p>", true},
		{"GET", "/index.html", "", 200, "", "<p>root</p>", true},
		{"GET", "/empty.txt", "", 200, "Content-Length: 0", "", true},
		{"GET", "/noext", "", 200, "Content-Type: text/plain; charset=utf-8", "just text", true},
		{"GET", "/docs/x%20y.txt", "", 200, "", "xy", true},
		{"GET", "/big.bin", "", 200, fmt.Sprintf("Content-Length: %d", big), noise(big), true},
		{"HEAD", "/big.bin", "", 200, fmt.Sprintf("Content-Length: %d|Accept-Ranges: bytes", big), "", true},
		// Redirects.
		{"GET", "/docs", "", 301, "Location: docs/", "", false},
		{"GET", "/docs?a=b", "", 301, "Location: docs/?a=b", "", false},
		{"GET", "/docs/sub?", "", 301, "Location: sub/", "", false},
		{"GET", "/colon/a:b", "", 301, "Location: ./a:b/", "", false},
		{"GET", "/a.txt/", "", 301, "Location: ../a.txt", "", false},
		{"GET", "/a.txt//", "", 301, "Location: ../../a.txt", "", false},
		{"GET", "/x/../docs", "", 301, "Location: docs/", "", false},
		{"GET", "//evil.example/../docs", "", 301, "Location: docs/", "", false},
		// Unclean paths.
		{"GET", "//a.txt", "", 200, "", "hello, world\n", false},
		{"GET", "/docs/../a.txt", "", 200, "", "hello, world\n", false},
		{"GET", "/../../a.txt", "", 200, "", "hello, world\n", false},
		{"GET", "/docs/./x%20y.txt", "", 200, "", "xy", false},
		// Not there.
		{"GET", "/nope", "", 404, "Content-Type: text/plain; charset=utf-8|X-Content-Type-Options: nosniff", "404 page not found\n", false},
		{"GET", "/empty/", "", 404, "", "*", false},
		{"GET", "/a.txt/b", "", 404, "", "*", false},
		{"GET", "/a%00b", "", 404, "", "*", false},
		{"GET", "/" + strings.Repeat("x", 300), "", 404, "", "*", false},
		{"GET", "/" + strings.Repeat("x/", 3000), "", 404, "", "*", false},
		{"GET", "/.git/config", "", 404, "", "*", false},
		{"GET", "/.hidden", "", 404, "", "*", false},
		{"GET", "/docs/.x", "", 404, "", "*", false},
		{"GET", "/docs/..%2f.hidden", "", 404, "", "*", false},
		{"GET", "/.well-known/acme", "", 200, "", "token", true},
		{"GET", "/%2e%2e/%2e%2e/etc/passwd", "", 404, "", "*", false},
		{"GET", "/..%5c..%5ca.txt", "", 404, "", "*", false},
		// Methods.
		{"POST", "/a.txt", "", 405, "Allow: GET, HEAD, OPTIONS", "Method Not Allowed\n", true},
		{"OPTIONS", "/a.txt", "", 204, "Allow: GET, HEAD, OPTIONS", "", true},
		{"DELETE", "/nope", "", 405, "Allow: GET, HEAD, OPTIONS", "*", true},
		// Conditions.
		{"GET", "/a.txt", "If-Modified-Since: Fri, 17 May 2024 10:20:30 GMT", 304, "Vary: Accept-Encoding", "", true},
		{"GET", "/a.txt", "If-Modified-Since: Fri, 17 May 2024 10:20:29 GMT", 200, "", "*", true},
		{"GET", "/a.txt", `If-None-Match: *`, 304, "", "", true},
		{"GET", "/a.txt", `If-None-Match: "x"|If-Modified-Since: Fri, 17 May 2024 10:20:30 GMT`, 200, "", "*", true},
		{"GET", "/a.txt", `If-Match: "x"`, 412, "", "Precondition Failed\n", true},
		{"HEAD", "/big.bin", `If-None-Match: *`, 304, "", "", true},
		// Ranges.
		{"GET", "/a.txt", "Range: bytes=7-11", 206, "Content-Range: bytes 7-11/13|Content-Length: 5", "world", true},
		{"GET", "/a.txt", "Range: bytes=-6", 206, "Content-Range: bytes 7-12/13", "world\n", true},
		{"HEAD", "/a.txt", "Range: bytes=7-11", 200, "Content-Length: 13", "", true},
		{"GET", "/a.txt", "Range: bytes=13-", 416, "Content-Range: bytes */13", "Requested Range Not Satisfiable\n", true},
		{"GET", "/a.txt", `Range: bytes=0-1|If-Range: "x"`, 200, "", "hello, world\n", true},
		{"GET", "/a.txt", "Range: lines=0-1", 200, "", "hello, world\n", true},
		{"GET", "/big.bin", "Range: bytes=100000-100009", 206, fmt.Sprintf("Content-Range: bytes 100000-100009/%d", big), noise(big)[100000:100010], true},
		{"GET", "/big.bin", "Range: bytes=0-", 206, fmt.Sprintf("Content-Range: bytes 0-%d/%d", big-1, big), noise(big), true},
		{"GET", "/a.txt", "Range: bytes=0-", 206, "Content-Range: bytes 0-12/13", "hello, world\n", true},
		{"GET", "/big.bin", "Range: bytes=999999-", 416, fmt.Sprintf("Content-Range: bytes */%d", big), "*", true},
		{"GET", "/empty.txt", "Range: bytes=0-", 200, "", "", true},
	} {
		var lines []string
		if tt.fields != "" {
			lines = strings.Split(tt.fields, "|")
		}
		large := strings.HasPrefix(tt.target, "/big")
		if large && source == "zip" && (strings.Contains(tt.fields, "Range") || tt.method == "HEAD") {
			continue // what is packed has no ranges
		}
		if large && source != "folder" && source != "os.Root" && tt.method == "GET" && tt.status < 300 {
			tt.direct = false // it is opened for each answer
		}
		r, direct := s.ask(tt.method, tt.target, lines...)
		what := fmt.Sprintf("%s %s %q", tt.method, tt.target, lines)
		if len(what) > 200 {
			what = what[:200]
		}
		if r.status != tt.status || tt.body != "*" && r.body != tt.body {
			t.Errorf("%s: %v", what, r)
		}
		if direct != tt.direct {
			t.Errorf("%s: direct is %v", what, direct)
		}
		if tt.head == "" {
			continue
		}
		for _, f := range parseLines(strings.Split(tt.head, "|")) {
			if r.head.Get(f[0]) != f[1] {
				t.Errorf("%s: %s is %q, want %q", what, f[0], r.head.Get(f[0]), f[1])
			}
		}
	}
}

// TestFutureDate: a file whose date is still to come has a tag and no date: a client that goes by dates alone would
// keep it, whatever is written to the file until then.
func TestFutureDate(t *testing.T) {
	t.Parallel()
	const large = defaultFileSize + 1
	s := newSite(t, map[string]string{"small.txt": "old", "large.bin": noise(large)}, nil)
	future := time.Now().Add(48 * time.Hour)
	known := "If-Modified-Since: " + future.UTC().Format(http.TimeFormat)
	for name, content := range map[string]string{"small.txt": "old", "large.bin": noise(large)} {
		s.date(name, future)
		r, _ := s.ask("GET", "/"+name, known)
		if r.status != 200 || r.body != content || r.head.Get("Last-Modified") != "" || r.head.Get("Etag") == "" {
			t.Errorf("%s: %v", name, r)
		}
		part := "If-Range: " + future.UTC().Format(http.TimeFormat)
		if r, _ := s.ask("GET", "/"+name, "Range: bytes=0-0", part); r.status != 200 {
			t.Errorf("%s: a part: %v", name, r)
		}
		if r, _ := s.ask("GET", "/"+name, "If-None-Match: "+r.head.Get("Etag")); r.status != 304 {
			t.Errorf("%s: its tag: %v", name, r)
		}
	}
}

// TestDateThatHasCome: when the date of a file has come, its responses have it, also those that are compressed.
func TestDateThatHasCome(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": strings.Repeat("f", compressMin)}, nil)
	date := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	s.date("f.txt", date)
	for _, tt := range []struct {
		at   time.Time
		want string
	}{{date.Add(-time.Second), ""}, {date.Add(time.Second), date.UTC().Format(http.TimeFormat)}} {
		s.Handler.wall = func() time.Time { return tt.at }
		s.later()
		for _, coding := range []string{"", "gzip"} {
			r, _ := s.ask("GET", "/f.txt", "Accept-Encoding: "+coding)
			if got := r.head.Get("Last-Modified"); got != tt.want || r.head.Get("Content-Encoding") != coding {
				t.Errorf("at %v: %q: %q", tt.at, coding, got)
			}
		}
	}
}

// TestDateOfThisSecond: a file that is dated later in the second, by a clock a little ahead, is not of the future.
func TestDateOfThisSecond(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": "f"}, nil)
	second := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	s.Handler.wall = func() time.Time { return second.Add(time.Second / 4) }
	s.date("f.txt", second.Add(time.Second/2))
	r, _ := s.ask("GET", "/f.txt")
	if got := r.head.Get("Last-Modified"); got != second.UTC().Format(http.TimeFormat) {
		t.Errorf("%q", got)
	}
}
