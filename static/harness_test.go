package static

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// old is when the files of tests are from: young ones are read again.
var old = time.Date(2024, 5, 17, 10, 20, 30, 123456789, time.UTC)

// A clock stands still until it is advanced.
type clock struct{ ns atomic.Int64 }

func (c *clock) tell() int64          { return c.ns.Load() }
func (c *clock) pass(d time.Duration) { c.ns.Add(int64(d)) }

// later is after the next check of everything.
func (c *clock) later() { c.pass(time.Second) }

// site is a handler over a folder of its own.
type site struct {
	*Handler
	t   testing.TB
	dir string
	clock
}

// newSite makes files, by path, of contents; a path that ends in a slash is a
// folder.
func newSite(t testing.TB, files map[string]string, o *Options) *site {
	t.Helper()
	s := &site{t: t, dir: filepath.Join(t.TempDir(), "www")}
	if err := os.Mkdir(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		s.write(name, content)
	}
	h, err := New(s.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	s.use(h)
	t.Cleanup(func() { h.Close() })
	return s
}

// use sets h's clocks: files seem to have been written long ago.
func (s *site) use(h *Handler) {
	s.Handler = h
	s.ns.Store(int64(time.Hour))
	h.now = s.tell
	h.wall = func() time.Time { return time.Now().Add(time.Hour) }
	h.looked.Store(s.tell())
	h.swept.Store(s.tell())
}

func (s *site) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

func (s *site) write(name, content string) {
	s.t.Helper()
	p := s.path(name)
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		s.t.Fatal(err)
	}
	if strings.HasSuffix(name, "/") {
		if err := os.MkdirAll(p, 0o777); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
		s.t.Fatal(err)
	}
	s.date(name, old)
}

func (s *site) date(name string, to time.Time) {
	s.t.Helper()
	if err := os.Chtimes(s.path(name), to, to); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// fields are a request's, as a server has them.
type fields [][2]string

func (f fields) Get(name string) []byte {
	for _, l := range f {
		if strings.EqualFold(l[0], name) {
			return append([]byte{}, l[1]...)
		}
	}
	return nil
}

func (f fields) First(name string) (value []byte, n int) {
	for _, l := range f {
		if strings.EqualFold(string(l[0]), name) {
			n++
		}
	}
	return f.Get(name), n
}

func (f fields) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for _, l := range f {
			if !yield([]byte(l[0]), []byte(l[1])) {
				return
			}
		}
	}
}

// reply is an answer in a form that can be compared.
type reply struct {
	status int
	head   http.Header
	body   string
}

func (r reply) String() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, r.status)
	r.head.Write(&b)
	if len(r.body) > 300 {
		r.body = r.body[:300] + "..."
	}
	fmt.Fprintf(&b, "%q", r.body)
	return b.String()
}

// parseLines reads "Name: value" lines.
func parseLines(lines []string) (f fields) {
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ": ")
		f = append(f, [2]string{name, value})
	}
	return f
}

// direct asks the fast path; false if that leaves the request.
func askDirect(h direct.Handler, method, target string, lines ...string) (reply, bool) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		panic(err)
	}
	var x direct.Exchange
	x.Wire().Reset(wire.Request{
		Method: method, Target: []byte(target), Path: []byte(u.Path), RawQuery: []byte(u.RawQuery),
		Host: []byte("example.com"), Fields: parseLines(lines),
	})
	if !h.ServeDirect(&x) {
		if x.Wire().Size() != 0 || x.Wire().Status() != 200 {
			panic("the fast path has left something behind")
		}
		x.Wire().Drop()
		return reply{}, false
	}
	a := x.Wire().Finish()
	r := reply{status: a.Status, head: http.Header{}}
	for _, f := range a.Fields {
		r.head.Add(f.Name, f.Value)
	}
	r.body = string(a.Body)
	if a.File.File != nil {
		var b bytes.Buffer
		if err := a.File.CopyTo(&b); err != nil {
			r.body = err.Error()
		} else {
			r.body = b.String()
		}
		if a.File.Done != nil {
			a.File.Done()
		}
	}
	return r, true
}

// askPlain asks the way of net/http.
func askPlain(h http.Handler, method, target string, lines ...string) (r reply) {
	req := httptest.NewRequest(method, "http://example.com/", nil)
	u, err := url.ParseRequestURI(target)
	if err != nil {
		panic(err)
	}
	req.URL, req.RequestURI = u, target
	for _, l := range parseLines(lines) {
		req.Header.Add(l[0], l[1])
	}
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if e := recover(); e != nil {
				if e != http.ErrAbortHandler {
					panic(e)
				}
				r.status = -1
			}
		}()
		h.ServeHTTP(w, req)
	}()
	if r.status == 0 {
		r.status = w.Code
	}
	r.head, r.body = w.Header(), w.Body.String()
	if method == "HEAD" && r.body != "" {
		panic("a body for HEAD")
	}
	return r
}

// ask asks both ways, the direct one twice, and compares what they say. It
// reports whether the fast path answered once the cache was filled.
func (s *site) ask(method, target string, lines ...string) (r reply, onDirect bool) {
	s.t.Helper()
	before, answered := askDirect(s.Handler, method, target, lines...)
	r = askPlain(s.Handler, method, target, lines...)
	after, onDirect := askDirect(s.Handler, method, target, lines...)
	if answered {
		s.same("before", method, target, r, before)
	}
	if onDirect {
		s.same("after", method, target, r, after)
	}
	return r, onDirect
}

func (s *site) same(when, method, target string, plain, direct reply) {
	s.t.Helper()
	if plain.String() != direct.String() || plain.body != direct.body {
		s.t.Errorf("%s %s, %s: the two ways differ\nplain  %v\ndirect %v", method, target, when, plain, direct)
	}
}

// get is ask for what is expected to be a body.
func (s *site) get(target string, lines ...string) string {
	s.t.Helper()
	r, _ := s.ask("GET", target, lines...)
	if r.status != 200 {
		s.t.Errorf("GET %s: %v", target, r)
	}
	return r.body
}

// status is the status of a GET.
func (s *site) status(target string, lines ...string) int {
	s.t.Helper()
	r, _ := s.ask("GET", target, lines...)
	return r.status
}

func mustRead(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// text is n bytes that compress well.
func text(n int) string {
	return strings.Repeat("It was a bright cold day in April, and the clocks were striking.\n", n/65+1)[:n]
}

// noise is n bytes that do not.
func noise(n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}

func mustRename(s *site, from, to string) {
	if err := os.Rename(s.path(from), s.path(to)); err != nil {
		s.t.Error(err)
	}
}

// useTree makes s look through t.
func useTree(s *site, tr tree) {
	d := &dirSource{dir: s.dir}
	id, _ := tr.stat("")
	o := &opened{tree: tr, id: id}
	o.refs.Store(1)
	d.cur.Store(o)
	s.Handler.src.close()
	s.Handler.src = d
	s.cache.clear()
	s.t.Cleanup(func() { d.close() })
}
