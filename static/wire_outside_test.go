package static_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/static"
)

// This file tries to get bytes of files that are not served.

const (
	// outsideMark is in every file outside of the folder, and in the name of
	// one; hiddenMark is in every dotfile.
	outsideMark = "MARK-OF-WHAT-IS-OUTSIDE"
	hiddenMark  = "MARK-OF-WHAT-IS-HIDDEN"
)

// guarded makes a folder that is served, with links of all kinds out of it, and
// gives its path.
func guarded(t testing.TB) string {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	makeTree(t, base, map[string]string{
		"secret.txt":                        outsideMark,
		"www-2/secret.txt":                  outsideMark, // a sibling whose path begins as the folder's
		"outside/secret.txt":                outsideMark,
		"outside/index.html":                outsideMark,
		"outside/" + outsideMark:            outsideMark,
		"outside/deep/secret.txt":           outsideMark,
		"www/index.html":                    "the index",
		"www/a.txt":                         "a",
		"www/dir/b.txt":                     "b",
		"www/dir/index.html":                "the index of dir",
		"www/bare/c.txt":                    "c",
		"www/bare/sub/d.txt":                "d",
		"www/app.js":                        strings.Repeat("app();\n", 1000),
		"www/dir..b/c...txt":                "dots",
		"www/%2e%2e/e.txt":                  "e", // names that look like the encoding of others
		"www/a%2fb":                         "no slash",
		"www/back\\slash.txt":               "back",
		"www/sp ace.txt":                    "space",
		"www/\xff\xfe.txt":                  "bytes",
		"www/\xc0\xae\xc0\xae/overlong.txt": "overlong", // ".." in overlong UTF-8 is a name like others
		"www/.hidden":                       hiddenMark,
		"www/.git/config":                   hiddenMark,
		"www/dir/.env":                      hiddenMark,
		"www/dir/.d/x.txt":                  hiddenMark,
		"www/.well-known/security.txt":      "contact",
		"www/.well-known/.secret":           hiddenMark,
		"www/dir/.well-known/not-here":      hiddenMark, // RFC 8615: it is at the root alone
		"www/links/abs.txt":                 "-> " + base + "/outside/secret.txt",
		"www/links/rel.txt":                 "-> ../../outside/secret.txt",
		"www/links/abs":                     "-> " + base + "/outside",
		"www/links/rel":                     "-> ../../outside",
		"www/links/far":                     "-> ../../../../../../../../../../../../../../../../../.." + base + "/outside",
		"www/links/chain1.txt":              "-> chain2.txt",
		"www/links/chain2.txt":              "-> ../links/chain3.txt",
		"www/links/chain3.txt":              "-> " + base + "/secret.txt",
		"www/links/chain1":                  "-> chain2",
		"www/links/chain2":                  "-> ../../outside/../outside",
		"www/links/twice.txt":               "-> rel/secret.txt",
		"www/links/root":                    "-> /",
		"www/links/proc":                    "-> /proc/self/root",
		"www/links/cwd":                     "-> /proc/self/cwd",
		"www/links/fd":                      "-> /proc/self/fd",
		"www/links/environ":                 "-> /proc/self/environ",
		"www/links/out-and-in.txt":          "-> ../../www/a.txt",
		"www/links/abs-in.txt":              "-> " + base + "/www/a.txt",
		"www/links/loop":                    "-> loop",
		"www/links/loop1":                   "-> loop2",
		"www/links/loop2":                   "-> loop1",
		"www/links/dangling":                "-> nowhere",
		"www/links/self":                    "-> .",
		"www/links/in.txt":                  "-> ../dir/b.txt",
		"www/links/in":                      "-> ../dir",
		"www/linked.js":                     "some code",
		"www/linked.js.br":                  "-> ../outside/secret.txt",
		"www/linked.js.gz":                  "-> " + base + "/secret.txt",
		"www/linked.js.zst":                 "-> links/chain1.txt",
		"www/idx/index.html":                "-> ../../outside/index.html",
		"www/dir/up":                        "-> ..",
		"www/dir/up-and-out":                "-> ../../outside",
	})
	return base + "/www"
}

