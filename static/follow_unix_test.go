//go:build unix

package static

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

// A linked is a site beside other folders.
type linked struct {
	*site
	base string
}

// newLinked makes www, which is served, and what is beside it. Contents that begin with
// "-> " are the targets of links, in which BASE is the folder of all. The paths of
// o.Follow are relative to that.
func newLinked(t *testing.T, files map[string]string, o *Options) *linked {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &linked{base: base}
	l.site = &site{t: t, dir: filepath.Join(base, "www")}
	for name, content := range files {
		to, isLink := strings.CutPrefix(content, "-> ")
		if !isLink {
			l.write("../"+name, content)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(base, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		l.link(name, to)
	}
	for i, p := range o.Follow {
		if !filepath.IsAbs(p) {
			o.Follow[i] = base + "/" + p
		}
	}
	h, err := New(l.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	l.use(h)
	t.Cleanup(func() { h.Close() })
	return l
}

// link makes a link, or replaces one as "ln -sfn" does.
func (l *linked) link(name, to string) {
	l.t.Helper()
	at := filepath.Join(l.base, name)
	if err := os.Symlink(strings.ReplaceAll(to, "BASE", l.base), at+"~"); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Rename(at+"~", at); err != nil {
		l.t.Fatal(err)
	}
}

// useRoots makes l look through os.Root, as where there is no openat2.
func (l *linked) useRoots() {
	s := l.Handler.src.(*linkedSource)
	for _, d := range append([]*dirSource{s.dirSource}, s.others...) {
		r, err := openRootTree(d.dir)
		if err != nil {
			l.t.Fatal(err)
		}
		id, err := r.stat("")
		if err != nil {
			l.t.Fatal(err)
		}
		o := &opened{tree: r, id: id, real: realPath(d.dir, &id)}
		o.refs.Store(1)
		d.cur.Swap(o).leave()
	}
	l.cache.clear()
}

// eachTree runs f with openat2 and with os.Root.
func eachTree(t *testing.T, f func(t *testing.T, prepare func(l *linked))) {
	for _, how := range []string{"as it is", "os.Root"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f(t, func(l *linked) {
				if how != "as it is" {
					l.useRoots()
				}
			})
		})
	}
}

// secret is in files that must not be served.
const secret = "SECRET"

var followFiles = map[string]string{
	"www/a.txt": "a", "www/dir/b.txt": "b", "www/.dot/x": secret, "www/hidden.bak": secret,
	"shared/s.txt": "s", "shared/dir/d.txt": "d", "shared/dir/index.html": "index of d", "shared/dir/.env": secret, "shared/dir/x.bak": secret,
	"shared/private/p.txt": secret, "shared/.git/config": secret, "shared/big.js": text(3000),
	"shared2/s.txt": secret, "other/s.txt": secret, "s.txt": secret, "real/deep/r.txt": "r", "real/r.txt": "real",

	"alias":   "-> shared",
	"byalias": "-> real", // a prefix that is a link

	"www/abs.txt":       "-> BASE/shared/s.txt",
	"www/rel.txt":       "-> ../shared/s.txt",
	"www/dir/up.txt":    "-> ../../shared/s.txt",
	"www/slashes.txt":   "-> BASE//shared/.//s.txt",
	"www/abs":           "-> BASE/shared",
	"www/abs2":          "-> BASE/shared/",
	"www/rel":           "-> ../shared/dir",
	"www/round.txt":     "-> BASE/www/a.txt",
	"www/back.txt":      "-> ../shared/../www/a.txt",
	"www/there.txt":     "-> BASE/shared/dir/../s.txt",
	"www/over.txt":      "-> BASE/www/../shared/s.txt",
	"www/chain.txt":     "-> chain2.txt",
	"www/chain2.txt":    "-> BASE/shared/chain3.txt",
	"shared/chain3.txt": "-> BASE/www/chain4.txt",
	"www/chain4.txt":    "-> ../shared/s.txt",
	"shared/in.txt":     "-> dir/d.txt",
	"shared/up.txt":     "-> ../www/a.txt",
	"shared/dir/to":     "-> BASE/www/dir",
	"www/byalias.txt":   "-> BASE/byalias/r.txt",
	"www/byreal.txt":    "-> ../real/deep/r.txt",

	"www/two.txt":                "-> BASE/shared2/s.txt",
	"www/two-rel.txt":            "-> ../shared2/s.txt",
	"www/two":                    "-> ../shared2",
	"www/other.txt":              "-> BASE/other/s.txt",
	"www/out.txt":                "-> ../s.txt",
	"www/outer":                  "-> ..",
	"www/top":                    "-> /",
	"www/etc":                    "-> /etc/passwd",
	"www/alias.txt":              "-> BASE/alias/s.txt", // the link alias is in no folder
	"www/trick.txt":              "-> BASE/shared/../other/s.txt",
	"www/trick2.txt":             "-> BASE/shared/dir/../../shared2/s.txt",
	"www/trick3.txt":             "-> BASE/other/../shared/s.txt", // other might be a link
	"www/proc":                   "-> /proc/self/root",
	"shared/leave.txt":           "-> ../other/s.txt",
	"shared/leave2.txt":          "-> /etc/passwd",
	"shared/leave":               "-> BASE/other",
	"www/via.txt":                "-> ../shared/leave.txt",
	"www/loop":                   "-> ../shared/loop",
	"shared/loop":                "-> BASE/www/loop",
	"www/self":                   "-> BASE/www/self",
	"www/dangling":               "-> ../shared/nope",
	"www/file-as-dir":            "-> ../shared/s.txt/x",
	"www/todot.txt":              "-> ../shared/dir/.env",
	"www/togit":                  "-> ../shared/.git",
	"www/tobak.txt":              "-> ../shared/dir/x.bak",
	"www/toprivate.txt":          "-> ../shared/private/p.txt",
	"www/toprivate":              "-> ../shared/private",
	"www/roundot":                "-> BASE/www/.dot",
	"www/rounbak.txt":            "-> BASE/www/hidden.bak",
	"www/.link.txt":              "-> ../shared/s.txt",
	"www/link.bak":               "-> ../shared/s.txt",
	"shared/.chain":              "-> s.txt",
	"www/through-dot.txt":        "-> ../shared/.chain",
	"www/page.js":                text(3000),
	"www/page.js.br":             "-> ../other/s.txt",
	"www/page.js.zst":            "-> ../shared/private/p.txt",
	"www/page.js.gz":             "-> ../shared/s.txt",
	"www/private/p.txt":          secret,
	"www/sub/private/f":          "open",
	"www/linked.js":              "-> ../shared/big.js",
	"www/linkedindex/x":          "x",
	"www/badindex/x":             "x",
	"www/linkedindex/y":          "y",
	"www/badindex/index.html":    "-> ../../other/s.txt",
	"www/linkedindex/index.html": "-> ../../shared/dir/index.html",
}

func TestFollow(t *testing.T) {
	t.Parallel()
	eachTree(t, func(t *testing.T, prepare func(*linked)) {
		l := newLinked(t, followFiles, &Options{Follow: []string{"shared/", "byalias"}, Listing: true, Hidden: []string{"*.bak", "/private/**"}})
		prepare(l)
		for _, tt := range []struct{ target, body string }{
			{"/a.txt", "a"}, {"/abs.txt", "s"}, {"/rel.txt", "s"}, {"/dir/up.txt", "s"}, {"/slashes.txt", "s"}, {"/abs/s.txt", "s"}, {"/abs2/s.txt", "s"},
			{"/abs/dir/d.txt", "d"}, {"/rel/d.txt", "d"}, {"/rel/", "index of d"}, {"/abs/dir/", "index of d"}, {"/round.txt", "a"}, {"/back.txt", "a"},
			{"/there.txt", "s"}, {"/over.txt", "s"}, {"/chain.txt", "s"}, {"/abs/in.txt", "d"}, {"/abs/up.txt", "a"}, {"/rel/to/b.txt", "b"}, {"/abs/chain3.txt", "s"},
			{"/byalias.txt", "real"}, {"/byreal.txt", "r"}, {"/page.js", text(3000)}, {"/linked.js", text(3000)}, {"/linkedindex/", "index of d"}, {"/sub/private/f", "open"},
		} {
			if got := l.get(tt.target); got != tt.body {
				t.Errorf("%s: %.100q", tt.target, got)
			}
		}
		for _, target := range strings.Fields(`/two.txt /two-rel.txt /two/s.txt /two /two/ /other.txt /out.txt /outer/s.txt /outer/other/s.txt /outer/ /top/etc/passwd
			/top/ /etc /alias.txt /trick.txt /trick2.txt /trick3.txt /proc/etc/passwd /abs/leave.txt /abs/leave2.txt /abs/leave/s.txt /abs/leave/ /via.txt /loop /self /abs/loop
			/dangling /file-as-dir /todot.txt /togit/config /togit/ /togit /tobak.txt /toprivate.txt /toprivate/p.txt /toprivate/ /roundot/x /rounbak.txt /.link.txt /link.bak
			/through-dot.txt /abs/.chain /abs/dir/.env /abs/dir/x.bak /abs/private/p.txt /abs/private/ /abs/.git/config /private/p.txt /abs/../../other/s.txt
			/abs/%2e%2e/other/s.txt`) {
			for range 2 {
				if r, _ := l.ask("GET", target); r.status != 404 || strings.Contains(r.body, secret) {
					t.Errorf("%s: %v", target, r)
				}
			}
		}
		if r, _ := l.ask("GET", "/rel"); r.status != 301 || r.head.Get("Location") != "rel/" {
			t.Errorf("/rel: %v", r)
		}
		// A compressed form is under the rule of every file.
		for accept, coding := range map[string]string{"br": "br", "zstd": "zstd", "gzip": "gzip"} {
			r, _ := l.ask("GET", "/page.js", "Accept-Encoding: "+accept)
			if strings.Contains(r.body, secret) || r.status != 200 || r.head.Get("Content-Encoding") != coding {
				t.Errorf("%s: %v", accept, r)
			}
			if (r.body == "s") != (accept == "gzip") {
				t.Errorf("%s: of a sibling: %v", accept, r)
			}
		}
	})
}

// A listing shows what can be served and nothing else.
func TestFollowListing(t *testing.T) {
	t.Parallel()
	eachTree(t, func(t *testing.T, prepare func(*linked)) {
		l := newLinked(t, followFiles, &Options{Follow: []string{"shared", "byalias"}, Listing: true, Hidden: []string{"*.bak", "/private/**"}})
		prepare(l)
		for _, folder := range []struct{ at, has string }{
			{"/", "abs.txt rel.txt abs rel chain.txt byalias.txt round.txt over.txt a.txt dir"}, {"/abs/", "s.txt dir in.txt up.txt chain3.txt"}, {"/rel/to/", "b.txt up.txt"},
		} {
			list := l.get(folder.at + "?format=json")
			for name := range strings.FieldsSeq(folder.has) {
				if !strings.Contains(list, `"name":"`+name+`"`) {
					t.Errorf("%s: no %s in %s", folder.at, name, list)
				}
			}
			// Each that is listed can be served, and each of the table that can be is listed.
			entries, err := os.ReadDir(l.path(folder.at))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				status := l.status(folder.at + e.Name())
				if listed := strings.Contains(list, `"name":"`+e.Name()+`"`); listed != (status == 200 || status == 301) {
					t.Errorf("%s: %s is listed: %v, and answered %d", folder.at, e.Name(), listed, status)
				}
			}
		}
	})
}

