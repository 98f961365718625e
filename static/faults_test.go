package static

import (
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// newLog is a logger of lines without the time.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func failWith(err error) func(string) error { return func(string) error { return err } }

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		target string
		break_ func(s *stub)
		status int
		logged bool
	}{
		{"disk error at open", "/a.txt", func(s *stub) { s.onOpen = failWith(syscall.EIO) }, 500, true},
		{"at reading", "/a.txt", func(s *stub) { s.onRead = failWith(syscall.EIO) }, 500, true},
		{"at reading a large one's beginning", "/big", func(s *stub) { s.onRead = failWith(syscall.EIO) }, 500, true},
		{"at the second look", "/a.txt", func(s *stub) { s.onFileStat = failWith(syscall.EIO) }, 500, true},
		{"at a folder's stat", "/empty/", func(s *stub) { s.onStat = failWith(syscall.EIO) }, 500, true},
		{"no permission", "/a.txt", func(s *stub) { s.onOpen = failWith(&fs.PathError{Op: "open", Path: "a.txt", Err: syscall.EACCES}) }, 403, true},
		{"no permission for the index", "/docs/", func(s *stub) { s.onOpen = failWith(syscall.EACCES) }, 403, true},
		{"not permitted", "/a.txt", func(s *stub) { s.onOpen = failWith(syscall.EPERM) }, 403, true},
		{"gone between", "/a.txt", func(s *stub) { s.onOpen = failWith(syscall.ENOENT) }, 404, false},
		{"never holds still", "/a.txt", func(s *stub) { s.onOpen = failWith(errChanging) }, 503, false},
		{"no descriptors", "/a.txt", func(s *stub) { s.onOpen = failWith(syscall.EMFILE) }, 503, true},
		{"none in the system", "/a.txt", func(s *stub) { s.onOpen = failWith(syscall.ENFILE) }, 503, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			s := newSite(t, pages, &Options{Logger: newLog(&out)})
			s.write("big", noise(big))
			st := &stub{source: s.Handler.src}
			s.Handler.src = st
			tt.break_(st)
			for range 3 {
				r, direct := s.ask("GET", tt.target)
				if r.status != tt.status || direct {
					t.Errorf("got %v, direct %v", r, direct)
				}
				if tt.status >= 500 && r.head.Get("Cache-Control") != "no-store" {
					t.Errorf("a cache may keep it: %v", r)
				}
			}
			if n := strings.Count(out.String(), "\n"); tt.logged && n != 1 || !tt.logged && n != 0 {
				t.Errorf("%d lines within a second: %s", n, out.String())
			}
			s.pass(time.Second)
			s.status(tt.target)
			if n := strings.Count(out.String(), "\n"); tt.logged && n != 2 {
				t.Errorf("%d lines: %s", n, out.String())
			}
			s.Handler.src = st.source
			if got := s.status("/a.txt"); got != 200 {
				t.Errorf("it stays broken: %d", got)
			}
		})
	}
}

// A disk that fails at a check does not make an old version right.
func TestFaultAtCheck(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	s := newSite(t, pages, &Options{Logger: newLog(&out)})
	st := &stub{source: s.Handler.src}
	s.Handler.src = st
	s.get("/a.txt")
	st.onPeek, st.onOpen = failWith(syscall.EMFILE), failWith(syscall.EMFILE)
	s.later()
	if s.get("/a.txt") != "hello, world\n" {
		t.Error("a lack of descriptors is taken for a change")
	}
	st.onPeek, st.onOpen = failWith(syscall.EIO), failWith(syscall.EIO)
	s.later()
	if got := s.status("/a.txt"); got != 500 {
		t.Errorf("got %d", got)
	}
}

// A small file that changes whenever it is read is sent by descriptor in the
// end.
func TestNeverHoldsStill(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": "0"}, nil)
	st := &stub{source: s.Handler.src}
	s.Handler.src = st
	n := 0
	st.onRead = func(string) error {
		if n++; n <= 12 {
			s.write("f.txt", strings.Repeat("x", n))
		}
		return nil
	}
	r := askPlain(s, "GET", "/f.txt")
	if r.status != 200 && r.status != 503 && r.status != -1 {
		t.Errorf("got %v", r)
	}
	if got := s.opensOf(st); got < loadTries {
		t.Errorf("tried %d times", got)
	}
	n = 100
	s.later()
	if got := s.get("/f.txt"); strings.Trim(got, "x") != "" {
		t.Errorf("got %q", got)
	}
}

func (s *site) opensOf(st *stub) int { return int(st.opens.Load()) }

// Concurrent requests for the same file wait for one read.
func TestLoadedOnce(t *testing.T) {
	t.Parallel()
	const clients = 20
	for _, name := range []string{"/a.txt", "/big.bin"} {
		s := newSite(t, pages, nil)
		st := &stub{source: s.Handler.src}
		s.Handler.src = st
		release := make(chan struct{})
		st.onOpen = func(string) error { <-release; return nil }
		var all sync.WaitGroup
		var started atomic.Int32
		for range clients {
			all.Go(func() {
				started.Add(1)
				if r := askPlain(s, "GET", name); r.status != 200 {
					t.Errorf("%s: %v", name, r)
				}
			})
		}
		for started.Load() < clients || st.opens.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		close(release)
		all.Wait()
		// Who came after it was ready has opened nothing; stock net/http opens
		// a large file once more for each answer.
		limit := int32(1)
		if name == "/big.bin" {
			limit += clients
		}
		if n := st.opens.Load(); n > limit {
			t.Errorf("%s: opened %d times", name, n)
		}
	}
}

// A caller that finds a file changed uses what another has loaded since.
func TestLoadedSince(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"f.txt": "old"}, nil)
	st := &stub{source: s.Handler.src}
	s.Handler.src = st
	load := func() {
		e, err := s.Handler.get(key{"f.txt", 0}, s.tell())
		if err != nil {
			t.Error(err)
			return
		}
		e.release()
	}
	load()
	s.write("f.txt", "newer")
	s.later()
	st.onPeek = func(string) error {
		st.onPeek = nil
		s.later()
		load() // by the other, which ends before the first begins to load
		return nil
	}
	load()
	if n := st.opens.Load(); n != 2 {
		t.Errorf("opened %d times, want once for each version", n)
	}
}

// Everything at once: what is answered is a version that was there.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newSite(t, pages, &Options{OpenFiles: 2, CacheBytes: 64 << 10, CacheFileSize: 8 << 10})
	versions := map[int]string{}
	for i := range 4 {
		versions[i] = strings.Repeat(string(rune('a'+i)), 20000+i)
	}
	s.write("v", versions[0])
	stop := make(chan struct{})
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			s.write("v.new", versions[i%4])
			mustRename(s, "v.new", "v")
			s.later()
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 50 {
				for _, name := range []string{"/v", "/big.bin", "/a.txt", "/"} {
					r, ok := askDirect(s, "GET", name)
					if !ok {
						r = askPlain(s, "GET", name)
					}
					if r.status == -1 || r.status == 503 {
						continue // it changed while it was sent
					}
					if r.status != 200 || len(r.body) == 0 || name == "/v" && strings.Trim(r.body, r.body[:1]) != "" {
						t.Errorf("%s: %v", name, r)
						return
					}
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	writer.Wait()
}
