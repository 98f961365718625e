package behave

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// largeSize is more than a socket takes: the kernel's buffers on both sides
// have no more than some megabytes.
const largeSize = 24 << 20

// largeFile is a file of largeSize bytes, which repeat pattern(largePart).
func largeFile(t *testing.T) *os.File {
	t.Helper()
	file := servertest.File(t, nil)
	for at := 0; at < largeSize; at += largePart {
		if _, err := file.Write(servertest.Pattern(largePart)); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

const largePart = 1 << 20

// wantLarge reads n bytes of a large file, from an offset.
func wantLarge(c *servertest.Client, offset, n int64) {
	c.T.Helper()
	part, b := servertest.Pattern(largePart), make([]byte, largePart)
	for n > 0 {
		at := int(offset % largePart)
		k := min(n, int64(largePart-at))
		if got, err := io.ReadFull(c.R, b[:k]); err != nil {
			c.T.Fatalf("at %d: %d bytes, %v", offset, got, err)
		}
		if !bytes.Equal(b[:k], part[at:at+int(k)]) {
			c.T.Fatalf("wrong bytes from %d on", offset)
		}
		offset, n = offset+k, n-k
	}
}

// largeServer serves parts of a large file: "/<offset>-<length>", by the
// exchange or, at "/writer/...", by the response writer. Other paths return
// themselves.
type largeServer struct {
	file        *os.File
	given, done atomic.Int64 // files
	direct      atomic.Int64 // calls of ServeDirect
	plain       atomic.Int64 // and of ServeHTTP
	check       func() error // nil: none
}

func newLarge(t *testing.T) *largeServer { return &largeServer{file: largeFile(t)} }

func (l *largeServer) find(path string) (f direct.File, ok bool) {
	f.File, f.Check = l.file, l.check
	n, _ := fmt.Sscanf(path, "/%d-%d", &f.Offset, &f.Len)
	f.Done = func() { l.done.Add(1) }
	return f, n == 2
}

func (l *largeServer) answer(x *direct.Exchange) {
	x.SetHeader("Content-Type", "a/b")
	f, ok := l.find(string(x.Path()))
	if !ok {
		x.Write(x.Path())
		return
	}
	l.given.Add(1)
	x.SendFile(f)
}

func (l *largeServer) ServeDirect(x *direct.Exchange) bool {
	if bytes.HasPrefix(x.Path(), []byte("/writer")) {
		return false
	}
	l.direct.Add(1)
	l.answer(x)
	return true
}

func (l *largeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.plain.Add(1)
	path, ok := strings.CutPrefix(r.URL.Path, "/writer")
	if !ok {
		direct.Respond(w, r, l.answer)
		return
	}
	f, _ := l.find(path)
	w.Header().Set("Content-Length", fmt.Sprint(f.Len))
	w.Header().Set("Content-Type", "a/b")
	if wire.SendFile(w, f) != nil {
		panic(http.ErrAbortHandler)
	}
}

// over waits until the server has released all files.
func (l *largeServer) over(t *testing.T) {
	t.Helper()
	looks := 0 // few, if the process itself has hung
	servertest.Eventually(t, "the server is through with the file", func() bool {
		if looks++; looks%10_000 == 0 {
			t.Logf("%d looks, %d of %d", looks, l.done.Load(), l.given.Load())
		}
		return l.done.Load() >= l.given.Load()
	})
	if given, done := l.given.Load(), l.done.Load(); done != given {
		t.Errorf("Done was called %d times for %d files", done, given)
	}
}

// allDirectWays runs f on each way, net/http's too.
func allDirectWays(t *testing.T, f func(t *testing.T, way directWay)) {
	t.Helper()
	for _, w := range directWays() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

// Parts of a large file, pipelined, while the client reads nothing at first:
// all arrive whole and in order. By the response writer too.
func TestStalledPipeline(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	parts := [][2]int64{{0, largeSize}, {1, 0}, {5 << 20, 9<<20 + 1}, {12345, 17}, {largeSize - 1, 1}, {777, 6 << 20}, {100, 16 << 10}, {100, 16<<10 + 1}}
	allDirectWays(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		ts := way.start(t, &chert.Server{Handler: large})
		for _, prefix := range []string{"", "/writer"} {
			c := ts.Dial()
			var script strings.Builder
			for _, p := range parts {
				script.WriteString(ask(fmt.Sprintf("GET %s/%d-%d", prefix, p[0], p[1])))
				script.WriteString(ask("GET /small") + ask(fmt.Sprintf("HEAD %s/%d-%d", prefix, p[0], p[1])))
			}
			c.Send(script.String() + ask("GET /end", "Connection: close"))
			for _, p := range parts {
				head := c.Head()
				if want := fmt.Sprintf("Content-Length: %d\r\n", p[1]); !strings.HasPrefix(head, ok) || !strings.Contains(head, want) {
					t.Fatalf("got %q, want %q in it", head, want)
				}
				wantLarge(c, p[0], p[1])
				if _, body := c.Response("GET"); body != "/small" {
					t.Fatalf("got %q", body)
				}
				if head := c.Head(); !strings.HasPrefix(head, ok) || p[1] > 0 && !strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", p[1])) {
					t.Fatalf("got %q", head)
				}
			}
			if _, body := c.Response("GET"); body != "/end" {
				t.Fatalf("got %q", body)
			}
			c.Ended()
		}
		if way.knows && large.direct.Load() == 0 {
			t.Error("ServeDirect was not called")
		}
		large.over(t)
	})
}

// TLS has no sendfile.
func TestStalledTLS(t *testing.T) {
	t.Parallel()
	large := newLarge(t)
	cert, roots := servertest.Certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ts := engines.StartTLS(t, &chert.Server{Handler: large}, l, cert)
	c, _ := servertest.TLSOver(t, ts.Dial().Conn, roots)
	for _, prefix := range []string{"", "/writer"} {
		c.Send(ask(fmt.Sprintf("GET %s/3-%d", prefix, largeSize-3)) + ask("GET /small"))
		c.Head()
		wantLarge(c, 3, largeSize-3)
		if _, body := c.Response("GET"); body != "/small" {
			t.Fatalf("got %q", body)
		}
	}
	large.over(t)
}

// TestStalledMany has clients that do not read. On loops they cost no
// goroutine, and delay no other client. Then they read.
func TestStalledMany(t *testing.T) {
	large := newLarge(t)
	const clients = 200
	for _, way := range directWays()[1:] {
		if !way.knows {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			ts := way.start(t, &chert.Server{Handler: large})
			before := runtime.NumGoroutine()
			given := large.given.Load()
			var all []*servertest.Client
			for range clients {
				c := ts.Dial()
				c.Send(ask("GET /x") + ask(fmt.Sprintf("GET /1-%d", largeSize-1)) + ask("GET /next"))
				all = append(all, c)
			}
			servertest.Eventually(t, "all are sent to", func() bool { return large.given.Load() == given+clients })
			for range 50 {
				if _, body := ts.Dial().Get("/fast"); body != "/fast" {
					t.Fatalf("got %q", body)
				}
			}
			if way.name != "goroutines" {
				// Adaptive moves handlers that were late once to goroutines; on
				// a busy machine any may be.
				most := before + clients/4 + int(large.plain.Load())
				servertest.Eventually(t, "no goroutine waits for them", func() bool { return runtime.NumGoroutine() < most })
			}
			if n := large.given.Load() - large.done.Load(); n != clients {
				t.Errorf("%d responses are in progress", n)
			}
			some := 0
			var wg sync.WaitGroup
			limit := make(chan bool, 4)
			for i, c := range all {
				if i%8 != 0 {
					// The rest leave, one way or another.
					if i%2 == 0 {
						c.Reset()
					} else {
						c.Close()
					}
					continue
				}
				some++
				wg.Go(func() {
					limit <- true
					defer func() { <-limit }()
					c.SetDeadline(time.Now().Add(servertest.Patience))
					if _, body := c.Response("GET"); body != "/x" {
						t.Errorf("got %q", body)
					}
					c.Head()
					wantLarge(c, 1, largeSize-1)
					if _, body := c.Response("GET"); body != "/next" {
						t.Errorf("got %q", body)
					}
				})
			}
			wg.Wait()
			large.over(t)
		})
	}
}

