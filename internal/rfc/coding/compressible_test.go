package coding

import (
	"strings"
	"testing"
)

func TestCompressible(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mediaType string
		want      bool
	}{
		{"text/html; charset=utf-8", true},
		{"text/css", true},
		{"text/x-nobody-knows", true}, // text is text
		{"TEXT/HTML", true},           // any case
		{" text/html ;charset=utf-8", true},
		{"text/event-stream", true}, // its writer must flush
		{"application/json", true},
		{"Application/JSON;charset=utf-8", true},
		{"application/javascript", true},
		{"application/xml", true},
		{"application/wasm", true},
		{"application/ld+json", true}, // by suffix
		{"application/atom+xml", true},
		{"image/svg+xml", true},
		{"application/vnd.api+json; ext=\"a;b\"", true},
		{"application/yaml", true},
		{"font/ttf", true}, // not compressed themselves
		{"font/otf", true},
		{"application/vnd.ms-fontobject", true},
		{"image/bmp", true},
		{"image/vnd.microsoft.icon", true},
		{"application/vnd.apple.mpegurl", true},
		{"font/woff", false}, // deflate inside
		{"font/woff2", false},
		{"image/png", false},
		{"image/jpeg", false},
		{"image/webp", false},
		{"image/avif", false},
		{"video/mp4", false},
		{"audio/mpeg", false},
		{"application/zip", false},
		{"application/gzip", false},
		{"application/epub+zip", false}, // a suffix, but the wrong one
		{"application/pdf", false},
		{"application/octet-stream", false}, // could be anything
		{"multipart/byteranges; boundary=x", false},
		{"", false},
		{";", false},
		{"text", false},
		{"text/", false},
		{"/json", false},
		{"application/x-json+", false},
		{"application/json+x", false},
		{strings.Repeat("x", 1000) + "+json", false}, // too long to be one
	} {
		if got := Compressible(tt.mediaType); got != tt.want {
			t.Errorf("Compressible(%.60q) = %v, want %v", tt.mediaType, got, tt.want)
		}
	}
}

func TestCompressibleNames(t *testing.T) {
	t.Parallel()
	for name := range compressible {
		if name != strings.ToLower(name) || !strings.Contains(name, "/") || len(name) > maxType {
			t.Errorf("%q cannot be found", name)
		}
		if !Compressible(strings.ToUpper(name) + "; a=b") {
			t.Errorf("%q is not found", name)
		}
	}
}

func TestCompressibleAllocations(t *testing.T) {
	for _, s := range []string{"text/html; charset=utf-8", "Application/LD+JSON", "image/vnd.microsoft.icon", "video/mp4"} {
		if n := testing.AllocsPerRun(100, func() { Compressible(s) }); n != 0 {
			t.Errorf("Compressible(%q) allocates %v times", s, n)
		}
	}
}