// Without Follow nothing has changed, and a link that is not permitted is explained.
func TestFollowNothing(t *testing.T) {
	t.Parallel()
	l := newLinked(t, followFiles, &Options{})
	for _, target := range []string{"/abs.txt", "/rel.txt", "/abs/s.txt", "/round.txt", "/chain.txt"} {
		if got := l.status(target); got != 404 {
			t.Errorf("%s: %d", target, got)
		}
	}
}

// As many links are followed as the kernel follows.
func TestFollowLimits(t *testing.T) {
	t.Parallel()
	files := map[string]string{"shared/f": "f", "www/x": "x"}
	for i := range 60 {
		files[fmt.Sprintf("www/l%d", i)] = fmt.Sprintf("-> BASE/www/l%d", i+1)
	}
	files["www/l60"] = "-> ../shared/f"
	files["www/long"] = "-> ../shared/" + strings.Repeat("../shared/", 300) + "f"
	files["www/many0"] = "-> ../shared" // each doubles the segments of the next
	for i := 1; i < 20; i++ {
		files[fmt.Sprintf("www/many%d", i)] = fmt.Sprintf("-> many%d/../www/many%d", i-1, i-1)
	}
	eachTree(t, func(t *testing.T, prepare func(*linked)) {
		l := newLinked(t, files, &Options{Follow: []string{"shared"}})
		prepare(l)
		for target, want := range map[string]int{"/l60": 200, "/l22": 200, "/l20": 404, "/l0": 404, "/long": 200, "/many3/f": 200, "/many15/f": 404, "/many19/f": 404} {
			if got := l.status(target); got != want {
				t.Errorf("%s: %d, want %d", target, got, want)
			}
		}
	})
}

