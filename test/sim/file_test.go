//go:build linux

package sim

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sim"
	"github.com/chert-http/chert/static"
)

// sample is a file that is served. Its content is its own.
type sample struct {
	name string
	data []byte
}

// sampleSizes are on both sides of what package static caches, of what sockets have room
// for, and of what a connection sends in its turn.
var sampleSizes = [...]int{0, 1, 100, 1000, 5000, 16<<10 - 1, 16 << 10, 16<<10 + 1, 40_000, 64 << 10, 100_000, 300_000, 2<<20 + 5000}

var (
	sampleTime = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // before the bubbles' time
	samples    = sync.OnceValue(makeSamples)
	sampleDir  string
)

// resized is a file whose size changes: its content is always a prefix of the same bytes.
const (
	resized     = "resized.bin"
	resizedMost = 300_000
)

func TestMain(m *testing.M) {
	runtime.MemProfileRate = 0 // each seed collects garbage twice, and that would look at the profile
	code := m.Run()
	if sampleDir != "" {
		os.RemoveAll(sampleDir)
	}
	os.Exit(code)
}

func makeSamples() []*sample {
	dir, err := os.MkdirTemp("", "chert-sim")
	if err != nil {
		panic(err)
	}
	sampleDir = dir
	var all []*sample
	for i, size := range sampleSizes {
		data := make([]byte, 0, size)
		for from := i * 7919; len(data) < size; from = 0 {
			data = append(data, pattern[from:min(len(pattern), from+size-len(data))]...)
		}
		s := &sample{fmt.Sprintf("%d.bin", i), data}
		if err := writeSample(s.name, data); err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	return all
}

func writeSample(name string, data []byte) error {
	path := filepath.Join(sampleDir, name)
	return errors.Join(os.WriteFile(path, data, 0o666), os.Chtimes(path, sampleTime, sampleTime))
}

// fileServer serves the samples, by package static or by net/http's functions.
type fileServer struct {
	static *static.Handler
	direct bool              // package static has all requests, also on the fast path
	tags   map[string]string // of entities, by path
	sizes  int               // how often a size was changed
}

// newFiles makes the handler of the model "file".
func newFiles(v *served) http.Handler {
	d := v.dice
	samples()
	o := &static.Options{NoCompression: true, Logger: slog.New(slog.NewTextHandler(v, nil))}
	if d.OneIn(3) {
		o.CacheFileSize = -1
	}
	if d.OneIn(3) {
		o.OpenFiles = -1
	} else if d.OneIn(2) {
		o.OpenFiles = 1 + d.IntN(4)
	}
	before := openFiles()
	h, err := static.New(sampleDir, o)
	if err == nil {
		err = writeSample(resized, pattern[:resizedMost/2])
	}
	if err != nil {
		panic(err)
	}
	v.files = &fileServer{static: h, direct: d.IntN(2) == 0, tags: make(map[string]string)}
	v.ends = append(v.ends, h.Close, func() error {
		if n := openFiles(); n > before {
			return fmt.Errorf("%d files are open at the end, %d were before", n, before)
		}
		return nil
	})
	if v.files.direct {
		return h
	}
	return http.HandlerFunc(v.serveFile)
}

// openFiles counts the descriptors of this process.
func openFiles() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(all)
}

// failFiles adds the faults of files.
func failFiles(v *served) {
	if v.dice.OneIn(3) {
		v.setup.faults[sim.NoSendfile] = 2 + v.dice.IntN(20)
	}
	if v.setup.faults[sim.Jump] > 0 && v.dice.IntN(2) == 0 { // not in a calm run
		v.setup.faults[sim.DiskError] = 2 + v.dice.IntN(200)
	}
	v.dice.Faults(v.setup.faults)
}

// serveFile serves /static/name, /file/name, /content/name, and what served.handle does.
func (v *served) serveFile(w http.ResponseWriter, r *http.Request) {
	dir, name, _ := strings.Cut(r.URL.Path[1:], "/")
	switch dir {
	case "static":
		v.running.Add(1)
		defer v.running.Add(-1)
		http.StripPrefix("/static", v.files.static).ServeHTTP(w, r)
	case "file":
		v.running.Add(1)
		defer v.running.Add(-1)
		http.ServeFile(w, r, filepath.Join(sampleDir, name))
	case "content":
		v.running.Add(1)
		defer v.running.Add(-1)
		f, err := os.Open(filepath.Join(sampleDir, name))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		defer f.Close()
		w.Header().Set("ETag", strconv.Quote(name))
		v.world.Point(uint64(len(name)))
		http.ServeContent(w, r, name, sampleTime, f)
	default:
		v.handle(w, r)
	}
}

