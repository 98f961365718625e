package media

import (
	"mime"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestType(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, want string }{
		{"index.html", "text/html; charset=utf-8"},
		{"INDEX.HTML", "text/html; charset=utf-8"},                  // case does not matter
		{"a/b.c/app.3f9ac21b.js", "text/javascript; charset=utf-8"}, // the last dot counts
		{"worker.mjs", "text/javascript; charset=utf-8"},
		{"site.css", "text/css; charset=utf-8"},
		{"data.json", "application/json"}, // no charset
		{"app.js.map", "application/json"},
		{"site.webmanifest", "application/manifest+json"},
		{"feed.xml", "application/xml"}, // says its charset itself
		{"logo.svg", "image/svg+xml"},
		{"lib.wasm", "application/wasm"}, // browsers compile no other type while it streams
		{"a.woff2", "font/woff2"},
		{"a.avif", "image/avif"},
		{"a.webp", "image/webp"},
		{"a.jxl", "image/jxl"},
		{"favicon.ico", "image/vnd.microsoft.icon"},
		{"README.md", "text/markdown; charset=utf-8"},
		{"robots.txt", "text/plain; charset=utf-8"},
		{"main.go", "text/plain; charset=utf-8"}, // shown, not saved
		{"seg1.ts", "video/mp2t"},                // video, not TypeScript
		{"live.m3u8", "application/vnd.apple.mpegurl"},
		{"a.mp4", "video/mp4"},
		{"x.tar.gz", "application/gzip"},
		{"cal.ics", "text/calendar; charset=utf-8"},
		{".html", "text/html; charset=utf-8"}, // as path.Ext has it
		{"", ""},
		{"README", ""},
		{"a.b/README", ""}, // a dot in a folder's name is none in the file's
		{"a.html/", ""},
		{"trailing.", ""},
		{".", ""},
		{"..", ""},
		{"x.nobody-has-this-one", ""},  // longer than any of the table
		{"x.html\x00", ""},             // NUL is a byte like others
		{"x.htm\u0130", ""},            // not folded to an ASCII letter
		{"x.HTML" + "extended999", ""}, // no match of a part
	} {
		if got := Type(tt.name); got != tt.want {
			t.Errorf("Type(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestFallback: what only the system knows is asked of package mime.
func TestFallback(t *testing.T) {
	t.Parallel()
	if err := mime.AddExtensionType(".chert-test", "application/x-chert"); err != nil {
		t.Fatal(err)
	}
	if err := mime.AddExtensionType(".ct", "application/x-chert-short"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a.chert-test": "application/x-chert",       // longer than what the table has
		"a.CHERT-TEST": "application/x-chert",       // in any case
		"a.ct":         "application/x-chert-short", // short enough, not in the table
	} {
		if got := Type(name); got != want {
			t.Errorf("Type(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestTable holds the table to what Type and its readers rely on.
func TestTable(t *testing.T) {
	t.Parallel()
	longest := 0
	for ext, typ := range types {
		longest = max(longest, len(ext))
		if ext != strings.ToLower(ext) || ext == "" || strings.ContainsAny(ext, "./ ") {
			t.Errorf("%q is no extension in lower case without its dot", ext)
		}
		media, params, err := mime.ParseMediaType(typ)
		if err != nil {
			t.Errorf("%s: %q: %v", ext, typ, err)
			continue
		}
		if again := mime.FormatMediaType(media, params); again != typ {
			t.Errorf("%s: %q, in canonical form %q", ext, typ, again)
		}
		_, charset := params["charset"]
		if text := strings.HasPrefix(media, "text/"); text != charset {
			t.Errorf("%s: %q: charset is for text/* and for that only", ext, typ)
		}
	}
	if longest != maxExt {
		t.Errorf("the longest extension has %d bytes, maxExt is %d", longest, maxExt)
	}
}

// TestBuiltin compares with the types that package mime has whatever the
// system says; where they differ, it is on purpose.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	for ext, want := range map[string]string{
		".avif": "image/avif", ".css": "text/css; charset=utf-8", ".gif": "image/gif", ".htm": "text/html; charset=utf-8",
		".html": "text/html; charset=utf-8", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript; charset=utf-8",
		".json": "application/json", ".mjs": "text/javascript; charset=utf-8", ".pdf": "application/pdf", ".png": "image/png",
		".svg": "image/svg+xml", ".wasm": "application/wasm", ".webp": "image/webp",
	} {
		if got := Type("x" + ext); got != want {
			t.Errorf("%s: %q, package mime has %q", ext, got, want)
		}
	}
}

func TestAllocations(t *testing.T) {
	for _, name := range []string{"index.html", "a/b/APP.JS", "x.webmanifest", "README"} {
		if n := testing.AllocsPerRun(100, func() { Type(name) }); n != 0 {
			t.Errorf("Type(%q) allocates %v times", name, n)
		}
	}
}

// FuzzType compares with package path and the table, read the slow way.
func FuzzType(f *testing.F) {
	for _, s := range []string{"a.html", "A.HTML", "a.b/c", "x.", ".js", "x.\u212A", "\xff.css"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Type(name)
		ext := strings.TrimPrefix(path.Ext(name), ".")
		if ext == "" {
			if got != "" {
				t.Errorf("Type(%q) = %q, there is no extension", name, got)
			}
			return
		}
		want, own := "", false
		if ascii(ext) {
			want, own = types[strings.ToLower(ext)]
		}
		if !own {
			want = mime.TypeByExtension("." + ext)
		}
		if got != want {
			t.Errorf("Type(%q) = %q, want %q", name, got, want)
		}
	})
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func BenchmarkType(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Type("assets/app.3f9ac21b.js")
	}
}
