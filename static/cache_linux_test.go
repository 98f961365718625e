package static

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// openBelow counts this process's descriptors of files below dir.
func openBelow(t testing.TB, dir string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			n++
		}
	}
	return n
}

// Descriptors are bounded, those of files that are gone are given back, and
// Close leaves none.
func TestDescriptors(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("%d.bin", i)] = noise(1000)
	}
	s := newSite(t, files, &Options{OpenFiles: 10, CacheFileSize: -1})
	for range 3 {
		for i := range 50 {
			s.get(fmt.Sprintf("/%d.bin", i))
		}
	}
	if n := openBelow(t, s.dir); n > 12 || n == 0 || s.Stats().OpenFiles != n {
		t.Errorf("%d descriptors, and %+v", n, s.Stats())
	}
	for name := range files {
		s.remove(name)
	}
	s.later()
	for name := range files {
		if s.status("/"+name) != 404 {
			t.Errorf("%s is still there", name)
		}
	}
	if n := openBelow(t, s.dir); n != 0 {
		t.Errorf("%d descriptors of files that are gone", n)
	}
	s.write("new.bin", noise(1000))
	s.get("/new.bin")
	s.Close()
	if n := openBelow(t, s.dir); n != 0 {
		t.Errorf("%d descriptors after Close", n)
	}
	if r, _ := askDirect(s, "GET", "/new.bin"); r.status != 503 {
		t.Errorf("after Close: %v", r)
	}
}

// The descriptor of a file that is deleted and not asked for any more is given
// back, for the disk to be freed.
func TestSweep(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.bin": noise(big), "b.bin": noise(big)}, nil)
	s.get("/a.bin")
	s.get("/b.bin")
	s.remove("a.bin")
	if n := openBelow(t, s.dir); n != 2 {
		t.Fatalf("%d descriptors", n)
	}
	s.pass(time.Duration(sweepInterval))
	if r, direct := askDirect(s, "GET", "/b.bin"); direct {
		t.Errorf("the fast path looked: %v", r)
	}
	s.get("/b.bin") // which is in the cache
	if n := openBelow(t, s.dir); n != 1 {
		t.Errorf("%d descriptors", n)
	}
}

// Files that the process may not read are 403, whatever the way to them.
func TestPermission(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may read all")
	}
	s := newSite(t, map[string]string{"a.txt": "a", "d/b.txt": "b"}, nil)
	os.Chmod(s.path("a.txt"), 0)
	os.Chmod(s.path("d"), 0)
	t.Cleanup(func() { os.Chmod(s.path("d"), 0o777) })
	for _, target := range []string{"/a.txt", "/d/b.txt", "/d/"} {
		if got := s.status(target); got != 403 {
			t.Errorf("%s: %d", target, got)
		}
	}
}

// No answer leaves a descriptor open, whatever it is.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.bin": noise(big), "f.js": text(big), "f.js.br": noise(100 << 10), "404.html": noise(big)},
		&Options{OpenFiles: -1, NotFound: "404.html"})
	for _, lines := range [][]string{
		nil, {"Range: bytes=0-9"}, {"Range: bytes=0-9,100-109"}, {"Range: bytes=999999999-"}, {"If-None-Match: *"}, {`If-Match: "x"`},
		{"Accept-Encoding: br"}, {"Accept-Encoding: identity;q=0"}, {"Accept-Encoding: gzip"},
	} {
		for _, target := range []string{"/f.bin", "/f.js", "/nope", "/f.bin/"} {
			s.ask("GET", target, lines...)
			s.ask("HEAD", target, lines...)
			if n := openBelow(t, s.dir); n != 0 {
				t.Fatalf("%s %q: %d descriptors", target, lines, n)
			}
		}
	}
}

// An entry that is evicted while its file is being sent stays open until that is
// done, and no longer.
func TestEvictedWhileInUse(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.bin": noise(big)}, nil)
	s.get("/f.bin")
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Path: []byte("/f.bin"), Fields: fields{}})
	if !s.ServeDirect(&x) {
		t.Fatal("left")
	}
	a := x.Wire().Finish()
	s.cache.shed()
	s.remove("f.bin")
	s.later()
	if s.status("/f.bin") != 404 {
		t.Error("still there")
	}
	if n := openBelow(t, s.dir); n != 1 {
		t.Errorf("%d descriptors", n)
	}
	var b strings.Builder
	if err := a.File.CopyTo(&b); err != nil || b.String() != noise(big) {
		t.Errorf("got %d bytes, %v", b.Len(), err)
	}
	if a.File.Check() != nil {
		t.Error("a file that is only unlinked is taken for changed")
	}
	a.File.Done()
	if n := openBelow(t, s.dir); n != 0 {
		t.Errorf("%d descriptors", n)
	}
}

// The memory of the cache is bounded, and counted.
func TestBytes(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("%d.txt", i)] = noise(10 << 10)
	}
	s := newSite(t, files, &Options{CacheBytes: 1 << 20})
	for i := range 300 {
		s.get(fmt.Sprintf("/%d.txt", i))
		if n := s.Stats().CachedBytes; n > 1<<20 {
			t.Fatalf("%d bytes", n)
		}
	}
	if n := s.Stats().CachedBytes; n < 1<<19 {
		t.Errorf("only %d bytes", n)
	}
	if got := s.Stats(); got.Misses < 300 || got.Hits < 100 {
		t.Errorf("%+v", got)
	}
}