// fetch is a request for a file.
type fetch struct {
	path     string
	file     *sample // nil if there is none
	status   int
	from, to int  // of the content, with 206
	resized  bool // the file may have any size, and change while it is sent
}

// fileClient plays a client that asks for files, beside what others ask for.
type fileClient struct{ *client }

func newFileClient(p peer) model {
	c := &fileClient{newClient(p)}
	c.as = c
	return c
}

// Step implements sim.Actor.
func (c *fileClient) Step() bool {
	if !c.over && !c.calm && c.d.OneIn(3000) {
		c.resize()
	}
	return c.client.Step()
}

// resize changes the size of a file, which may be on its way.
func (c *fileClient) resize() {
	n := c.d.IntN(resizedMost + 1)
	c.v.files.sizes++
	f, err := os.OpenFile(filepath.Join(sampleDir, resized), os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	have, err := f.Stat()
	if err == nil && int(have.Size()) < n {
		_, err = f.WriteAt(pattern[have.Size():n], have.Size())
	} else if err == nil {
		err = f.Truncate(int64(n))
	}
	at := sampleTime.Add(time.Duration(c.v.files.sizes) * time.Second)
	if err = errors.Join(err, os.Chtimes(f.Name(), at, at)); err != nil {
		panic(err)
	}
}

// request implements speaker.
func (c *fileClient) request() {
	if !c.v.files.direct && c.d.OneIn(4) {
		c.client.request()
		return
	}
	c.next++
	f := &fetch{status: 200}
	a := asked{id: uint64(c.no)<<32 | c.next, kind: "file", method: "GET", file: f, read: -1}
	if c.d.OneIn(10) {
		a.method = "HEAD"
	}
	dir := "/"
	if !c.v.files.direct {
		dir = [...]string{"/static/", "/static/", "/file/", "/content/"}[c.d.IntN(4)]
	}
	fields := ""
	switch i := c.d.IntN(100); {
	case i < 4:
		f.path, f.status = dir+"missing", 404
	case i < 8 && !c.calm:
		f.path, f.resized, a.cut = dir+resized, true, true
	default:
		n := c.d.IntN(5)
		if i := c.d.IntN(100); i == 0 { // most are small
			n = len(sampleSizes) - 1
		} else if i < 25 {
			n = c.d.IntN(len(sampleSizes) - 1)
		}
		f.file = samples()[n]
		f.path = dir + f.file.name
		fields = c.conditions(f)
		if a.method == "HEAD" && dir != "/file/" && dir != "/content/" && (f.status == 206 || f.status == 416) {
			f.status, f.from, f.to = 200, 0, len(f.file.data) // a range is GET's (RFC 9110 section 14.2)
		}
	}
	a.cut = a.cut || c.v.setup.faults[sim.DiskError] > 0
	a.size = f.to - f.from
	b := append(c.out, a.method+" "+f.path+" HTTP/1.1\r\nHost: sim\r\n"+fields...)
	if c.d.OneIn(100) {
		b = append(b, "Connection: close\r\n"...)
		a.closes, c.closing = true, true
	}
	c.out = append(b, "\r\n"...)
	c.waiting = append(c.waiting, a)
}

// conditions makes a request for a part of f, or one that depends on what the client has.
func (c *fileClient) conditions(f *fetch) string {
	size := len(f.file.data)
	f.to = size
	tag := c.v.files.tags[f.path]
	switch c.d.IntN(8) {
	case 0:
		if tag != "" {
			f.status = 304
			return "If-None-Match: \"other\", " + tag + "\r\n"
		}
	case 1:
		return "If-None-Match: \"other\"\r\n"
	case 2:
		f.status = 304
		return "If-Modified-Since: " + sampleTime.Format(http.TimeFormat) + "\r\n"
	case 3, 4:
		return c.part(f, size, "")
	case 5:
		if tag != "" {
			return c.part(f, size, "If-Range: "+tag+"\r\n")
		}
	case 6:
		if size > 0 { // the condition does not hold: all is sent
			from := c.d.IntN(size)
			return fmt.Sprintf("If-Range: \"other\"\r\nRange: bytes=%d-\r\n", from)
		}
	}
	return ""
}

// part makes it one for a range.
func (c *fileClient) part(f *fetch, size int, condition string) string {
	if size == 0 {
		return ""
	}
	f.status = 206
	f.from = c.d.IntN(size)
	switch c.d.IntN(4) {
	case 0:
		return fmt.Sprintf("%sRange: bytes=%d-\r\n", condition, f.from)
	case 1:
		return fmt.Sprintf("%sRange: bytes=-%d\r\n", condition, size-f.from)
	case 2:
		f.status = 416
		return fmt.Sprintf("%sRange: bytes=%d-\r\n", condition, size+c.d.IntN(10))
	}
	f.to = f.from + 1 + c.d.IntN(size-f.from)
	return fmt.Sprintf("%sRange: bytes=%d-%d\r\n", condition, f.from, f.to-1)
}

// head is what matters of a response's head.
type head struct {
	status, length      int // length is -1 without
	tag, part, modified string
	closes              bool
}

func readHead(b []byte) (h head, size int, err error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return h, 0, errPartial
	}
	lines := strings.Split(string(b[:end]), "\r\n")
	version, rest, _ := strings.Cut(lines[0], " ")
	if version != "HTTP/1.1" || len(rest) < 3 {
		return h, 0, errors.New("no status line")
	}
	h.length = -1
	h.status, err = strconv.Atoi(rest[:3])
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		switch name {
		case "Content-Length":
			if h.length >= 0 {
				err = errors.New("two lengths")
			} else if h.length, err = strconv.Atoi(value); err != nil {
				return h, 0, err
			}
		case "Etag":
			h.tag = value
		case "Content-Range":
			h.part = value
		case "Last-Modified":
			h.modified = value
		case "Connection":
			h.closes = value == "close"
		case "Transfer-Encoding":
			err = errors.New("a file in chunks")
		}
	}
	return h, end + 4, err
}

