package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/static"
)

// reply has the parts of a response that the flags change.
type reply struct {
	status int
	body   string
	header http.Header
}

// fetch asks for path as a client of these fields ("Name: value").
func fetch(t *testing.T, base, path string, fields ...string) reply {
	t.Helper()
	head := http.Header{"Accept-Encoding": {"identity"}}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		head.Set(name, value)
	}
	c := newClient(t, "")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return send(t, c, base, path, "", head)
}

func TestFileFlags(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("compressible text ", 200)
	dir := folder(t, map[string]string{
		"index.html":         "front page",
		"sub/home.htm":       "home",
		"list/a.txt":         "a",
		".hidden":            "secret",
		".well-known/x":      "known",
		"404.html":           "not here",
		"app.3f9ac21b.js":    "hashed",
		"long.txt":           long,
		"pre.txt":            "plain",
		"pre.txt.gz":         "packed",
		"big.txt":            strings.Repeat(long, 3),
		"with space/f=x.txt": "x",
	})
	const browser = "Accept: text/html,*/*"
	tests := []struct {
		flags  string // separated by |
		path   string
		ask    string // a field of the request
		status int
		want   string // the body, or a part of it between *s, or "Name: value"
	}{
		{"", "", "", 200, "front page"},
		{"", "list/", "", 200, "*a.txt*"},
		{"--no-listing", "list/", "", 404, ""},
		{"", "sub/", "", 200, "*home.htm*"},
		{"--index|home.htm", "sub/", "", 200, "home"},
		{"--index|none|--index|home.htm", "sub/", "", 200, "home"},
		{"--index|", "", "", 200, "*long.txt*"},
		{"--index=|--no-listing", "", "", 404, ""},
		{"", ".hidden", "", 404, ""},
		{"", ".well-known/x", "", 200, "known"},
		{"--dotfiles", ".hidden", "", 200, "secret"},
		{"", "some/route", browser, 404, ""},
		{"--spa", "some/route", browser, 200, "front page"},
		{"--spa=404.html", "some/route", browser, 200, "not here"},
		{"--spa", "some/route.js", "Accept: */*", 404, ""},
		{"--not-found|404.html", "nothing", "", 404, "not here"},
		{"--not-found|/404.html", "nothing", "", 404, "not here"},
		{"", "app.3f9ac21b.js", "", 200, "Cache-Control: "},
		{"--immutable", "app.3f9ac21b.js", "", 200, "Cache-Control: public, max-age=31536000, immutable"},
		{"--header|*.txt=X-A: 1", "long.txt", "", 200, "X-A: 1"},
		{"--header|*.txt=X-A: 1", "index.html", "", 200, "X-A: "},
		{"--header|X-A: a=b: c", "index.html", "", 200, "X-A: a=b: c"},
		{"--header|list/**=X-A: 1", "list/a.txt", "", 200, "X-A: 1"},
		{"--header|X-A: 1|--header|*.txt=X-A: 2", "list/a.txt", "", 200, "X-A: 2"},
		{"--header|X-A: 1|--header|*.txt=X-A:", "list/a.txt", "", 200, "X-A: "},
		{"--cache-control|*.txt=no-cache", "long.txt", "", 200, "Cache-Control: no-cache"},
		{"--cache-control|*=max-age=60", "long.txt", "", 200, "Cache-Control: max-age=60"},
		{"--cache-control|max-age=60", "long.txt", "", 200, "Cache-Control: max-age=60"},
		{"--cache-control|public, max-age=60", "long.txt", "", 200, "Cache-Control: public, max-age=60"},
		{"--cache-control|*.{txt,js}=no-store", "long.txt", "", 200, "Cache-Control: no-store"},
		{"--cache-control|no-cache|--immutable", "app.3f9ac21b.js", "", 200, "Cache-Control: no-cache"},
		{"", "long.txt", "Accept-Encoding: gzip", 200, "Content-Encoding: gzip"},
		{"--no-compression", "long.txt", "Accept-Encoding: gzip", 200, long},
		{"--compress-max|1k", "long.txt", "Accept-Encoding: gzip", 200, long},
		{"", "pre.txt", "Accept-Encoding: gzip", 200, "packed"},
		{"--no-precompressed", "pre.txt", "Accept-Encoding: gzip", 200, "plain"},
		{"--cache|0", "long.txt", "", 200, long},
		{"--cache|1MiB|--cache-file-size|1KiB|--open-files|1", "big.txt", "", 200, "*compressible*"},
	}
	groups := make(map[string]*proc)
	for _, tt := range tests {
		p := groups[tt.flags]
		if p == nil {
			args := []string{dir, "--listen", "127.0.0.1:0"}
			if tt.flags != "" {
				args = append(args, strings.Split(tt.flags, "|")...)
			}
			p = start(t, args...)
			groups[tt.flags] = p
		}
		var ask []string
		if tt.ask != "" {
			ask = []string{tt.ask}
		}
		for range 2 { // on both ways
			got := fetch(t, p.urls[0], tt.path, ask...)
			ok := tt.want == "" || got.body == tt.want
			if inner := strings.Trim(tt.want, "*"); inner != tt.want {
				ok = strings.Contains(got.body, inner)
			} else if name, value, isField := strings.Cut(tt.want, ": "); isField {
				ok = got.header.Get(name) == value
			}
			if got.status != tt.status || !ok {
				t.Errorf("%s: GET /%s (%s): %d %v %.80q, want %d %.80q", tt.flags, tt.path, tt.ask, got.status, got.header, got.body, tt.status, tt.want)
			}
		}
	}
	r := fetch(t, groups[""].urls[0], "long.txt", "Accept-Encoding: gzip")
	z, err := gzip.NewReader(strings.NewReader(r.body))
	if err == nil {
		var b []byte
		b, err = io.ReadAll(z)
		r.body = string(b)
	}
	if err != nil || r.body != long {
		t.Errorf("the compressed body: %v", err)
	}
}