// What is asked for often stays when many others come once.
func TestPopularStay(t *testing.T) {
	t.Parallel()
	files := map[string]string{"hot.txt": noise(10 << 10)}
	for i := range 300 {
		files[fmt.Sprintf("%d.txt", i)] = noise(10 << 10)
	}
	s := newSite(t, files, &Options{CacheBytes: 1 << 20})
	missed := 0
	for i := range 300 {
		askPlain(s, "GET", fmt.Sprintf("/%d.txt", i))
		for range 5 {
			if _, ok := askDirect(s, "GET", "/hot.txt"); !ok {
				missed++
				askPlain(s, "GET", "/hot.txt")
			}
		}
	}
	if missed > 3 {
		t.Errorf("missed %d times", missed)
	}
}

// In a process that has no descriptors left, those that are only kept are given
// back; if there are none, the answer is 503, and the files are there again when
// descriptors are.
func TestNoDescriptors(t *testing.T) {
	if os.Getenv("CHERT_STATIC_DESCRIPTORS") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptors$", "-test.v")
		cmd.Env = append(os.Environ(), "CHERT_STATIC_DESCRIPTORS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("%d.bin", i)] = noise(1000)
	}
	var log strings.Builder
	s := newSite(t, files, &Options{CacheFileSize: -1, OpenFiles: 1000, Logger: newLog(&log)})
	const limit = 40
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Skip(err)
	}
	for name := range files {
		if r := askPlain(s, "GET", "/"+name); r.status != 200 {
			t.Errorf("%s: %v", name, r)
		}
	}
	// Others take all of them.
	s.cache.shed()
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	if r := askPlain(s, "GET", "/1.bin"); r.status != 503 || r.head.Get("Retry-After") != "1" || r.head.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v", r)
	}
	if !strings.Contains(log.String(), "too many open files") {
		t.Errorf("log %q", log.String())
	}
	for _, f := range taken {
		f.Close()
	}
	if r := askPlain(s, "GET", "/1.bin"); r.status != 200 {
		t.Errorf("got %v", r)
	}
}

// Pipes, sockets and devices are not served, and opening them does not wait.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": "f"}, &Options{Listing: true})
	if err := syscall.Mkfifo(s.path("pipe"), 0o666); err != nil {
		t.Skip(err)
	}
	os.Symlink("pipe", s.path("link"))
	os.Symlink("/dev/zero", s.path("device"))
	for _, tr := range []string{"beneath", "root"} {
		if tr == "root" {
			r, err := openRootTree(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			useTree(s, r)
		}
		for _, name := range []string{"/pipe", "/link", "/device", "/pipe/"} {
			if got := s.status(name); got != 404 {
				t.Errorf("%s: %s: %d", tr, name, got)
			}
		}
		if list := s.get("/?format=json"); strings.Contains(list, `"name":"pipe`) || strings.Contains(list, `"name":"link`) || strings.Contains(list, `"name":"device`) {
			t.Errorf("%s: listed: %s", tr, list)
		}
		s.later()
	}
}

// Nothing outside is reached by a link, on either tree.
func TestLinks(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"in/f.txt": "inside", "in/deep/g.txt": "deep"}, &Options{Listing: true})
	out := filepath.Join(filepath.Dir(s.dir), "out")
	os.Mkdir(out, 0o777)
	os.WriteFile(out+"/secret.txt", []byte("secret"), 0o666)
	for link, to := range map[string]string{
		"abs.txt": out + "/secret.txt", "rel.txt": "../out/secret.txt", "absdir": out, "reldir": "../out", "in/up": "../../out",
		"absin.txt": s.dir + "/in/f.txt", "loop": "loop", "dangling": "nope",
		"ok.txt": "in/f.txt", "okdir": "in", "in/back.txt": "deep/../f.txt", "round.txt": "in/../in/f.txt",
	} {
		if err := os.Symlink(to, s.path(link)); err != nil {
			t.Skip(err)
		}
	}
	for _, tr := range []string{"beneath", "root"} {
		if tr == "root" {
			r, err := openRootTree(s.dir)
			if err != nil {
				t.Fatal(err)
			}
			useTree(s, r)
		}
		for _, bad := range []string{
			"/abs.txt", "/rel.txt", "/absdir/secret.txt", "/reldir/secret.txt", "/in/up/secret.txt", "/absdir", "/absdir/", "/reldir/", "/reldir",
			"/loop", "/dangling", "/absin.txt",
		} {
			if got := s.status(bad); got != 404 {
				t.Errorf("%s: %s: %d", tr, bad, got)
			}
		}
		for _, good := range []string{"/ok.txt", "/okdir/f.txt", "/in/back.txt", "/round.txt"} {
			if got := s.get(good); got != "inside" {
				t.Errorf("%s: %s: %q", tr, good, got)
			}
		}
		list := s.get("/?format=json")
		for name, want := range map[string]bool{"ok.txt": true, "okdir": true, "abs.txt": false, "reldir": false, "loop": false, "dangling": false} {
			if strings.Contains(list, `"`+name) != want {
				t.Errorf("%s: %s listed: %v", tr, name, !want)
			}
		}
	}
}