// stalledNow waits until a response is in progress and the client's side is
// full.
func (l *largeServer) stalledNow(c *servertest.Client) {
	c.T.Helper()
	n := l.given.Load()
	c.Send(ask(fmt.Sprintf("GET /0-%d", largeSize)))
	servertest.Eventually(c.T, "the response has begun", func() bool { return l.given.Load() > n })
	c.Line()
}

// Shutdown waits for a stalled response.
func TestStalledShutdown(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	allDirectWays(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		ts := way.start(t, &chert.Server{Handler: large})
		c, idle := ts.Dial(), ts.Dial()
		idle.Get("/idle")
		large.stalledNow(c)
		ended := make(chan error, 1)
		go func() { ended <- ts.Control.Shutdown(context.Background()) }()
		idle.Ended()
		select {
		case err := <-ended:
			t.Errorf("Shutdown did not wait: %v", err)
		default:
		}
		if way.name != "nethttp" && way.name != "goroutines" { // there it may cost the response
			c.Send(ask("GET /behind"))
		}
		c.Head()
		wantLarge(c, 0, largeSize)
		c.UpToEnd() // requests after it may or may not be served
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
		large.over(t)
	})
}

// Turning keep-alives off for a moment does not end connections with a response
// in progress.
func TestStalledKeepAlives(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	eachDirect(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		ts := way.start(t, &chert.Server{Handler: large})
		c, idle := ts.Dial(), ts.Dial()
		idle.Get("/idle")
		large.stalledNow(c)
		ts.SetKeepAlivesEnabled(false)
		idle.Ended()
		ts.SetKeepAlivesEnabled(true)
		c.Head()
		wantLarge(c, 0, largeSize)
		if _, body := c.Get("/next"); body != "/next" {
			t.Errorf("got %q", body)
		}
		large.stalledNow(c)
		ts.SetKeepAlivesEnabled(false)
		c.Head()
		wantLarge(c, 0, largeSize)
		c.Ended()
	})
}

