package static_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/static"
	"golang.org/x/sys/unix"
)

// A folder is exchanged with a link to one outside, as fast as the system can,
// while clients ask for what is in it: of the file outside, which has the same
// name, there is never a byte, nor a name, nor a size.
func TestFolderSwappedForLink(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	const files = 100
	tree := map[string]string{
		"www/link": "-> ../outside", "outside/" + outsideMark: outsideMark, "outside/index.html": outsideMark,
	}
	for i := range files {
		tree[fmt.Sprintf("www/dir/%d.js", i)] = strings.Repeat("inside ", 100)
		tree[fmt.Sprintf("outside/%d.js", i)] = strings.Repeat(outsideMark, 100)
		tree[fmt.Sprintf("outside/%d.js.br", i)] = outsideMark
	}
	makeTree(t, base, tree)
	all := serveAll(t, base+"/www", map[string]*static.Options{
		"uncached": {CacheBytes: -1, OpenFiles: -1, Listing: true},
		"opened":   {CacheFileSize: -1, Listing: true},
		"cached":   {Listing: true},
	})
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, base+"/www/dir", unix.AT_FDCWD, base+"/www/link", unix.RENAME_EXCHANGE)
	}
	stop := spin(t, swap)
	var mu sync.Mutex
	statuses := map[int]int{}
	raced := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return statuses[200] > 0 && statuses[404] > 0
	}
	// The swaps hold locks of the kernel's, so lookups may take long: the effort
	// is bounded in time too.
	enough := time.Now().Add(effort(5 * time.Second))
	clients(t, all, 3, func(c *client, n int) error {
		for i := 0; i < 200 && (time.Now().Before(enough) || !raced()); i++ {
			target := fmt.Sprintf("/dir/%d.js", (i*7+n)%files)
			switch i % 20 {
			case 7:
				target = "/dir/"
			case 8:
				target = "/link/?format=json"
			case 9:
				target = "/dir"
			}
			var lines []string
			if i%3 == 0 {
				lines = []string{"Accept-Encoding: br"}
			}
			a, err := c.try("GET", target, lines...)
			if err != nil {
				return err
			}
			if strings.Contains(a.body, outsideMark[:8]) || a.length == int64(len(outsideMark)*100) {
				return fmt.Errorf("%s %q: %v", target, lines, a)
			}
			mu.Lock()
			statuses[a.status]++
			mu.Unlock()
		}
		return nil
	})
	stop()
	if !raced() {
		t.Errorf("there was no race: %v", statuses)
	}
	for s := range statuses {
		switch s {
		case 200, 301, 404, 503: // 503: three times in a row it was another file
		default:
			t.Errorf("an odd status: %v", statuses)
		}
	}
	// When it holds still, it is all there again.
	if i, err := os.Lstat(base + "/www/dir"); err != nil || i.Mode()&os.ModeSymlink != 0 {
		if err := swap(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range all {
		c := newClient(t, s.addr)
		eventually(t, "the folder is there on "+s.name, func() bool { return c.ask("GET", "/dir/3.js").status == 200 })
	}
}

// The folder that is served is a link to a release, which is turned to another
// again and again: each answer is of one release, and its tag is that release's.
func TestReleases(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	const releases = 2
	sizes := map[string]int{"a.txt": 700, "b.bin": 30_000, "c.bin": 300_000}
	for v := range releases {
		for name, size := range sizes {
			makeTree(t, fmt.Sprintf("%s/v%d", base, v), map[string]string{name: pattern(byte(v), size+v)})
		}
	}
	makeTree(t, base, map[string]string{"current": "-> v0"})
	all := serveAll(t, base+"/current", map[string]*static.Options{"uncached": {CacheBytes: -1, OpenFiles: -1}, "cached": nil})
	next := 0
	stop := spin(t, func() error {
		next = (next + 1) % releases
		if err := os.Symlink(fmt.Sprintf("v%d", next), base+"/new"); err != nil {
			return err
		}
		return os.Rename(base+"/new", base+"/current")
	})
	clients(t, all, 2, func(c *client, n int) error {
		seen := map[byte]bool{}
		tags := newTags()
		var deadline time.Time // from the last of the rounds that there are in any case
		for i := 0; i < 20 || len(seen) < releases; i++ {
			if i == 20 {
				deadline = time.Now().Add(patience)
			} else if i > 20 && time.Now().After(deadline) {
				return fmt.Errorf("only releases %v are seen", seen)
			}
			for name := range sizes {
				a, err := c.try("GET", "/"+name)
				if err != nil {
					return err
				}
				if a.cut != nil || a.status == 503 {
					continue
				}
				if a.status != 200 {
					return fmt.Errorf("%s: %v", name, a)
				}
				v := a.body[0] >> 6
				if a.body != pattern(v, sizes[name]+int(v)) {
					return fmt.Errorf("%s: mixed: %v", name, versionsIn(a.body))
				}
				if err := tags.note(name, a.field("Etag"), v); err != nil {
					return err
				}
				seen[v] = true
			}
			time.Sleep(5 * time.Millisecond) // polling
		}
		return nil
	})
	// The last one is what is served in the end.
	stop()
	want := pattern(byte(next), sizes["c.bin"]+next)
	for _, s := range all {
		c := newClient(t, s.addr)
		eventually(t, "the last release is served by "+s.name, func() bool { return c.ask("GET", "/c.bin").body == want })
	}
}

// tags are those that have been seen, each of one version.
type tags struct {
	mu     sync.Mutex
	bodies map[string]byte
}

func newTags() *tags { return &tags{bodies: map[string]byte{}} }

func (s *tags) note(name, tag string, version byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.bodies[name+tag]; ok && was != version {
		return fmt.Errorf("%s: %s is the tag of versions %d and %d", name, tag, was, version)
	}
	s.bodies[name+tag] = version
	return nil
}