// targets are raw request targets; those that are served have content.
var outsideTargets = []struct{ target, content string }{
	{"/", "the index"}, {"/a.txt", "a"}, {"/dir/b.txt", "b"}, {"/dir/", "the index of dir"}, {"/bare/sub/d.txt", "d"},
	{"/%61.txt", "a"}, {"/dir%2fb.txt", "b"}, {"/./a.txt", "a"}, {"//a.txt", "a"}, {"///dir//b.txt", "b"}, {"/dir/../a.txt", "a"}, {"/dir/%2e%2e/a.txt", "a"},
	{"/dir/.%2E/a.txt", "a"}, {"/dir/%2e./a.txt", "a"}, {"/a.txt?x=/../../secret.txt", "a"}, {"/../a.txt", "a"}, {"/..%2fa.txt", "a"}, {"/nope/../a.txt", "a"},
	{"http://example.com/a.txt", "a"}, {"http://other.example/dir/../a.txt", "a"}, {"http://example.com//a.txt", "a"}, {"HTTP://example.com/a.txt", "a"},
	{"/dir..b/c...txt", "dots"}, {"/dir..b/..c.txt", ""}, {"/%252e%252e/e.txt", "e"}, {"/a%252fb", "no slash"}, {"/back%5cslash.txt", "back"}, {"/back\\slash.txt", "back"},
	{"/sp%20ace.txt", "space"}, {"/%ff%fe.txt", "bytes"}, {"/\xff\xfe.txt", "bytes"}, {"/%c0%ae%c0%ae/overlong.txt", "overlong"},
	{"/.well-known/security.txt", "contact"}, {"/dir/../.well-known/security.txt", "contact"},
	{"/links/in.txt", "b"}, {"/links/in/b.txt", "b"}, {"/links/self/self/self/in.txt", "b"}, {"/dir/up/a.txt", "a"}, {"/dir/up/dir/up/dir/b.txt", "b"},
	{"/linked.js", "some code"},

	{"/../secret.txt", ""}, {"/../../secret.txt", ""}, {"/../outside/secret.txt", ""}, {"/dir/../../secret.txt", ""}, {"/..", "the index"}, {"/../", "the index"},
	{"/%2e%2e/secret.txt", ""}, {"/%2e%2e%2fsecret.txt", ""}, {"/..%2fsecret.txt", ""}, {"/..%2Foutside%2Fsecret.txt", ""}, {"/.%2e/secret.txt", ""},
	{"/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd", ""}, {"/dir/%2e%2e/%2e%2e/secret.txt", ""}, {"/dir/..%2f..%2fsecret.txt", ""},
	{"/%252e%252e/secret.txt", ""}, {"/%252e%252e%252fsecret.txt", ""}, {"/%25252e%25252e/secret.txt", ""},
	{"/..\\secret.txt", ""}, {"/..%5csecret.txt", ""}, {"/..%5C..%5Csecret.txt", ""}, {"\\..\\secret.txt", ""}, {"/dir\\..\\..\\secret.txt", ""}, {"/dir/..\\..\\secret.txt", ""},
	{"/..%255csecret.txt", ""}, {"/%5c..%5csecret.txt", ""}, {"/%5c%5cexample.com%5cshare", ""}, {"/c:/secret.txt", ""}, {"/c:%5csecret.txt", ""},
	{"/..%00/secret.txt", ""}, {"/%00/../../secret.txt", ""}, {"/a.txt%00", ""}, {"/a.txt%00.html", ""}, {"/../secret.txt%00.html", ""}, {"/..%00%2fsecret.txt", ""}, {"/%00", ""},
	{"/%c0%ae%c0%ae/secret.txt", ""}, {"/%c0%ae%c0%ae%c0%afsecret.txt", ""}, {"/..%c0%afsecret.txt", ""}, {"/%e0%80%ae%e0%80%ae/secret.txt", ""}, {"/%f0%80%80%ae%f0%80%80%ae/secret.txt", ""},
	{"/..%c1%9csecret.txt", ""}, {"/%uff0e%uff0e/secret.txt", ""}, {"/%ef%bc%8e%ef%bc%8e/secret.txt", ""}, {"/..%ef%bc%8fsecret.txt", ""}, {"/..%e2%88%95secret.txt", ""},
	{"/...", ""}, {"/.../secret.txt", ""}, {"/..../secret.txt", ""}, {"/....//secret.txt", ""}, {"/..;/secret.txt", ""}, {"/.;/../secret.txt", ""}, {"/..%3b/secret.txt", ""}, {"/ ../secret.txt", ""},
	{"/../www-2/secret.txt", ""}, {"-2/secret.txt", ""}, {"/../www/a.txt", ""}, {"../secret.txt", ""}, {"..", ""}, {"a.txt", ""}, {"*", ""}, {"", ""},
	{"http://example.com/../secret.txt", ""}, {"http://example.com/%2e%2e/secret.txt", ""}, {"http://example.com/..%2f..%2fsecret.txt", ""}, {"http://../secret.txt", ""}, {"http:///../secret.txt", ""},
	{"file:///etc/passwd", ""}, {"//../secret.txt", ""}, {"//example.com/../../secret.txt", ""}, {"///../secret.txt", ""}, {"//etc/passwd", ""}, {"/%2fetc%2fpasswd", ""},
	{"/a.txt/./", ""}, {"/a.txt/.//", ""}, {"/a.txt/%2e/", ""}, {"/a.txt/b/.././", ""},
	{"/" + strings.Repeat("../", 300) + "secret.txt", ""}, {"/" + strings.Repeat("%2e%2e/", 300) + "etc/passwd", ""}, {"/" + strings.Repeat("a/../", 200) + "../secret.txt", ""},
	{"/" + strings.Repeat("a", 5000), ""}, {"/" + strings.Repeat("dir/../", 700) + "a.txt", "a"}, {"/" + strings.Repeat("/", 5000) + "a.txt", "a"}, {"/" + strings.Repeat("a/", 3000), ""},
	{"/a.txt/", ""}, {"/a.txt/..", "the index"}, {"/a.txt/../../secret.txt", ""}, {"/a.txt/.", ""}, {"/a.txt/x", ""}, {"/nope/../../secret.txt", ""},
	{"/%", ""}, {"/%2", ""}, {"/%zz", ""}, {"/%2e%2e%", ""},

	{"/.hidden", ""}, {"/%2ehidden", ""}, {"/.%68idden", ""}, {"/./.hidden", ""}, {"//.hidden", ""}, {"/.hidden/", ""}, {"/dir/../.hidden", ""}, {"/dir%2f..%2f.hidden", ""},
	{"/.git/config", ""}, {"/.git", ""}, {"/.git/", ""}, {"/.git/../.git/config", ""}, {"/%2egit%2fconfig", ""}, {"/dir/.env", ""}, {"/dir/%2eenv", ""}, {"/dir/.d/x.txt", ""}, {"/dir/.d", ""}, {"/dir/.d/", ""},
	{"/.well-known/.secret", ""}, {"/.well-known/../.hidden", ""}, {"/.well-known%2f.secret", ""}, {"/dir/.well-known/not-here", ""}, {"/dir/.well-known/", ""}, {"/links/in/.env", ""}, {"/dir/up/.hidden", ""}, {"/dir/up/.git/config", ""},
	{"/.WELL-KNOWN/.secret", ""}, {"/.well-known/./.secret", ""}, {"/.well-known//.secret", ""},

	{"/links/abs.txt", ""}, {"/links/rel.txt", ""}, {"/links/abs/secret.txt", ""}, {"/links/abs/", ""}, {"/links/abs", ""}, {"/links/rel/secret.txt", ""}, {"/links/rel/", ""}, {"/links/rel", ""},
	{"/links/far/secret.txt", ""}, {"/links/far/", ""}, {"/links/chain1.txt", ""}, {"/links/chain2.txt", ""}, {"/links/chain3.txt", ""}, {"/links/chain1/secret.txt", ""}, {"/links/chain1/", ""}, {"/links/twice.txt", ""},
	{"/links/root/etc/passwd", ""}, {"/links/root/", ""}, {"/links/proc/etc/passwd", ""}, {"/links/proc/", ""}, {"/links/cwd/", ""}, {"/links/fd/0", ""}, {"/links/fd/", ""}, {"/links/environ", ""},
	{"/links/out-and-in.txt", ""}, {"/links/abs-in.txt", ""}, {"/links/loop", ""}, {"/links/loop/x", ""}, {"/links/loop1", ""}, {"/links/dangling", ""}, {"/links/dangling/", ""},
	{"/links/rel/../secret.txt", ""}, {"/links/rel%2f..%2fsecret.txt", ""}, {"/links/rel/deep/../secret.txt", ""}, {"/links/in/../../secret.txt", ""}, {"/dir/up-and-out/secret.txt", ""}, {"/dir/up-and-out/", ""},
	{"/idx/", ""}, {"/idx/index.html", ""}, {"/linked.js.br", ""}, {"/linked.js.gz", ""}, {"/linked.js.zst", ""},
}

