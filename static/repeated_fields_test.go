package static

import (
	"strings"
	"testing"
)

// Accept says by any of its lines what is wanted.
func TestSeveralLinesOfAccept(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"app.html": "the app", "docs/a.txt": "a"}, &Options{Listing: true, SPA: "app.html"})
	if r, _ := s.ask("GET", "/docs/", "Accept: text/plain", "Accept: application/json"); r.head.Get("Content-Type") != "application/json" {
		t.Errorf("got %v", r)
	}
	if r, _ := s.ask("GET", "/nope.html", "Accept: image/png", "Accept: text/html"); r.body != "the app" {
		t.Errorf("got %v", r)
	}
}

// Several lines of a field that is a list are one (RFC 9110 section 5.3); of one
// that is none they are malformed.
func TestSeveralLines(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.js": text(5000), "big.bin": noise(big)}, nil)
	r, _ := s.ask("GET", "/a.js")
	tag := r.head.Get("Etag")
	for _, tt := range []struct {
		target string
		lines  string
		status int
		coding string
	}{
		{"/a.js", "Accept-Encoding: deflate|Accept-Encoding: gzip", 200, "gzip"},
		{"/a.js", "Accept-Encoding: gzip;q=0.5|Accept-Encoding: br;q=0.9|Accept-Encoding: zstd", 200, "zstd"},
		{"/a.js", "Accept-Encoding: gzip|Accept-Encoding: gzip;q=0", 200, "gzip"},
		{"/a.js", "Accept-Encoding: |Accept-Encoding: identity;q=0", 200, ""},
		{"/a.js", `If-None-Match: "x"|If-None-Match: TAG`, 304, ""},
		{"/a.js", `If-None-Match: "x"|If-None-Match: "y", "z"`, 200, ""},
		{"/a.js", `If-Match: "x"|If-Match: TAG`, 200, ""},
		{"/a.js", `If-Match: "x"|If-Match: "y"`, 412, ""},
		{"/a.js", "Range: bytes=0-1", 206, ""},
		{"/a.js", "Range: bytes=0-1|Range: bytes=3-4", 200, ""},
		{"/a.js", "Range: bytes=0-1|Range: bytes=0-1", 200, ""},
		{"/a.js", "Range: items=0-1|Range: bytes=0-1", 200, ""},
		{"/big.bin", "Range: bytes=0-1|Range: bytes=3-4", 200, ""},
		{"/big.bin", "Range: bytes=99999999-|Range: bytes=0-1", 200, ""},
	} {
		lines := strings.Split(strings.ReplaceAll(tt.lines, "TAG", tag), "|")
		if r, _ := s.ask("GET", tt.target, lines...); r.status != tt.status || r.head.Get("Content-Encoding") != tt.coding {
			t.Errorf("%s %q: %v", tt.target, lines, r)
		}
	}
}