func TestFileFlagErrors(t *testing.T) {
	t.Parallel()
	const see = `; see "chert serve --help"`
	dir := folder(t, map[string]string{"f": "", "sub/f": ""})
	bad := func(flag, arg, why string) {
		t.Helper()
		oneLine(t, exitUsage, fmt.Sprintf(`chert: invalid argument %q for "%s" flag: %s%s`, arg, flag, why, see), "serve", dir, flag+"="+arg)
	}
	const header = `want 'PATTERN=NAME: VALUE', as in '*.html=Cache-Control: no-cache', or 'NAME: VALUE'`
	const control = `want 'PATTERN=VALUE', as in '*.html=no-cache' or '*=max-age=3600', or 'VALUE'`
	const size = "wants a size such as 64MiB, 500kB or 4096"
	bad("--index", "a/b", "want the name of a file, not a path")
	bad("--index", "..", "want the name of a file, not a path")
	bad("--spa", "../f", "want a path within the folder")
	bad("--not-found", "", "want a path within the folder")
	bad("--header", "*.html", header)
	bad("--header", "=X: y", header)
	bad("--header", "*.html=: y", header)
	bad("--header", "[a=X: y", `"[a" is not a valid pattern`)
	bad("--header", "*=Content-Length: 1", `the field "Content-Length" cannot be set`)
	bad("--header", "*=X Y: 1", `the field "X Y" cannot be set`)
	bad("--cache-control", "*.html=", control)
	bad("--cache-control", "=no-cache", control)
	bad("--cache-control", "", control)
	bad("--cache", "much", size)
	bad("--cache", "-1", size)
	bad("--cache-file-size", "0", "want more than 0")
	bad("--compress-max", "0", "want more than 0")
	bad("--open-files", "0", "want a number from 1 to 1048576")
	bad("--open-files", "x", "want a number from 1 to 1048576")

	oneLine(t, exitFailure, `chert: --spa: there is no file "index.html" in "`+dir+`"`, "serve", dir, "--spa")
	oneLine(t, exitFailure, `chert: --not-found: "sub" in "`+dir+`" is not a file`, "serve", dir, "--not-found", "sub")
	file := filepath.Join(dir, "f")
	oneLine(t, exitFailure, `chert: "`+file+`" is not a folder; the file of --spa comes after an equals sign: --spa=FILE`,
		"serve", "--spa", file)
	oneLine(t, exitUsage, "chert: --config and --spa contradict each other; write it into the file"+see, "serve", "-c", "x", "--spa")
	oneLine(t, exitUsage, "chert: --config and a folder contradict each other; the folders of a configuration are in its file"+see,
		"serve", "-c", "x", dir)
	oneLine(t, exitUsage, "chert: --config wants the name of a file"+see, "serve", "-c", "")
	oneLine(t, exitUsage, `chert: want one file, as in "chert check FILE"; see "chert check --help"`, "check")
	oneLine(t, exitFailure, "chert: /nowhere: no such file", "serve", "-c", "/nowhere")
}

// Rules are in the order of the command line, whichever flag they come from.
func TestRuleFlags(t *testing.T) {
	t.Parallel()
	var f fileFlags
	for _, one := range []struct {
		header bool
		arg    string
	}{{true, "*.html=A: 1"}, {false, "*.js=no-cache"}, {true, "B:2"}, {false, "MAX-AGE=3"}, {false, "max-age=5,public"}, {false, "*.{a,b}=x=y"}} {
		var err error
		if one.header {
			err = (*headerFlag)(&f.rules).Set(one.arg)
		} else {
			err = (*cacheControlFlag)(&f.rules).Set(one.arg)
		}
		if err != nil {
			t.Errorf("%s: %v", one.arg, err)
		}
	}
	var got []string
	for _, r := range f.rules {
		got = append(got, fmt.Sprintf("%s %v", r.Match, r.Header))
	}
	want := []string{
		"*.html map[A:1]", "*.js map[Cache-Control:no-cache]", config.MatchAll + " map[B:2]",
		config.MatchAll + " map[Cache-Control:MAX-AGE=3]", config.MatchAll + " map[Cache-Control:max-age=5,public]",
		"*.{a,b} map[Cache-Control:x=y]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if o := f.options(); o.CacheBytes >= 0 || !o.Listing || o.Index != nil { // 0 of --cache is none
		t.Errorf("%+v", o)
	}
	var _ static.Options
}

func TestSummary(t *testing.T) {
	needSignals(t)
	t.Parallel()
	p := start(t, folder(t, map[string]string{"f": strings.Repeat("x", 1000)}), "--listen", "127.0.0.1:0")
	for range 20 {
		fetch(t, p.urls[0], "f")
	}
	fetch(t, p.urls[0], "missing")
	p.signal(syscall.SIGTERM)
	p.line() // that it stops
	first, second, third := p.line(), p.line(), p.line()
	p.waitFor(exitOK)
	if !strings.HasPrefix(first, "chert: 21 requests and 19.6KiB in ") && !strings.HasPrefix(first, "chert: 21 requests and 19.5KiB in ") ||
		!strings.HasPrefix(second, "chert: 1 answered 4xx, 0 answered 5xx; ") || !strings.HasSuffix(second, " % from the cache\n") ||
		!strings.HasPrefix(third, `chert: slowest: GET "/`) {
		t.Errorf("%s%s%s", first, second, third)
	}
}
