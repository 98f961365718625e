package middleware

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/race"
)

// While a file is renamed and opened again, each line is in one of the files, whole.
func TestReopen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not rename open files")
	}
	path := filepath.Join(t.TempDir(), "access.log")
	w, err := OpenLog(path, &LineWriterOptions{BufferSize: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	const writers, lines, renames = 4, 5000, 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for j := range lines {
				fmt.Fprintf(w, "line %d-%d end\n", i, j)
			}
		})
	}
	files := []string{path}
	for i := range renames {
		old := fmt.Sprintf("%s.%d", path, i)
		if err := os.Rename(path, old); err != nil {
			t.Fatal(err)
		}
		if err := w.Reopen(); err != nil {
			t.Fatal(err)
		}
		files = append(files, old)
	}
	all.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "line late end\n")
	seen := make(map[string]bool)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "line ") || !strings.HasSuffix(line, " end\n") || seen[line] {
				t.Errorf("%s: torn or twice: %q", file, line)
			}
			seen[line] = true
		}
	}
	if len(seen) != writers*lines+1 || w.Lost() != 0 {
		t.Errorf("%d lines, %d lost", len(seen), w.Lost())
	}
}

// A file that cannot be opened again stays in use, and only files are opened.
func TestReopenFails(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLog(dir, nil); err == nil {
		t.Error("a folder is a log")
	}
	path := filepath.Join(dir, "f")
	w, err := OpenLog(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&^0o640 != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if runtime.GOOS != "windows" {
		moved := dir + "2"
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		if err := w.Reopen(); err == nil {
			t.Error("opened without a folder")
		}
		path = filepath.Join(moved, "f")
	}
	io.WriteString(w, "kept\n")
	w.Close()
	if data, err := os.ReadFile(path); string(data) != "kept\n" {
		t.Errorf("%q, %v", data, err)
	}
	if NewLineWriter(io.Discard, nil).Reopen() == nil {
		t.Error("opened what is no file")
	}
}

// shortWriter accepts a part of the first write.
type shortWriter struct {
	bytes.Buffer
	used bool
}

func (w *shortWriter) Write(p []byte) (int, error) {
	if !w.used {
		w.used = true
		w.Buffer.Write(p[:3])
		return 3, io.ErrShortWrite
	}
	return w.Buffer.Write(p)
}

// After a line that a full disk has torn the next begins a new one, and the loss is reported.
func TestLineWriterTorn(t *testing.T) {
	t.Parallel()
	var out shortWriter
	lost := int64(0)
	w := NewLineWriter(&out, &LineWriterOptions{BufferSize: -1, Failed: func(n int64, err error) { lost += n }})
	io.WriteString(w, "abcdef\n")
	io.WriteString(w, "whole\n")
	if got := out.String(); got != "abc\nwhole\n" || lost != 1 || w.Lost() != 1 {
		t.Errorf("%q, %d, %d", got, lost, w.Lost())
	}
}

// The innermost Override writes the line, on both ways, and no other does.
func TestOverride(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"plain", "direct"} {
		var outer, middle, inner bytes.Buffer
		logs := make([]*AccessLog, 3)
		for i, out := range []io.Writer{&outer, &middle, &inner} {
			logs[i] = newTestLog(AccessLogOptions{Format: LogCommon, Output: out})
		}
		serve := func(h http.Handler) {
			if r := request("GET", "/", ""); way == "plain" {
				plain(h, r)
			} else {
				directly(t, h, r)
			}
		}
		serve(Chain(hello, logs[0].Wrap, logs[1].Override, logs[2].Override))
		serve(Chain(hello, logs[0].Wrap, logs[1].Override))
		serve(Chain(hello, logs[0].Wrap, NewAccessLog(&AccessLogOptions{Format: LogNone}).Override))
		serve(Chain(hello, logs[0].Wrap, logs[1].Wrap, logs[2].Override)) // overrides the inner one only
		for i, want := range []int{1, 1, 2} {
			logs[i].Close()
			if got := strings.Count([]*bytes.Buffer{&outer, &middle, &inner}[i].String(), "\n"); got != want {
				t.Errorf("%s: log %d has %d lines, want %d", way, i, got, want)
			}
		}
	}
}