// What a link leads to is noticed as a change of a file is.
func TestFollowChanges(t *testing.T) {
	t.Parallel()
	eachTree(t, func(t *testing.T, prepare func(*linked)) {
		l := newLinked(t, map[string]string{
			"shared/v1/f": "one", "shared/v2/f": "two", "shared/.v3/f": secret, "other/f": secret, "shared/v1/large": noise(100_000), "www/large": "-> ../shared/v1/large",
			"www/f": "-> ../shared/v1/f", "www/d": "-> ../shared/v1",
			"r1/f": "one", "r2/f": "two", "release": "-> r1", "www/byprefix": "-> BASE/release/f", "www/byreal": "-> ../r1/f",
		}, &Options{Follow: []string{"shared", "release"}})
		prepare(l)
		for _, step := range []struct{ to, want string }{{"v1", "one"}, {"v2", "two"}, {".v3", ""}, {"../other", ""}, {"v1", "one"}, {"nope", ""}, {"v2", "two"}} {
			l.link("www/f", "../shared/"+step.to+"/f")
			l.link("www/d", "../shared/"+step.to)
			l.later()
			for _, target := range []string{"/f", "/d/f"} {
				r, _ := l.ask("GET", target)
				if step.want == "" && r.status != 404 || step.want != "" && r.body != step.want {
					t.Errorf("after %s: %s: %v, want %q", step.to, target, r, step.want)
				}
			}
		}
		// A prefix that is a link permits what it leads to, and that alone.
		for _, step := range []struct {
			to, want string
			byReal   int
		}{{"r1", "one", 200}, {"r2", "two", 404}, {"r1", "one", 200}} {
			l.link("release", step.to)
			l.later()
			if got := l.get("/byprefix"); got != step.want {
				t.Errorf("the prefix is %s: %q", step.to, got)
			}
			if got := l.status("/byreal"); got != step.byReal {
				t.Errorf("the prefix is %s: by its path without links: %d", step.to, got)
			}
		}
		for _, step := range []struct {
			to     string
			status int
		}{{"../shared/v1/large", 200}, {"../other/f", 404}, {"../shared/v1/large", 200}} {
			l.link("www/large", step.to)
			l.later()
			if got := l.status("/large"); got != step.status {
				t.Errorf("large, after %s: %d", step.to, got)
			}
		}
		l.write("../shared/v2/f", "three")
		l.later()
		if got := l.get("/f"); got != "three" {
			t.Errorf("after a write: %q", got)
		}
	})
}