// Close ends it, and so does a client that resets.
func TestStalledEnds(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	allDirectWays(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		states := make(chan http.ConnState, 100)
		ts := way.start(t, &chert.Server{Handler: large, ConnState: func(_ net.Conn, s http.ConnState) { states <- s }})
		want := func(all ...http.ConnState) {
			for _, w := range all {
				if s := servertest.Await(t, states, "a state"); s != w {
					t.Fatalf("the state is %v, want %v", s, w)
				}
			}
		}
		c := ts.Dial()
		large.stalledNow(c)
		c.Head()
		wantLarge(c, 0, largeSize)
		want(http.StateNew, http.StateActive, http.StateIdle)
		large.stalledNow(c)
		c.Reset()
		want(http.StateActive, http.StateClosed)
		large.over(t)
		c = ts.Dial()
		large.stalledNow(c)
		want(http.StateNew, http.StateActive)
		ts.Control.Close()
		if n, _ := io.Copy(io.Discard, c.R); n >= largeSize {
			t.Errorf("all %d bytes came", n)
		}
		want(http.StateClosed)
		large.over(t)
	})
}

// A client that has sent FIN gets its responses all the same.
func TestStalledHalfClose(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	eachDirect(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		ts := way.start(t, &chert.Server{Handler: large})
		c := ts.Dial()
		c.Send(ask(fmt.Sprintf("GET /0-%d", largeSize)) + ask("GET /next"))
		c.CloseWrite()
		c.Head()
		wantLarge(c, 0, largeSize)
		if _, body := c.Response("GET"); body != "/next" {
			t.Errorf("got %q", body)
		}
		c.Ended()
		large.over(t)
	})
}