// fill fills a LineWriter with buffers of 64 KiB, whose output accepts nothing: one buffer is
// being written, and the other is full.
func fill(w *LineWriter) {
	for n := 0; n <= 64<<10 || !w.Full(); n += 128 {
		fmt.Fprintf(w, "%0127d\n", n)
	}
}

// A log that is full leaves requests to the ordinary path.
func TestOverrideFull(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	w := NewLineWriter(pw, &LineWriterOptions{BufferSize: 64 << 10})
	l := NewAccessLog(&AccessLogOptions{Output: w})
	fill(w)
	if _, ok := directly(t, l.Override(hello), request("GET", "/", "")); ok {
		t.Error("served while the log is full")
	}
	go io.Copy(io.Discard, pr)
	w.Close()
	pw.Close()
}

func TestSkipSampleFields(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	fields := Must(ParseLogFields("path", "status"))
	l := NewAccessLog(&AccessLogOptions{Format: LogJSON, Output: &out, Fields: fields, Sample: 1 << 30,
		Skip: func(path string) bool { return path == "/healthz" }})
	h := l.Wrap(direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) != "/fine" {
			x.SetStatus(404)
		}
	}))
	for _, path := range []string{"/healthz", "/fine", "/none"} {
		plain(h, request("GET", path, ""))
		directly(t, h, request("GET", path, ""))
	}
	l.Close()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %q", lines)
	}
	for _, line := range lines {
		if !strings.HasSuffix(line, `"msg":"request","path":"/none","status":404}`) {
			t.Errorf("got %s", line)
		}
	}
	if _, err := ParseLogFields("path", "cookie"); err == nil {
		t.Error("cookie is a field")
	}
}

func TestOverrideAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	outer := NewAccessLog(&AccessLogOptions{Format: LogNone})
	inner := NewAccessLog(&AccessLogOptions{Output: io.Discard, BufferSize: 16 << 20, Sample: 2, Skip: func(p string) bool { return p == "/x" }})
	h := Chain(direct.NewResponse(200, nil, []byte("hello")), outer.Wrap, inner.Override).(direct.Handler)
	r := request("GET", "/", "", "User-Agent", "ua")
	var x direct.Exchange
	exchange(&x, r)
	one := func() {
		if !h.ServeDirect(&x) {
			t.Fatal("not answered")
		}
		sent(x.Wire().Finish())
	}
	one()
	if n := testing.AllocsPerRun(1000, func() { one() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// An id is used of a trusted proxy only.
func TestRequestIDForwarded(t *testing.T) {
	t.Parallel()
	mw := Must(RealIP(&RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Note: true}))
	h := Chain(hello, mw, RequestID(&RequestIDOptions{AcceptForwarded: true}))
	for addr, want := range map[string]bool{"192.0.2.1:80": true, "198.51.100.1:80": false} {
		r := request("GET", "/", "", "X-Request-Id", "theirs")
		r.RemoteAddr = addr
		a, _ := directly(t, h, r)
		for _, got := range []string{plain(h, r).Header.Get("X-Request-Id"), a.Header.Get("X-Request-Id")} {
			if (got == "theirs") != want || got == "" {
				t.Errorf("%s: %q", addr, got)
			}
		}
	}
}

// A full log does not stop the requests that have another further inside, nor itself for good.
func TestOverrideFullOutside(t *testing.T) {
	t.Parallel()
	pr, pw := io.Pipe()
	top := NewAccessLog(&AccessLogOptions{Output: pw, BufferSize: 64 << 10})
	var out locked
	own := NewAccessLog(&AccessLogOptions{Format: LogCommon, Output: &out, BufferSize: -1})
	fill(top.lines)
	around := NewAccessLog(&AccessLogOptions{Format: LogNone}).Wrap
	h := around(top.Override(own.Override(hello)))
	if a := plain(h, request("GET", "/own", "")); a.Status != 200 || !strings.Contains(out.String(), "/own") {
		t.Errorf("%v, the log is %q", a, out.String())
	}
	waits := make(chan struct{})
	go func() {
		plain(around(top.Override(hello)), request("GET", "/top", ""))
		close(waits)
	}()
	go io.Copy(io.Discard, pr)
	<-waits
	top.Close()
	pw.Close()
}
