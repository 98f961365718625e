package static

import (
	"archive/zip"
	"bytes"
	"embed"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

//go:embed *.go
var embedded embed.FS

// embed.FS has no times: there are tags of the content, and no Last-Modified.
func TestEmbed(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 100} {
		h, err := NewFS(embedded, &Options{CacheFileSize: limit})
		if err != nil {
			t.Fatal(err)
		}
		s := &site{t: t}
		s.use(h)
		want, _ := embedded.ReadFile("doc.go")
		r, direct := s.ask("GET", "/doc.go")
		if r.status != 200 || r.body != string(want) || r.head.Get("Last-Modified") != "" || len(r.head.Get("Etag")) < 10 || direct != (limit == 0) {
			t.Errorf("%d: direct %v, %v", limit, direct, r)
		}
		if r, direct := s.ask("HEAD", "/doc.go"); r.status != 200 || !direct {
			t.Errorf("%d: %v", limit, r)
		}
		if u, direct := s.ask("GET", "/doc.go", "If-None-Match: "+r.head.Get("Etag")); u.status != 304 || !direct {
			t.Errorf("%d: %v", limit, u)
		}
		if p, _ := s.ask("GET", "/doc.go", "Range: bytes=100-119"); p.status != 206 || p.body != string(want[100:120]) {
			t.Errorf("%d: %v", limit, p)
		}
		if b, _ := s.ask("GET", "/doc.go", "Accept-Encoding: gzip"); decoded(t, b) != string(want) {
			t.Errorf("%d: %v", limit, b)
		}
		s.later()
		if _, direct := s.ask("GET", "/doc.go"); direct != (limit == 0) {
			t.Errorf("%d: it is loaded again", limit)
		}
		h.Close()
	}
}

// A file that is larger than the limit and cannot be moved in is sent whole, and
// says that it has no ranges.
func TestPacked(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, _ := w.CreateHeader(&zip.FileHeader{Name: "big.bin", Modified: old, Method: zip.Deflate})
	io.WriteString(f, noise(big))
	w.Close()
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewFS(z, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	s.use(h)
	for _, lines := range [][]string{nil, {"Range: bytes=5-6"}, {"Range: bytes=5-6,8-9"}} {
		if r, _ := s.ask("GET", "/big.bin", lines...); r.status != 200 || r.body != noise(big) || r.head.Get("Accept-Ranges") != "" {
			t.Errorf("%q: %v", lines, r)
		}
	}
}

// What changes in an fs.FS is noticed too.
func TestFSChanges(t *testing.T) {
	t.Parallel()
	m := fstest.MapFS{"a.txt": {Data: []byte("one"), ModTime: old}, "big": {Data: []byte(noise(big)), ModTime: old}}
	h, err := NewFS(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	s.use(h)
	if s.get("/a.txt") != "one" || s.get("/big") != noise(big) {
		t.Error("not the first")
	}
	m["a.txt"] = &fstest.MapFile{Data: []byte("two"), ModTime: old.Add(time.Second)}
	m["big"] = &fstest.MapFile{Data: []byte(text(big)), ModTime: old.Add(time.Second)}
	if got := s.get("/big"); got != text(big) { // opened for each, so seen at once
		t.Errorf("got %.20q", got)
	}
	s.later()
	if got := s.get("/a.txt"); got != "two" {
		t.Errorf("got %q", got)
	}
	delete(m, "a.txt")
	s.later()
	if got := s.status("/a.txt"); got != 404 {
		t.Errorf("got %d", got)
	}
}

// Names that package fs does not allow are not there.
func TestFSNames(t *testing.T) {
	t.Parallel()
	h, err := NewFS(fstest.MapFS{"a.txt": {Data: []byte("a"), ModTime: old}}, &Options{Listing: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	s.use(h)
	for target, want := range map[string]int{"/%ff": 404, "/a%00": 404, "/../a.txt": 200, "/": 200, "//": 200, "/a.txt/": 301} {
		if got := s.status(target); got != want {
			t.Errorf("%s: %d", target, got)
		}
	}
}

// A file whose reading fails midway is no short answer.
func TestFSBreaks(t *testing.T) {
	t.Parallel()
	h, err := NewFS(brokenFS{fstest.MapFS{"big": {Data: []byte(noise(big)), ModTime: old}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t}
	s.use(h)
	if r := askPlain(h, "GET", "/big"); r.status != -1 {
		t.Errorf("got %v", r)
	}
}

// brokenFS's files end early.
type brokenFS struct{ fs.FS }

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if err != nil || strings.HasSuffix(name, ".") {
		return f, err
	}
	return &shortFile{File: f, left: 1000}, nil
}

type shortFile struct {
	fs.File
	left int
}

func (f *shortFile) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.File.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

func TestNewFSNil(t *testing.T) {
	t.Parallel()
	if _, err := NewFS(nil, &Options{SPA: "index.html"}); err == nil || !strings.HasPrefix(err.Error(), "static: NewFS: ") {
		t.Error(err)
	}
}