// response implements speaker.
func (c *fileClient) response(b []byte, eof bool) (used int, err error) {
	if len(c.waiting) == 0 || c.waiting[0].file == nil {
		return c.client.response(b, eof)
	}
	a := c.waiting[0]
	f := a.file
	h, used, err := readHead(b)
	if err != nil {
		return 0, err
	}
	rest := b[used:]
	if h.status != f.status && (h.status == 400 || h.status == 408 || h.status == 503) {
		return c.refused(h.status, a, used, h.length, len(rest), h.closes)
	}
	if h.status != f.status {
		return 0, fmt.Errorf("status %d for %+v", h.status, f)
	}
	n := h.length
	if a.method == "HEAD" || h.status == 304 {
		n = 0
	} else if n < 0 {
		return 0, errors.New("a response without framing")
	}
	if len(rest) < n && !eof {
		return 0, errPartial // what has come is compared once
	}
	if err := c.check(a, h, rest[:min(n, len(rest))]); err != nil {
		return 0, err
	}
	if len(rest) < n {
		return 0, errPartial
	}
	c.note(f.path, h.status, n)
	c.pop()
	c.done++
	if h.closes && !a.closes {
		c.closing, c.excused = true, "Connection: close"
	}
	return used + n, nil
}

// check compares a response's head, and what there is of its content, with the file.
func (c *fileClient) check(a asked, h head, got []byte) error {
	f := a.file
	var want []byte
	size := -1
	switch {
	case f.resized:
		want, size = pattern[:resizedMost], h.length
	case f.file == nil:
		return nil // the text is the server's
	case h.status == 200:
		want, size = f.file.data, len(f.file.data)
	case h.status == 206:
		want, size = f.file.data[f.from:f.to], f.to-f.from
		if part := fmt.Sprintf("bytes %d-%d/%d", f.from, f.to-1, len(f.file.data)); h.part != part {
			return fmt.Errorf("%q instead of %q", h.part, part)
		}
	case h.status == 416:
		if part := fmt.Sprintf("bytes */%d", len(f.file.data)); h.part != part {
			return fmt.Errorf("%q instead of %q", h.part, part)
		}
		return nil
	}
	if size >= 0 && h.length != size {
		return fmt.Errorf("length %d of %+v", h.length, f)
	}
	if !bytes.HasPrefix(want, got) {
		return fmt.Errorf("the content is another for %+v", f)
	}
	if f.resized {
		return nil
	}
	if h.status == 200 && h.modified != sampleTime.Format(http.TimeFormat) {
		return fmt.Errorf("it was modified on %s", h.modified)
	}
	if tag := c.v.files.tags[f.path]; tag == "" {
		c.v.files.tags[f.path] = h.tag
	} else if tag != h.tag {
		return fmt.Errorf("the entity tag %s was %s", h.tag, tag)
	}
	return nil
}
