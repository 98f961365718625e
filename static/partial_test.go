package static

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// readParts reads a multipart answer as "start-end:content" of each part.
func readParts(t *testing.T, head http.Header, body io.Reader) (parts []string) {
	t.Helper()
	kind, params, err := mime.ParseMediaType(head.Get("Content-Type"))
	if err != nil || kind != "multipart/byteranges" {
		t.Errorf("%v %q", err, kind)
		return nil
	}
	r := multipart.NewReader(body, params["boundary"])
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return parts
		}
		if err != nil {
			t.Error(err)
			return parts
		}
		parts = append(parts, p.Header.Get("Content-Type")+" "+strings.TrimPrefix(p.Header.Get("Content-Range"), "bytes ")+":"+mustRead(t, p))
	}
}

// Several ranges, of what is in memory, kept open, or opened for the answer.
func TestSeveralRanges(t *testing.T) {
	t.Parallel()
	content := noise(big)
	part := func(a, b int) string {
		return fmt.Sprintf("application/octet-stream %d-%d/%d:%s", a, b, big, content[a:b+1])
	}
	want := []string{part(0, 9), part(100000, 100099), part(big-5, big-1)}
	for name, o := range map[string]*Options{"memory": {CacheFileSize: big}, "kept": nil, "opened": {OpenFiles: -1}} {
		s := newSite(t, map[string]string{"f.bin": content}, o)
		r, direct := s.ask("GET", "/f.bin", "Range: bytes=0-9,100000-100099,-5")
		if r.status != 206 || direct || r.head.Get("Content-Length") != fmt.Sprint(len(r.body)) {
			t.Errorf("%s: direct %v, %v", name, direct, r)
		}
		if got := readParts(t, r.head, strings.NewReader(r.body)); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %d parts", name, len(got))
		}
		// Ranges that touch are one, and a flood is none.
		if r, _ := s.ask("GET", "/f.bin", "Range: bytes=0-4,5-9"); r.status != 206 || r.body != content[:10] || r.head.Get("Content-Range") == "" {
			t.Errorf("%s: %v", name, r)
		}
		if r, _ := s.ask("GET", "/f.bin", "Range: bytes="+strings.Repeat("0-,", 100)+"0-"); r.status != 200 || r.body != content {
			t.Errorf("%s: %v", name, r)
		}
		if r, _ := s.ask("HEAD", "/f.bin", "Range: bytes=0-9,20-29"); r.status != 200 {
			t.Errorf("%s: %v", name, r)
		}
	}
}

// The same over net/http's server, which has sendfile of its own.
func TestNetHTTP(t *testing.T) {
	t.Parallel()
	content := noise(5 << 20)
	s := newSite(t, map[string]string{"f.bin": content, "a.txt": "hello, world\n", "a.js": text(5000)}, nil)
	srv := httptest.NewServer(s.Handler)
	defer srv.Close()
	get := func(name string, lines ...string) (*http.Response, string) {
		t.Helper()
		r, _ := http.NewRequest("GET", srv.URL+name, nil)
		for _, l := range parseLines(lines) {
			r.Header.Set(l[0], l[1])
		}
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res, mustRead(t, res.Body)
	}
	for range 3 {
		if res, body := get("/f.bin"); res.StatusCode != 200 || body != content || res.ContentLength != int64(len(content)) {
			t.Errorf("got %d, %d bytes", res.StatusCode, len(body))
		}
		if res, body := get("/f.bin", "Range: bytes=3000000-4999999"); res.StatusCode != 206 || body != content[3000000:5000000] {
			t.Errorf("got %d, %d bytes", res.StatusCode, len(body))
		}
		if res, body := get("/f.bin", "Range: bytes=0-9,4000000-4999999"); res.StatusCode != 206 || len(readParts(t, res.Header, strings.NewReader(body))) != 2 {
			t.Errorf("got %d, %d bytes", res.StatusCode, len(body))
		}
		if res, body := get("/a.txt"); res.StatusCode != 200 || body != "hello, world\n" {
			t.Errorf("got %d, %q", res.StatusCode, body)
		}
		if res, body := get("/a.js"); !res.Uncompressed || body != text(5000) {
			t.Errorf("got %v", res.Header)
		}
	}
}