// markIn returns what must not be in body.
func markIn(body string) string {
	for _, mark := range []string{outsideMark, hiddenMark, "root:x:0", "PATH="} {
		if strings.Contains(body, mark) {
			return mark
		}
	}
	return ""
}

// guardedOptions are ways to serve the guarded folder, in which the handler
// looks for more, and in other ways.
func guardedOptions() map[string]*static.Options {
	return map[string]*static.Options{
		"plain":    nil,
		"listing":  {Listing: true},
		"spa":      {SPA: "a.txt", NotFound: "dir/b.txt"},
		"uncached": {CacheBytes: -1, OpenFiles: -1, Listing: true},
		"opened":   {CacheFileSize: -1, Listing: true},
	}
}

// isToken reports whether a request line can have target.
func isToken(target string) bool {
	return target != "" && !strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

func rawGet(target, lines string) string {
	return "GET " + target + " HTTP/1.1\r\nHost: example.com\r\n" + lines + "Connection: close\r\n\r\n"
}

func TestOutside(t *testing.T) {
	t.Parallel()
	dir := guarded(t)
	for name, o := range guardedOptions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serveDir(t, dir, o)
			t.Run("on", func(t *testing.T) {
				everyWay(t, func(t *testing.T, w way) {
					addr := w.serve(t, h)
					for _, tt := range outsideTargets {
						// The second is from the cache; the third tries siblings.
						for _, lines := range []string{"", "", "Accept-Encoding: gzip, br, zstd\r\nAccept: text/html\r\n"} {
							got, err := bytesOver(addr, rawGet(tt.target, lines), !isToken(tt.target))
							if err != nil {
								t.Fatalf("%.100q: %v", tt.target, err)
							}
							if mark := markIn(got); mark != "" {
								t.Errorf("%.100q with %q: %q in %.300q", tt.target, lines, mark, got)
							}
							ok := strings.HasPrefix(got, "HTTP/1.1 200 ")
							switch {
							case lines != "":
							case tt.content != "" && (!ok || !strings.HasSuffix(got, "\r\n\r\n"+tt.content)):
								t.Errorf("%.100q: want %q, got %.300q", tt.target, tt.content, got)
							case tt.content == "" && ok && o == nil:
								t.Errorf("%.100q: got %.300q", tt.target, got)
							}
						}
					}
				})
			})
		})
	}
}