// A client that accepts nothing for WriteStallTimeout is reset, and
// WriteTimeout limits every client. (That one that accepts a little is not
// reset is tested in internal/conn.)
func TestStalledTimeouts(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	eachDirect(t, func(t *testing.T, way directWay) {
		for _, tt := range []struct {
			name string
			s    *chert.Server
			read bool
			all  bool
		}{
			{"stops", &chert.Server{WriteStallTimeout: servertest.Soon / 4}, false, false},
			{"reads", &chert.Server{WriteStallTimeout: servertest.Patience, WriteTimeout: servertest.Patience}, true, true},
			{"WriteTimeout", &chert.Server{WriteTimeout: servertest.Soon / 4}, false, false},
			{"WriteTimeout alone", &chert.Server{WriteTimeout: servertest.Soon / 4, WriteStallTimeout: -1}, false, false},
		} {
			t.Run(tt.name, func(t *testing.T) {
				large := &largeServer{file: file}
				tt.s.Handler = large
				ts := way.start(t, tt.s)
				c := ts.Dial()
				c.Send(ask(fmt.Sprintf("GET /0-%d", largeSize)))
				if !tt.read {
					servertest.Eventually(t, "the response has ended", func() bool { return large.done.Load() > 0 })
				}
				n, err := io.Copy(io.Discard, io.LimitReader(c.R, largeSize))
				if tt.all != (n == largeSize) {
					t.Errorf("%s: got %d bytes, %v", tt.name, n, err)
				}
				c.Close()
				large.over(t)
			})
		}
	})
}

// A file that shrinks or changes ends the connection within the body. The
// announced length is never reached.
func TestStalledChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(l *largeServer, changed *atomic.Bool)
	}{
		{"shrunk", func(l *largeServer, changed *atomic.Bool) { l.file.Truncate(largeSize - 10) }},
		{"empty", func(l *largeServer, changed *atomic.Bool) { l.file.Truncate(0) }},
		{"check", func(l *largeServer, changed *atomic.Bool) { changed.Store(true) }},
	} {
		allNamed(t, tt.name, func(t *testing.T, way directWay) {
			for _, prefix := range []string{"", "/writer"} {
				large := newLarge(t)
				var changed atomic.Bool
				large.check = func() error {
					if changed.Load() {
						return errors.New("changed")
					}
					return nil
				}
				ts := way.start(t, &chert.Server{Handler: large})
				c := ts.Dial()
				c.Send(ask(fmt.Sprintf("GET %s/0-%d", prefix, largeSize)) + ask("GET /next"))
				c.Head()
				tt.change(large, &changed)
				got, _ := io.Copy(io.Discard, c.R)
				if got >= largeSize {
					t.Errorf("%s: %d bytes came", prefix, got)
				}
				large.over(t)
			}
		})
	}
}

func allNamed(t *testing.T, name string, f func(t *testing.T, way directWay)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		allDirectWays(t, f)
	})
}

// Panics of the caller's functions end the connection, and Done is called once.
func TestStalledPanics(t *testing.T) {
	t.Parallel()
	file := largeFile(t)
	for _, where := range []string{"check", "done", "done of HEAD", "both"} {
		allNamed(t, where, func(t *testing.T, way directWay) {
			var done atomic.Int64
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetHeader("Content-Type", "a/b")
				if string(x.Path()) != "/" {
					return
				}
				x.SendFile(direct.File{File: file, Len: largeSize, Check: func() error {
					if where == "check" || where == "both" {
						panic("boom")
					}
					return nil
				}, Done: func() {
					if done.Add(1); where != "check" {
						panic("boom")
					}
				}})
			})})
			c := ts.Dial()
			if where == "done of HEAD" {
				c.Send(ask("HEAD /"))
			} else {
				c.Send(ask("GET /"))
			}
			io.Copy(io.Discard, c.R)
			servertest.Eventually(t, "it is logged", func() bool { return strings.Contains(ts.Log.String(), "boom") })
			if n := done.Load(); n != 1 {
				t.Errorf("Done was called %d times", n)
			}
			ts.Dial().Get("/other")
		})
	}
}