// A name that is replaced while it is resolved leads nowhere else.
func TestFollowRace(t *testing.T) {
	t.Parallel()
	l := newLinked(t, map[string]string{"shared/d/f": "inside", "other/f": secret, "spare/f": secret, "www/l": "-> ../shared/d", "shared/.h/f": secret}, &Options{Follow: []string{"shared"}, CacheBytes: -1, OpenFiles: -1})
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-end:
				return
			default:
			}
			// By turns a folder, a link out, and one to what is hidden.
			to := []string{"../other", "BASE/other", ".h"}[i%3]
			if os.Rename(l.base+"/shared/d", l.base+"/shared/e") == nil {
				l.link("shared/d", to)
				os.Remove(l.base + "/shared/d")
				os.Rename(l.base+"/shared/e", l.base+"/shared/d")
			}
		}
	}()
	found := 0
	for range 3000 {
		r := askPlain(l.Handler, "GET", "/l/f")
		if strings.Contains(r.body, secret) {
			t.Fatalf("%v", r)
		}
		if r.status == 200 {
			found++
		}
	}
	close(end)
	<-done
	if r := askPlain(l.Handler, "GET", "/l/f"); r.body != "inside" {
		t.Errorf("in the end: %v", r)
	}
	t.Logf("found %d times", found)
}

