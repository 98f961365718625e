package static

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// What happens to files is seen at the next check, on both ways, and not before
// by looking all the time.
func TestFresh(t *testing.T) {
	t.Parallel()
	large := text(80000)
	for _, tt := range []struct {
		name   string
		before string
		change func(s *site)
		after  string // "" is 404
	}{
		{"changed", "one", func(s *site) { s.write("f.txt", "two") }, "two"},
		{"changed, large", large, func(s *site) { s.write("f.txt", strings.ToUpper(large)) }, strings.ToUpper(large)},
		{"grown past the limit", "one", func(s *site) { s.write("f.txt", large) }, large},
		{"shrunk below it", large, func(s *site) { s.write("f.txt", "one") }, "one"},
		{"truncated", large, func(s *site) { os.Truncate(s.path("f.txt"), 70000) }, large[:70000]},
		{"replaced", "one", func(s *site) { s.write("g.txt", "two"); os.Rename(s.path("g.txt"), s.path("f.txt")) }, "two"},
		{"replaced, large", large, func(s *site) { s.write("g.txt", text(70000)); os.Rename(s.path("g.txt"), s.path("f.txt")) }, text(70000)},
		{"deleted", "one", func(s *site) { s.remove("f.txt") }, ""},
		{"deleted, large", large, func(s *site) { s.remove("f.txt") }, ""},
		{"no longer a file", "one", func(s *site) { s.remove("f.txt"); s.write("f.txt/x", "two") }, ""},
		{"a link out", "one", func(s *site) { s.remove("f.txt"); os.Symlink("/etc/hostname", s.path("f.txt")) }, ""},
		{"its folder gone", "one", func(s *site) { s.remove("") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"f.txt": tt.before}, &Options{NoCompression: true, NoPrecompressed: true})
			if got := s.get("/f.txt"); got != tt.before {
				t.Fatalf("at first %.100q", got)
			}
			tt.change(s)
			if r, ok := askDirect(s, "HEAD", "/f.txt"); !ok || r.status != 200 {
				t.Errorf("checked too early: %v", r)
			}
			s.later()
			if r, ok := askDirect(s, "GET", "/f.txt"); ok && (r.status != 200 || r.body != tt.after) {
				t.Errorf("on the fast path %v", r)
			}
			r, _ := s.ask("GET", "/f.txt")
			switch {
			case tt.after == "" && r.status == 301:
			case tt.after == "":
				if r.status != 404 {
					t.Errorf("got %v", r)
				}
			case r.status != 200 || r.body != tt.after:
				t.Errorf("got %v", r)
			}
		})
	}
}

// A write that leaves size and time as they were is seen on systems with ctime.
func TestSameTime(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no ctime")
	}
	s := newSite(t, map[string]string{"f.txt": "one"}, nil)
	s.get("/f.txt")
	s.write("f.txt", "two") // and dated as before
	s.later()
	if got := s.get("/f.txt"); got != "two" {
		t.Errorf("got %q", got)
	}
}

// A file that was written to just before it was read is read again, whatever its
// times say.
func TestYoung(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": "one"}, nil)
	s.write("f.txt", "two")
	st, err := s.Handler.src.stat("f.txt")
	if err != nil {
		t.Fatal(err)
	}
	s.Handler.wall = func() time.Time { return time.Unix(0, max(st.mtime, st.ctime)).Add(time.Millisecond) }
	s.get("/f.txt")
	first := s.cached(key{"f.txt", 0}, s.tell())
	if first == nil || !first.young {
		t.Fatalf("%+v is not young", first)
	}
	s.Handler.wall = func() time.Time { return time.Now().Add(time.Hour) }
	s.later()
	s.get("/f.txt")
	second := s.cached(key{"f.txt", 0}, s.tell())
	if second == nil || second == first {
		t.Fatal("it is not read again")
	}
	s.later()
	s.get("/f.txt")
	if third := s.cached(key{"f.txt", 0}, s.tell()); third != second {
		t.Error("it is read again and again")
	}
}

