package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

const (
	small = "0123456789abcdef"
	large = 8 << 20 // more than a socket's buffers
)

var changed = time.Date(2024, time.February, 29, 12, 0, 0, 0, time.UTC)

func folder(t *testing.T) http.Handler {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"small.txt":        []byte(small),
		"empty.txt":        nil,
		"large.bin":        engines.Random(large),
		"sub/index.html":   []byte("<p>index</p>"),
		"list/a & b.txt":   []byte("a"),
		"no-ending":        []byte("<html>guess</html>"),
		"list/deeper/file": nil,
	} {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return handler(root.FS())
}

func TestRanges(t *testing.T) {
	h := folder(t)
	date := changed.Format(http.TimeFormat)
	later := changed.Add(time.Hour).Format(http.TimeFormat)
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, h)
		for _, c := range []struct {
			name   string
			header []string
			status int
			want   string
			rng    string
		}{
			{"none", nil, 200, small, ""},
			{"single", []string{"Range", "bytes=2-5"}, 206, "2345", "bytes 2-5/16"},
			{"first byte", []string{"Range", "bytes=0-0"}, 206, "0", "bytes 0-0/16"},
			{"from", []string{"Range", "bytes=10-"}, 206, "abcdef", "bytes 10-15/16"},
			{"suffix", []string{"Range", "bytes=-3"}, 206, "def", "bytes 13-15/16"},
			{"beyond the end", []string{"Range", "bytes=14-99"}, 206, "ef", "bytes 14-15/16"},
			{"not there", []string{"Range", "bytes=16-"}, 416, "invalid range: failed to overlap\n", "bytes */16"},
			{"not a range", []string{"Range", "bytes=x"}, 416, "invalid range\n", ""},
			{"If-Range holds", []string{"Range", "bytes=2-5", "If-Range", date}, 206, "2345", "bytes 2-5/16"},
			{"If-Range fails", []string{"Range", "bytes=2-5", "If-Range", later}, 200, small, ""},
			{"not modified", []string{"If-Modified-Since", date}, 304, "", ""},
			{"modified", []string{"If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT"}, 412, "", ""},
		} {
			res := s.Expect(t, "GET", "/small.txt", "", c.status, c.want, c.header...)
			if got := res.Header.Get("Content-Range"); got != c.rng {
				t.Errorf("%s: Content-Range %q, want %q", c.name, got, c.rng)
			}
		}
	})
}

func TestMultiRange(t *testing.T) {
	h := folder(t)
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, h)
		all := engines.Random(large)
		res, body := s.Do(t, "GET", "/large.bin", nil, "Range", "bytes=0-99,1000000-5999999,-10")
		_, params, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
		if err != nil || res.StatusCode != 206 {
			t.Fatal(res.Status, err)
		}
		parts := multipart.NewReader(bytes.NewReader([]byte(body)), params["boundary"])
		for _, want := range []struct{ from, to int }{{0, 100}, {1000000, 6000000}, {large - 10, large}} {
			p, err := parts.NextPart()
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(p)
			if err != nil || !bytes.Equal(got, all[want.from:want.to]) {
				t.Errorf("%d-%d: %d bytes, %v", want.from, want.to, len(got), err)
			}
			if got, want := p.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", want.from, want.to-1, large); got != want {
				t.Errorf("Content-Range %q, want %q", got, want)
			}
		}
		if _, err := parts.NextPart(); err != io.EOF {
			t.Errorf("after the last part: %v", err)
		}
	})
}

// A large file whole, in parts, and again on the same connection.
func TestLarge(t *testing.T) {
	h := folder(t)
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, h)
		all := string(engines.Random(large))
		for _, path := range []string{"/large.bin", "/save/large.bin"} {
			if res, got := s.Do(t, "GET", path, nil); got != all || res.ContentLength != large {
				t.Errorf("%s: %d bytes, length %d", path, len(got), res.ContentLength)
			}
		}
		if _, got := s.Do(t, "GET", "/large.bin", nil, "Range", "bytes=5-8000000"); got != all[5:8000001] {
			t.Errorf("range: %d bytes", len(got))
		}
		s.Expect(t, "GET", "/small.txt", "", 200, small)
	})
}

// A client that leaves in the middle does not affect others.
func TestLeaving(t *testing.T) {
	h := folder(t)
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, h)
		for range 20 {
			ctx, cancel := context.WithCancel(context.Background())
			req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/large.bin", nil)
			res, err := s.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.ReadFull(res.Body, make([]byte, 10000))
			cancel()
			res.Body.Close()
		}
		s.Expect(t, "GET", "/small.txt", "", 200, small)
	})
}

func TestSame(t *testing.T) {
	h := folder(t)
	get := func(path string, lines string) string { return "GET " + path + " HTTP/1.1\nHost: h\n" + lines + "\n" }
	engines.Same(t, func() http.Handler { return h }, nil,
		get("/small.txt", ""),
		"HEAD /small.txt HTTP/1.1\nHost: h\n\n",
		"GET /small.txt HTTP/1.0\n\n",
		"POST /small.txt HTTP/1.1\nHost: h\n\n",
		get("/empty.txt", ""),
		get("/large.bin", ""),
		get("/large.bin", "Connection: close\n"),
		"HEAD /large.bin HTTP/1.1\nHost: h\n\n",
		get("/no-ending", ""),
		get("/save/small.txt", "Range: bytes=1-2\n"),
		get("/sub", ""),
		get("/sub/", ""),
		get("/sub/index.html", ""),
		get("/list/", ""),
		get("/list/a%20&%20b.txt", ""),
		get("/../../etc/passwd", ""),
		get("/missing", ""),
		get("/small.txt", "Range: bytes=-3\n"),
		get("/small.txt", "Range: bytes=99-\n"),
		get("/small.txt", "If-Modified-Since: "+changed.Format(http.TimeFormat)+"\n"),
	)
}
