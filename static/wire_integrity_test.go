package static_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/static"
)

// versions of a file, each of bytes that identify it; the lengths differ where
// a test says so.
func versions(size, step int) (all []string) {
	for v := range 4 {
		all = append(all, pattern(byte(v), size+v*step))
	}
	return all
}

// A watch checks what clients get of one file that is being changed.
type watch struct {
	all  []string
	mu   sync.Mutex
	tags map[string]string // tag -> the body that has come with it
	cut  int
	seen map[byte]bool
}

// check says what is wrong with an answer to a request for all, or for bytes
// from..to of it. partial: a file may be seen while it is written.
func (w *watch) check(a *answer, partial bool, from, to int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case a.cut != nil:
		w.cut++
		return nil
	case a.status == 503 || a.status == 404 || a.status == 416 && partial:
		return nil
	case a.status != 200 && a.status != 206:
		return fmt.Errorf("got %v", a)
	case a.body == "" && partial:
		return nil
	case a.body == "":
		return fmt.Errorf("nothing: %v", a)
	}
	v := a.body[0] >> 6
	whole := w.all[v]
	if a.status == 206 {
		whole = whole[min(from, len(whole)):min(to, len(whole))]
	}
	if a.body != whole && !(partial && len(a.body) < len(whole) && a.body == whole[:len(a.body)]) {
		return mixed{a}
	}
	w.seen[v] = true
	if a.status == 200 {
		tag := a.field("Etag")
		if was, ok := w.tags[tag]; ok && was != a.body {
			return fmt.Errorf("%s is the tag of %s and of %s", tag, versionsIn(was), versionsIn(a.body))
		}
		w.tags[tag] = a.body
	}
	return nil
}

// mixed is an answer of more than one version, or of a part of one.
type mixed struct{ a *answer }

func (m mixed) Error() string {
	return fmt.Sprintf("mixed, %d bytes: %s, tag %s", len(m.a.body), versionsIn(m.a.body), m.a.field("Etag"))
}

// A change makes a file another version. Those that write into the file itself
// are not seen in time by what sends it from the page cache: a page that the
// socket still holds changes with the file, and so may what is sent between a
// check and the next. Of them strict says which are asserted, on servers that
// keep small files in memory; of the others the end alone is.
type change struct {
	name    string
	step    int  // by which the lengths of versions differ
	partial bool // clients may see a part of one
	strict  int  // the largest size for which nothing else may be seen
	sizes   []int
	make    func(path, content string, n int) error
}

var (
	inMemory = 20_000
	opened   = 200_000
	large    = 6_000_000 // more than the sockets take
)

var changes = []change{
	{"renamed over, of the same size", 0, false, large, []int{inMemory, opened, large}, func(path, content string, n int) error {
		if err := os.WriteFile(path+".new", []byte(content), 0o666); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}},
	{"renamed over, of other sizes", 1000, false, large, []int{inMemory, 60_000 /* around the limit */, opened, large}, func(path, content string, n int) error {
		if err := os.WriteFile(path+".new", []byte(content), 0o666); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}},
	{"deleted and made again", 0, true, large, []int{inMemory, opened, large}, func(path, content string, n int) error {
		if err := os.Remove(path); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(content), 0o666)
	}},
	{"truncated and written", 7, true, inMemory, []int{inMemory, opened, large}, func(path, content string, n int) error {
		return os.WriteFile(path, []byte(content), 0o666)
	}},
	{"cut short and grown", 0, true, inMemory, []int{inMemory, opened, large}, func(path, content string, n int) error {
		if n%2 == 1 {
			return os.Truncate(path, int64(len(content)/3))
		}
		return os.WriteFile(path, []byte(content), 0o666)
	}},
	{"overwritten", 0, false, 0, []int{inMemory, opened, large}, func(path, content string, n int) error {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte(content), 0)
		return err
	}},
}

// No complete answer mixes two versions of a file that is changed meanwhile, and
// no tag is that of two.
func TestIntegrity(t *testing.T) {
	for _, ch := range changes {
		for _, size := range ch.sizes {
			t.Run(fmt.Sprintf("%s/%d", ch.name, size), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := dir + "/f.bin"
				w := &watch{all: versions(size, ch.step), tags: map[string]string{}, seen: map[byte]bool{}}
				if err := os.WriteFile(path, []byte(w.all[0]), 0o666); err != nil {
					t.Fatal(err)
				}
				options := map[string]*static.Options{"cached": nil, "uncached": {CacheBytes: -1, OpenFiles: -1}}
				strict := size <= ch.strict
				if ch.strict < large {
					delete(options, "uncached") // as large ones
				}
				all := serveAll(t, dir, options)
				var others atomic.Int32
				n := 0
				stop := spin(t, func() error {
					n++
					return ch.make(path, w.all[n%4], n)
				})
				enough := time.Now().Add(effort(2 * time.Second))
				clients(t, all, 1, func(c *client, i int) error {
					for k := 0; k < 60 && time.Now().Before(enough); k++ {
						from, to := 0, 1<<30
						var lines []string
						if k%3 == 2 {
							from, to = size/4, size/4*3
							lines = []string{fmt.Sprintf("Range: bytes=%d-%d", from, to-1)}
						}
						a, err := c.try("GET", "/f.bin", lines...)
						if err != nil {
							if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
								return err
							}
							continue // cut in the head
						}
						if err := w.check(a, ch.partial, from, to); err != nil {
							if strict {
								return err
							}
							others.Add(1)
						}
					}
					return nil
				})
				stop()
				t.Logf("%d changes, %d answers cut, %d mixed", n, w.cut, others.Load())
				// What it is in the end is seen, on all servers.
				last := w.all[2]
				if err := os.WriteFile(path+".new", []byte(last), 0o666); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
				for _, s := range all {
					c := newClient(t, s.addr)
					eventually(t, s.name+" has the last version", func() bool { return c.ask("GET", "/f.bin").body == last })
				}
			})
		}
	}
}

// versionsIn returns which versions a body is of, and where they change.
func versionsIn(body string) (s string) {
	for i := range len(body) {
		if i == 0 || body[i]>>6 != body[i-1]>>6 {
			s += fmt.Sprintf("%d from %d ", body[i]>>6, i)
			if len(s) > 300 {
				return s + "..."
			}
		}
	}
	return s
}