// What is cached is sent as fast as any other file.
func TestFollowAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	l := newLinked(t, map[string]string{"shared/f.js": text(5000), "shared/big.bin": noise(100_000), "www/l": "-> ../shared"}, &Options{Follow: []string{"shared"}})
	for _, path := range []string{"/l/f.js", "/l/big.bin"} {
		askPlain(l.Handler, "GET", path)
		var x direct.Exchange
		r := wire.Request{Method: "GET", Target: []byte(path), Path: []byte(path), Fields: &wireFields{}}
		if n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			if !l.ServeDirect(&x) {
				t.Errorf("%s: left", path)
			}
			x.Wire().Drop()
		}); n > 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func TestFollowErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	os.WriteFile(dir+"/file", nil, 0o666)
	for prefix, want := range map[string]string{
		"shared": "is not an absolute path", "": "is not an absolute path", "/": "is every file", "///": "is every file", "/srv/../etc": `".."`,
		dir + "/nope": "no such file", dir + "/file": "is not a folder", "/a\x00b": "is not an absolute path",
	} {
		h, err := New(dir, &Options{Follow: []string{dir, prefix}})
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "static: Follow: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
	if _, err := NewFS(fstest.MapFS{}, &Options{Follow: []string{dir}}); err == nil || !strings.HasPrefix(err.Error(), "static: Follow: ") {
		t.Errorf("of an fs.FS: %v", err)
	}
	// The folder itself may be one of them, and one may be in another.
	h, err := New(dir, &Options{Follow: []string{dir, filepath.Dir(dir), dir + "/."}})
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	if f, _, err := h.src.open("file"); err == nil || !slices.Contains([]error{fs.ErrClosed}, err) {
		t.Errorf("after Close: %v, %v", f, err)
	}
}

// FuzzFollow looks for a link whose target leads to what no prefix has.
func FuzzFollow(f *testing.F) {
	for _, to := range []string{"../shared/s.txt", "BASE/shared/../other/s.txt", "BASE/shared2/s.txt", "..", "../../", "/", "l", "../shared/l2", "BASE//www/./../shared/s.txt", "../shared/dir/../../other/s.txt"} {
		f.Add(to, to)
	}
	dir := f.TempDir()
	base, err := filepath.EvalSymlinks(dir)
	if err != nil {
		f.Fatal(err)
	}
	for name, content := range map[string]string{"www/a": "open", "shared/s.txt": "open", "shared/dir/d": "open", "shared2/s.txt": secret, "other/s.txt": secret, "s.txt": secret, "shared/.env": secret} {
		p := filepath.Join(base, name)
		os.MkdirAll(filepath.Dir(p), 0o777)
		if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
			f.Fatal(err)
		}
	}
	h, err := New(base+"/www", &Options{Follow: []string{base + "/shared"}, CacheBytes: -1, OpenFiles: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close() })
	f.Fuzz(func(t *testing.T, first, second string) {
		for name, to := range map[string]string{"www/l": first, "shared/l2": second} {
			to = strings.ReplaceAll(to, "BASE", base)
			at := filepath.Join(base, name)
			os.Remove(at)
			if to == "" || len(to) > 1000 || strings.IndexByte(to, 0) >= 0 || os.Symlink(to, at) != nil {
				return
			}
		}
		for _, target := range []string{"/l", "/l/s.txt", "/l/l2", "/l/l2/s.txt", "/l/dir/d"} {
			r := askPlain(h, "GET", target)
			if strings.Contains(r.body, secret) {
				t.Fatalf("%q, %q: %s: %v", first, second, target, r)
			}
		}
	})
}