func TestIsYoung(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	for _, tt := range []struct {
		why          string
		mtime, ctime int64
		want         bool
	}{
		{"just now", at(0), at(0), true},
		{"a moment ago", at(-50 * time.Millisecond), 0, true},
		{"long ago", at(-time.Second), at(-time.Second), false},
		{"dated back", at(-time.Hour), at(0), true},
		{"a clock ahead, a little", at(50 * time.Millisecond), 0, true},
		{"far ahead: the next write will have another time", at(time.Hour), 0, false},
		{"no time", noTime, 0, false},
	} {
		if got := isYoung(&stat{mtime: tt.mtime, ctime: tt.ctime}, now); got != tt.want {
			t.Errorf("%s: %v", tt.why, got)
		}
	}
}

// Another folder at the same path takes the first one's place, at once for all
// files, also for those that have been checked just before.
func TestFolderReplaced(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"renamed", "link"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, nil)
			s.Handler.Close()
			base := t.TempDir()
			for _, v := range []string{"v1", "v2"} {
				os.Mkdir(base+"/"+v, 0o777)
				os.WriteFile(base+"/"+v+"/a.txt", []byte(v), 0o666)
				os.WriteFile(base+"/"+v+"/b.txt", []byte(v), 0o666)
			}
			at := base + "/v1"
			if how == "link" {
				at = base + "/current"
				if err := os.Symlink("v1", at); err != nil {
					t.Skip(err)
				}
			}
			h, err := New(at, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			s.use(h)
			if s.get("/a.txt") != "v1" || s.get("/b.txt") != "v1" {
				t.Fatal("not the first")
			}
			s.pass(700 * time.Millisecond)
			s.get("/a.txt")
			if how == "link" {
				os.Symlink("v2", base+"/new")
				os.Rename(base+"/new", at)
			} else {
				os.Rename(at, base+"/old")
				os.Rename(base+"/v2", at)
			}
			s.pass(300 * time.Millisecond)
			for _, name := range []string{"/a.txt", "/b.txt"} {
				if r, ok := askDirect(s, "GET", name); ok && r.body != "v2" {
					t.Errorf("%s: %v", name, r)
				}
				if got := s.get(name); got != "v2" {
					t.Errorf("%s: %q", name, got)
				}
			}
		})
	}
}

// While there is no folder, files are not there; it may come back.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "one"}, nil)
	s.get("/a.txt")
	s.remove("")
	s.later()
	if got := s.status("/a.txt"); got != 404 {
		t.Errorf("got %d", got)
	}
	os.Mkdir(s.dir, 0o777)
	s.write("a.txt", "two")
	s.later()
	if got := s.get("/a.txt"); got != "two" {
		t.Errorf("got %q", got)
	}
}

// Files that come to be are there at once.
func TestCreated(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"docs/": ""}, nil)
	if s.status("/a.txt") != 404 || s.status("/docs/") != 404 {
		t.Error("too early")
	}
	s.write("a.txt", "a")
	s.write("docs/index.html", "b")
	if s.get("/a.txt") != "a" || s.get("/docs/") != "b" {
		t.Error("too late")
	}
}

// The file is checked once an interval, however many requests there are.
func TestLookedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"a.txt": "one"}, nil)
	spy := &stub{source: s.Handler.src}
	s.Handler.src = spy
	s.get("/a.txt")
	for range 10 {
		askDirect(s, "GET", "/a.txt")
	}
	if n := spy.peeks.Load(); n != 0 {
		t.Errorf("%d looks within the interval", n)
	}
	s.later()
	for range 10 {
		askDirect(s, "GET", "/a.txt")
	}
	if n := spy.peeks.Load(); n != 1 {
		t.Errorf("%d looks", n)
	}
}

// A large file that is written to is not sent under its old tag, also before the
// next check, and an answer that has begun ends.
func TestWrittenWhileOpen(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.bin": noise(big)}, nil)
	r, _ := s.ask("GET", "/f.bin")
	e := s.cached(key{"f.bin", 0}, s.tell())
	if e == nil || e.check() != nil {
		t.Fatal("it is not kept open")
	}
	s.write("f.bin", strings.ToUpper(text(big)))
	s.date("f.bin", old.Add(time.Hour))
	if e.check() == nil {
		t.Error("the check does not see it")
	}
	e.release()
	if r, ok := askDirect(s, "GET", "/f.bin"); ok && r.body != strings.ToUpper(text(big)) {
		t.Error("sent")
	}
	again, _ := s.ask("GET", "/f.bin")
	if again.head.Get("Etag") == r.head.Get("Etag") || again.body != strings.ToUpper(text(big)) {
		t.Errorf("got %v", again)
	}
}