// pathOracle serves dir with http.FileServer over an os.Root.
func pathOracle(t testing.TB, dir string) (addr string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return onNetHTTP(t, http.FileServerFS(root.FS()))
}

// checkTarget asks for a target, which may be any bytes, and says what is wrong
// with the answer: bytes of what is not served, a way to another host, or not
// what http.FileServer says.
func checkTarget(addr, oracle, target string) error {
	raw, err := bytesOver(addr, rawGet(target, ""), !isToken(target))
	if err != nil {
		return err
	}
	if mark := markIn(raw); mark != "" {
		return fmt.Errorf("%q in %.500q", mark, raw)
	}
	if !isToken(target) {
		return nil // another request, or several, or none
	}
	got, body, err := readAnswer(raw)
	if err != nil {
		return err
	}
	to := got.Header.Get("Location")
	if got.StatusCode == 301 {
		if err := staysHere(target, to); err != nil {
			return err
		}
	}
	if raw, err = bytesOver(oracle, rawGet(target, ""), false); err != nil {
		return err
	}
	want, wantBody, err := readAnswer(raw)
	if err != nil {
		return err
	}
	u, err := url.ParseRequestURI(target)
	if err != nil || got.StatusCode == 400 || want.StatusCode == 400 || u.Opaque != "" {
		return nil // what a request line may have is not static's affair
	}
	name := path.Clean("/" + u.Path)
	hidden := strings.Contains(strings.TrimPrefix(name, "/.well-known"), "/.")
	switch g, w := got.StatusCode, want.StatusCode; {
	case hidden:
		if g != 404 {
			return fmt.Errorf("%d for what is hidden", g)
		}
	case w == 200 && strings.HasPrefix(wantBody, "<!doctype html>\n<meta name=\"viewport\""):
		if g != 404 {
			return fmt.Errorf("%d for a folder without index", g)
		}
	case w == 200 && strings.HasSuffix(u.Path, "/.") && g == 404: // a file is no folder
	case w == 200:
		if g != 200 || body != wantBody {
			return fmt.Errorf("got %d %.100q, want %.100q", g, body, wantBody)
		}
	case w == 301 && path.Base(name) == "index.html" && (g == 200 || g == 404): // it is a file like others
	case w == 301 && (strings.HasSuffix(u.Path, "/..") || strings.HasSuffix(u.Path, "/.")) && (g == 200 || g == 404): // it is the folder's name
	case w == 301 && strings.HasSuffix(u.Path, "/") && !strings.HasSuffix(u.EscapedPath(), "/") && g == 404:
		// A file with an encoded slash: to take that off is not to go elsewhere.
	case w == 301:
		if g != 301 {
			return fmt.Errorf("%d, want a redirect to %q", g, want.Header.Get("Location"))
		}
	case g < 400 && utf8.ValidString(u.Path): // an fs.FS has no other names
		return fmt.Errorf("%d %.100q %q, want %d", g, body, to, w)
	}
	return nil
}

