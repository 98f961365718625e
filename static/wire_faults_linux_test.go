package static_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chert-http/chert/internal/testing/leak"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/static"
)

// A badFS is an fs.FS whose files fail to be read from some byte on.
type badFS struct {
	fs.FS
	good int64
}

func (b badFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	return &badFile{f, b.good}, err
}

type badFile struct {
	fs.File
	good int64
}

func (f *badFile) Read(p []byte) (int, error) {
	if f.good <= 0 {
		return 0, &fs.PathError{Op: "read", Path: "disk", Err: syscall.EIO}
	}
	n, err := f.File.Read(p[:min(int64(len(p)), f.good)])
	f.good -= int64(n)
	return n, err
}

// A disk that fails before the answer has begun is 500, and later ends the
// connection; the system's error is logged and not disclosed.
func TestDiskError(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	everyWay(t, func(t *testing.T, w way) {
		for _, tt := range []struct {
			good   int64
			target string
			status int // 0: ends in the middle
		}{
			{0, "/small.txt", 500}, {100, "/small.txt", 500}, {0, "/large.bin", 500}, {100_000, "/large.bin", 0}, {size - 1, "/large.bin", 0}, {size, "/large.bin", 200},
		} {
			var out safeLog
			h, err := static.NewFS(badFS{fstest.MapFS{
				"small.txt": {Data: make([]byte, 1000), ModTime: time.Unix(1e9, 0)}, "large.bin": {Data: make([]byte, size), ModTime: time.Unix(1e9, 0)},
			}, tt.good}, &static.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
			if err != nil {
				t.Fatal(err)
			}
			c := newClient(t, w.serve(t, h))
			for range 2 {
				a := c.ask("GET", tt.target)
				switch {
				case tt.status == 0 && (a.cut == nil || len(a.body) >= size):
					t.Errorf("%+v: not cut: %v", tt, a)
				case tt.status != 0 && (a.status != tt.status || a.cut != nil):
					t.Errorf("%+v: %v", tt, a)
				case tt.status == 500 && (a.field("Cache-Control") != "no-store" || strings.Contains(a.body, "disk") || !strings.Contains(out.String(), "input/output error")):
					t.Errorf("%+v: %v, log %q", tt, a, out.String())
				}
			}
		}
	})
}

// Files of /proc are regular and cannot all be read: the system's own errors.
func TestProcFiles(t *testing.T) {
	t.Parallel()
	var out safeLog
	h := serveDir(t, fmt.Sprintf("/proc/%d", os.Getpid()), &static.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	t.Run("on", func(t *testing.T) {
		everyWay(t, func(t *testing.T, w way) {
			c := newClient(t, w.serve(t, h))
			if a := c.ask("GET", "/mem"); a.status != 500 || a.field("Cache-Control") != "no-store" {
				t.Errorf("got %v", a)
			}
			for _, out := range []string{"/cwd/", "/root/etc/passwd", "/exe", "/fd/0", "/fd/1", "/root/", "/task/../root/"} {
				if a := c.ask("GET", out); a.status != 404 || markIn(a.body) != "" {
					t.Errorf("%s: %v", out, a)
				}
			}
		})
	})
	if !strings.Contains(out.String(), "input/output error") {
		t.Errorf("log: %q", out.String())
	}
}

type safeLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// inChild runs the test that calls it in a process of its own, and reports
// whether this is that process.
func inChild(t *testing.T) bool {
	if os.Getenv("CHERT_STATIC_CHILD") == t.Name() {
		return true
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "CHERT_STATIC_CHILD="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// What may not be read is 403, whether it is the file or the folder before it,
// and is there when it may.
func TestPermissionDenied(t *testing.T) {
	if !inChild(t) {
		return
	}
	dir := t.TempDir()
	makeTree(t, dir, map[string]string{"closed.txt": "secret", "shut/a.txt": "secret", "shut/index.html": "secret", "ok.txt": "fine", "dir/index.html": "secret", "linked.js": "fine too", "linked.js.br": "secret"})
	for _, d := range []string{dir, dir + "/..", dir + "/../.."} {
		os.Chmod(d, 0o755)
	}
	for name, mode := range map[string]fs.FileMode{"closed.txt": 0, "shut": 0, "dir/index.html": 0, "linked.js.br": 0} {
		if err := os.Chmod(dir+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		// The child is thrown away; the folder's owner opens it again by itself.
		if err := syscall.Chown(dir+"/closed.txt", 65534, 65534); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Setresuid(0, 0, 0); err != nil {
				t.Log(err)
			}
		})
		if err := syscall.Setresuid(65534, 65534, 0); err != nil {
			t.Skip(err)
		}
	}
	for _, w := range ways() {
		h := serveDir(t, dir, &static.Options{Listing: true})
		c := newClient(t, w.serve(t, h))
		for range 2 {
			for target, want := range map[string]int{
				"/closed.txt": 403, "/shut/a.txt": 403, "/shut/": 403, "/shut/nope": 403, "/dir/": 403, "/ok.txt": 200, "/linked.js": 200, "/linked.js.br": 403,
			} {
				a := c.ask("GET", target, "Accept-Encoding: br")
				if a.status != want || strings.Contains(a.body, "secret") || a.cut != nil {
					t.Errorf("%s: %s: %v", w.name, target, a)
				}
			}
		}
		if err := os.Chmod(dir+"/closed.txt", 0o644); err != nil {
			t.Fatal(err)
		}
		if a := c.ask("GET", "/closed.txt"); a.status != 200 {
			t.Errorf("%s: %v", w.name, a)
		}
		if err := os.Chmod(dir+"/closed.txt", 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A process without descriptors answers 503 on the connections that it has, what
// is in memory goes on, and all is well when there are descriptors again.
func TestDescriptorsExhausted(t *testing.T) {
	if !inChild(t) {
		return
	}
	dir := t.TempDir()
	tree := map[string]string{}
	for i := range 30 {
		tree[fmt.Sprintf("%d.txt", i)] = pattern(byte(i%4), 1000)
		tree[fmt.Sprintf("%d.bin", i)] = pattern(byte(i%4), 100_000)
	}
	makeTree(t, dir, tree)
	made := time.Now()
	// What has just been written is read whole, not kept open.
	eventually(t, "the files have settled", func() bool { return time.Since(made) > 2200*time.Millisecond })
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 128, Max: 128}); err != nil {
		t.Fatal(err)
	}
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			// Without a cache of descriptors there is nothing to be given back.
			h := serveDir(t, dir, &static.Options{Logger: slog.New(slog.DiscardHandler), NoPrecompressed: true, OpenFiles: -1})
			keeps := newClient(t, w.serve(t, serveDir(t, dir, &static.Options{NoPrecompressed: true})))
			keeps.ask("GET", "/1.bin")
			c := newClient(t, w.serve(t, h))
			for i := range 3 {
				c.ask("GET", fmt.Sprintf("/%d.txt", i))
				c.ask("GET", fmt.Sprintf("/%d.bin", i))
			}
			var taken []int
			defer func() {
				for _, fd := range taken {
					syscall.Close(fd)
				}
			}()
			exhaust := func() {
				for {
					fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
					if errors.Is(err, syscall.EMFILE) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					taken = append(taken, fd)
				}
			}
			exhaust()
			if a := c.ask("GET", "/1.txt"); a.status != 200 || a.body != tree["1.txt"] {
				t.Errorf("what is in memory: %v", a)
			}
			if a := keeps.ask("GET", "/2.bin"); a.status != 200 || a.body != tree["2.bin"] {
				t.Errorf("with a descriptor that is only kept: %v", a)
			}
			full := 0
			for i := 10; i < 30; i++ {
				exhaust()
				a := c.ask("GET", fmt.Sprintf("/%d.bin", i))
				switch {
				case a.status == 503 && a.field("Retry-After") != "" && a.field("Cache-Control") == "no-store":
					full++
				case a.status == 200 && a.body == tree[fmt.Sprintf("%d.bin", i)]:
				default:
					t.Errorf("%d: %v", i, a)
				}
			}
			if full < 10 {
				t.Errorf("503 %d times", full)
			}
			for _, fd := range taken {
				syscall.Close(fd)
			}
			taken = nil
			for i := range 30 {
				if a := c.ask("GET", fmt.Sprintf("/%d.bin", i)); a.status != 200 || a.body != tree[fmt.Sprintf("%d.bin", i)] {
					t.Errorf("afterwards: %v", a)
				}
			}
		})
	}
}

// A file that is replaced while a client takes a part of it slowly: what comes
// is of the one version or ends early, and the rest can be had of neither by the
// old tag.
func TestReplacedDuringRange(t *testing.T) {
	t.Parallel()
	const size = 12 << 20 // more than the sockets hold, with the client's made small
	for _, how := range []string{"renamed", "written"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			everyWay(t, func(t *testing.T, w way) {
				dir := t.TempDir()
				one, two := strings.Repeat("1", size), strings.Repeat("2", size)
				makeTree(t, dir, map[string]string{"f.bin": one})
				c := newClient(t, w.serve(t, serveDir(t, dir, nil)))
				tag := c.ask("HEAD", "/f.bin").field("Etag")
				c.close()
				if err := c.dial(); err != nil {
					t.Fatal(err)
				}
				c.c.(*net.TCPConn).SetReadBuffer(64 << 10)
				io.WriteString(c.c, head("GET", "/f.bin", "Range: bytes=1000-", "If-Range: "+tag))
				res, err := http.ReadResponse(c.r, nil)
				if err != nil || res.StatusCode != 206 {
					t.Fatal(res, err)
				}
				begin := make([]byte, 1000)
				if _, err := io.ReadFull(res.Body, begin); err != nil {
					t.Fatal(err)
				}
				if how == "renamed" {
					makeTree(t, dir, map[string]string{"new": two})
					err = os.Rename(dir+"/new", dir+"/f.bin")
				} else {
					err = os.WriteFile(dir+"/f.bin", []byte(two), 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
				rest, err := io.ReadAll(res.Body)
				var late net.Error
				if errors.As(err, &late) && late.Timeout() {
					t.Fatal(err)
				}
				whole := len(rest)+1000 == size-1000
				if how == "renamed" && (!whole || strings.Trim(string(rest), "1") != "") {
					t.Errorf("%d bytes, %v, mixed: %v", len(rest), err, strings.Contains(string(rest), "2"))
				}
				if how == "written" && whole {
					t.Errorf("it was written to, and the answer is complete: 2 from %d, 1 to %d", strings.Index(string(rest), "2"), strings.LastIndex(string(rest), "1"))
				}
				c.close()
				eventually(t, "the new one is there", func() bool {
					a := c.ask("GET", "/f.bin", "Range: bytes=1000-1009", "If-Range: "+tag)
					return a.status == 200 && strings.Trim(a.body, "2") == "" && len(a.body) == size
				})
			})
		})
	}
}

// 50,000 distinct files through a cache of 1,000 descriptors and a few
// megabytes.
func TestManyFiles(t *testing.T) {
	if !inChild(t) {
		return
	}
	n := 50_000
	if testing.Short() || race.Enabled {
		n = 5_000
	}
	dir := t.TempDir()
	small, large := pattern(1, 1000), pattern(2, 5000)
	// Links to a few files, which is quicker; to the handler they are others.
	for i := range n + 2 { // two for the end
		from, content, ext := fmt.Sprintf("%s/from%d", dir, i/20_000), small, "txt"
		if i%2 == 1 {
			from, content, ext = from+"o", large, "bin"
		}
		if _, err := os.Stat(from); err != nil {
			makeTree(t, "", map[string]string{from: content})
		}
		if err := os.MkdirAll(fmt.Sprintf("%s/%d", dir, i/500), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(from, fmt.Sprintf("%s/%d/%d.%s", dir, i/500, i, ext)); err != nil {
			t.Fatal(err)
		}
	}
	made := time.Now()
	// What has just been written or linked is read whole, not kept open.
	eventually(t, "the files have settled", func() bool { return time.Since(made) > 2200*time.Millisecond })
	const descriptors, memory = 1000, 4 << 20
	h := serveDir(t, dir, &static.Options{OpenFiles: descriptors, CacheBytes: memory, CacheFileSize: 2000, NoPrecompressed: true, NoCompression: true})
	w := ways()[min(1, len(ways())-1)]
	all := []served{{w.name, w.serve(t, h)}}
	var done atomic.Int64
	before := len(leak.OpenFiles())
	ask := func(c *client, i int) error {
		target, want := fmt.Sprintf("/%d/%d.txt", i/500, i), small
		if i%2 == 1 {
			target, want = fmt.Sprintf("/%d/%d.bin", i/500, i), large
		}
		a, err := c.try("GET", target)
		if err == nil && (a.status != 200 || a.body != want) {
			err = fmt.Errorf("%s: %v", target, a)
		}
		return err
	}
	clients(t, all, 4, func(c *client, k int) error {
		for i := k; i < n; i += 4 {
			if err := ask(c, i); err != nil {
				return err
			}
			if done.Add(1)%997 != 0 {
				continue
			}
			// A goroutine that is closing what the cache has too much of may stand
			// still on a loaded machine, while others open; hence twice.
			if open, kept := len(leak.OpenFiles())-before, h.Stats(); open > 2*descriptors || kept.CachedBytes > 2*memory {
				return fmt.Errorf("after %d: %d descriptors are open, %+v", i, open, kept)
			}
		}
		return nil
	})
	// Now none is paused: when a file of each kind has been added, which completes
	// pending work, the cache is full and not beyond, whatever the order.
	c := newClient(t, all[0].addr)
	for i := range 2 {
		if err := ask(c, n+i); err != nil {
			t.Fatal(err)
		}
	}
	opened := func() (n int) {
		for _, f := range leak.OpenFiles() {
			if strings.Contains(f, dir) && strings.HasSuffix(f, ".bin") {
				n++
			}
		}
		return n
	}
	// A client may have all of a file before the server gives up its descriptor.
	eventually(t, "no more files are open than are kept", func() bool { return opened() <= descriptors })
	kept := h.Stats()
	if open := opened(); kept.OpenFiles > descriptors || kept.OpenFiles < descriptors/2 || open < descriptors/2 {
		t.Errorf("%d files are open, %+v", open, kept)
	}
	if kept.CachedBytes > memory || kept.CachedBytes < memory/2 {
		t.Errorf("the cache is not used, or is too large: %+v", kept)
	}
}