// Offsets beyond 2 and 4 GiB, of a file that is mostly a hole.
func TestStalledFarOffset(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "sparse")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	const size = 5 << 30
	if err := file.Truncate(size); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	marks := []int64{0, 1<<31 - 7, 1 << 32, size - 20}
	for _, at := range marks {
		if _, err := file.WriteAt(fmt.Appendf(nil, "<%016x>", at), at); err != nil {
			t.Skip("no sparse files here: ", err)
		}
	}
	allDirectWays(t, func(t *testing.T, way directWay) {
		large := &largeServer{file: file}
		ts := way.start(t, &chert.Server{Handler: large})
		for _, prefix := range []string{"", "/writer"} {
			for _, at := range marks {
				for _, before := range []int64{0, min(at, 3<<20)} {
					c := ts.Dial()
					n := before + 18
					c.Send(ask(fmt.Sprintf("GET %s/%d-%d", prefix, at-before, n)))
					if head := c.Head(); !strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", n)) {
						t.Fatalf("got %q", head)
					}
					io.CopyN(io.Discard, c.R, before)
					c.Want(fmt.Sprintf("<%016x>", at))
					c.Close()
				}
			}
			// The length is right as well; reading that much would take too
			// long.
			c := ts.Dial()
			c.Send(ask(fmt.Sprintf("GET %s/0-%d", prefix, int64(size))))
			if head := c.Head(); !strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", int64(size))) {
				t.Fatalf("got %q", head)
			}
			c.Want(fmt.Sprintf("<%016x>", 0))
			c.Reset()
		}
		large.over(t)
	})
}

// A plain handler's response writer sends a file as net/http would send the
// same bytes: after what was written, with the type that they show, chunked or
// with a length, no more than was announced.
func TestFileSender(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "page")
	page := append([]byte("<html>"), servertest.Pattern(3<<20)...)
	if err := os.WriteFile(name, page, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	for _, tt := range []struct {
		why       string
		offset, n int64
		length    int64 // declared; -1: none
		before    string
		checks    bool // and the check is called
		fails     bool
	}{
		{"small", 0, 1000, 1000, "", false, false},
		{"small, no length", 0, 1000, -1, "", false, false},
		{"large", 0, 100_000, 100_000, "", false, false},
		{"large, no length", 0, 100_000, -1, "", true, false},
		{"a part", 1000, 100_000, 100_000, "", false, false},
		{"behind a write", 1000, 100_000, 100_003, "abc", false, false},
		{"several pieces", 5, 2<<20 + 10_000, 2<<20 + 10_000, "", true, false},
		{"several pieces and a small rest", 0, 2<<20 + 512, 2<<20 + 512, "", true, false},
		{"nothing", 0, 0, 0, "", false, false},
		{"more than the file has", 3 << 20, 1 << 20, 1 << 20, "", false, true},
		{"less than was announced", 0, 100_000, 100_001, "", false, false},
		{"more than was announced", 0, 100_000, 50_000, "", false, true},
	} {
		allNamed(t, tt.why, func(t *testing.T, way directWay) {
			var checks atomic.Int64
			failed := make(chan error, 10)
			ts := way.start(t, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/next" {
					return
				}
				if tt.length >= 0 {
					w.Header().Set("Content-Length", fmt.Sprint(tt.length))
				}
				put(w, tt.before)
				file.Seek(77, io.SeekStart)
				err := wire.SendFile(w, direct.File{File: file, Offset: tt.offset, Len: tt.n, Check: func() error { checks.Add(1); return nil }})
				failed <- err
				if err != nil {
					panic(http.ErrAbortHandler)
				}
			})})
			c := ts.Dial()
			c.Send(ask("GET /"))
			res, err := http.ReadResponse(c.R, nil)
			if err != nil && tt.fails && way.name == "nethttp" {
				return // it had not sent anything
			} else if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			end := min(tt.offset+tt.n, int64(len(page)))
			want := tt.before + string(page[tt.offset:end])
			if tt.length >= 0 {
				want = want[:min(int64(len(want)), tt.length)]
			}
			if string(body) != want && !(tt.fails && way.name == "nethttp") {
				t.Errorf("got %s (%v), want %s", servertest.Brief(string(body)), err, servertest.Brief(want))
			}
			if err := servertest.Await(t, failed, "the handler"); tt.fails != (err != nil) {
				t.Errorf("SendFile gave %v", err)
			}
			if len(want) > 0 {
				if got, want := res.Header.Get("Content-Type"), http.DetectContentType([]byte(want)); got != want {
					t.Errorf("the type is %q, want %q", got, want)
				}
			}
			if tt.checks && checks.Load() == 0 {
				t.Error("the file was not checked")
			}
			if at, _ := file.Seek(0, io.SeekCurrent); at != 77 {
				t.Errorf("the file's offset was moved to %d", at)
			}
			if !tt.fails && int64(len(want)) == max(tt.length, int64(len(want))) {
				c.Get("/next")
			} else {
				c.Ended()
			}
		})
	}
}