// staysHere says what is wrong with a redirect from target: for a browser it
// must lead to the same host, and the folder or file there.
func staysHere(target, to string) error {
	if place, _, _ := strings.Cut(to, "?"); place == "" || place[0] == '/' || strings.Contains(place, "\\") || strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("Location %q", to)
	}
	base, err := url.Parse("http://example.com/some/folder/")
	if err != nil {
		return err
	}
	u, err := base.Parse(to)
	if err != nil || u.Host != "example.com" || u.Scheme != "http" || u.User != nil {
		return fmt.Errorf("Location %q is %v, %v", to, u, err)
	}
	return nil
}

func readAnswer(raw string) (*http.Response, string, error) {
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(raw)), nil)
	if err != nil {
		return nil, "", fmt.Errorf("%v in %.500q", err, raw)
	}
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

// What is found, and what is not, is as with http.FileServer.
func TestPathsAlike(t *testing.T) {
	t.Parallel()
	dir := guarded(t)
	oracle := pathOracle(t, dir)
	h := serveDir(t, dir, nil)
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			addr := w.serve(t, h)
			for _, tt := range outsideTargets {
				if err := checkTarget(addr, oracle, tt.target); err != nil {
					t.Errorf("%.100q: %v", tt.target, err)
				}
			}
		})
	})
}

// FuzzTarget sends anything as a request target.
func FuzzTarget(f *testing.F) {
	for _, tt := range outsideTargets {
		if len(tt.target) < 200 {
			f.Add(tt.target)
		}
	}
	f.Add("/a.txt HTTP/1.1\r\nHost: x\r\n\r\nGET /../secret.txt")
	f.Add("/dir\r\nX: y")
	f.Add("/dir%0d%0aX:%20y")
	f.Add("//example.com/dir?query")
	dir := guarded(f)
	oracle := pathOracle(f, dir)
	var addrs []string
	for _, o := range guardedOptions() {
		h := serveDir(f, dir, o)
		addrs = append(addrs, onChert(f, h, chert.EngineAuto, chert.PlacementAdaptive))
	}
	plain := onChert(f, serveDir(f, dir, nil), chert.EngineAuto, chert.PlacementAdaptive)
	f.Fuzz(func(t *testing.T, target string) {
		if len(target) > 4<<10 {
			return // the table has longer ones; minimizing them takes the fuzzer a minute
		}
		if err := checkTarget(plain, oracle, target); err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		// One of the others, the same one for the same target.
		addr := addrs[len(target)%len(addrs)]
		got, err := bytesOver(addr, rawGet(target, "Accept-Encoding: br\r\n"), !isToken(target))
		if mark := markIn(got); mark != "" || err != nil {
			t.Fatalf("%q: %v, %q in %.500q", target, err, mark, got)
		}
	})
}
