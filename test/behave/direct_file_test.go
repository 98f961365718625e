package behave

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// directFile is a file of ten thousand bytes.
func directFile(t *testing.T) *os.File {
	t.Helper()
	return servertest.File(t, append([]byte("<html>"), servertest.Pattern(9994)...))
}

// A file shorter than announced ends the connection within the body.
func TestDirectFileTooShort(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			file := directFile(t)
			var done atomic.Int64
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				f := direct.File{File: file, Offset: 1000, Len: 9001, Done: func() { done.Add(1) }}
				if string(x.Path()) == "/gone" {
					f.Offset = 20000
				}
				x.SendFile(f)
			})})
			for i, tt := range []struct {
				path string
				size int
			}{{"/one", 9000}, {"/gone", 0}} {
				c := ts.Dial()
				c.Send(ask("GET "+tt.path) + ask("GET /one"))
				got := c.UpToEnd()
				if _, body, ok := strings.Cut(got, "\r\n\r\n"); ok && (len(body) != tt.size || !strings.Contains(got, "Content-Length: 9001")) {
					t.Errorf("%s: got %s", tt.path, servertest.Brief(got))
				}
				if strings.Count(got, "HTTP/1.1") > 1 {
					t.Errorf("%s: the connection was used again: %s", tt.path, servertest.Brief(got))
				}
				servertest.Eventually(t, "Done is called", func() bool { return done.Load() > int64(i) })
				if n := done.Load(); n != int64(i+1) {
					t.Errorf("Done was called %d times, want %d", n, i+1)
				}
			}
		})
	}
}

// The use of a file also ends when its client leaves or does not read.
func TestDirectFileClientGone(t *testing.T) {
	t.Parallel()
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "large")
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			const size = 32 << 20
			if err := os.Truncate(name, size); err != nil {
				t.Fatal(err)
			}
			file, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			done := make(chan struct{}, 16)
			ts := way.start(t, &chert.Server{WriteTimeout: servertest.Soon / 4, Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.SetHeader("Content-Type", "a/b")
				x.SendFile(direct.File{File: file, Len: size, Done: func() { done <- struct{}{} }})
			})})
			c := ts.Dial()
			c.Send(ask("GET /"))
			c.Line()
			c.Reset()
			servertest.Await(t, done, "Done")
			c = ts.Dial()
			c.Send(ask("GET /")) // and reads nothing, until WriteTimeout is over
			servertest.Await(t, done, "Done")
			if n, err := io.Copy(io.Discard, c.R); n >= size {
				t.Errorf("all came: %d, %v", n, err)
			}
			if len(done) != 0 {
				t.Error("Done was called again")
			}
			// The deadline does not apply to the next request.
			c = ts.Dial()
			for range 3 {
				c.Send(ask("HEAD /"))
				if res, _ := c.Response("HEAD"); res.ContentLength != size {
					t.Errorf("got %v", res)
				}
			}
		})
	}
}

// Done is called for a file that is replaced, and for one whose handler panics.
func TestDirectFileDone(t *testing.T) {
	t.Parallel()
	file := directFile(t)
	for _, way := range directWays() {
		t.Run(way.name, func(t *testing.T) {
			var first, second, panicked atomic.Int64
			ts := way.start(t, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				if string(x.Path()) == "/panic" {
					x.SendFile(direct.File{File: file, Len: 10, Done: func() { panicked.Add(1) }})
					panic(http.ErrAbortHandler)
				}
				x.SendFile(direct.File{File: file, Len: 10, Done: func() { first.Add(1) }})
				x.SendFile(direct.File{File: file, Len: 20, Done: func() { second.Add(1) }})
			})})
			c := ts.Dial()
			c.Get("/twice")
			c.Get("/twice") // the first is over
			c = ts.Dial()
			c.Send(ask("GET /panic"))
			c.Ended()
			ts.Shutdown(t.Context())
			if way.name != "nethttp" && (first.Load() != 2 || second.Load() != 2 || panicked.Load() != 1) {
				t.Errorf("Done was called %d times for the replaced files, %d for the sent ones, %d after the panic; want 2, 2, 1", first.Load(), second.Load(), panicked.Load())
			}
		})
	}
}
