package h2_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// fileOf is a file of n bytes.
func fileOf(t *testing.T, n int) *os.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, n), 0o600); err != nil {
		t.Fatal(err)
	}
	f := must(os.Open(name))
	t.Cleanup(func() { f.Close() })
	return f
}

// WriteTimeout bounds the answers of direct handlers, bodies and files, for a client that
// opens no window.
func TestWriteTimeoutOfDirect(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		file, done := fileOf(t, 100_000), make(chan bool, 1)
		got := make(chan wire.Delivery, 1)
		s := serve(t, kind, &chert.Server{
			// The handshake of TLS has no more either.
			WriteTimeout: time.Second, WriteStallTimeout: -1,
			Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.Wire().Watch(watched{got})
				if string(x.Path()) == "/file" {
					x.SendFile(direct.File{File: file, Len: 100_000, Done: func() { done <- true }})
				} else {
					x.WriteString(strings.Repeat("x", 100_000))
				}
			}),
		})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		for i, p := range []string{"/body", "/file"} {
			if a := c.get(uint32(2*i+1), p); a.reset == "" || len(a.body) > 10 {
				t.Errorf("%s: %+v", p, a)
			}
			if d := servertest.Await(t, got, "the watcher"); d.Complete || d.Body >= 100_000 {
				t.Errorf("%s: %+v", p, d)
			}
		}
		servertest.Await(t, done, "the end of the file")
		if a := c.get(5, "/body"); a.reset == "" {
			t.Errorf("the connection: %+v", a)
		}
	})
}

// A file is given back, and its watcher told, also if the connection ends meanwhile.
func TestFileOfAConnectionThatEnds(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		file, done := fileOf(t, 200_000), make(chan bool, 1)
		got := make(chan wire.Delivery, 1)
		s := serve(t, kind, &chert.Server{Handler: direct.HandlerFunc(func(x *direct.Exchange) {
			x.Wire().Watch(watched{got})
			x.SendFile(direct.File{File: file, Len: 200_000, Done: func() { done <- true }})
		})})
		for _, how := range []string{"end", "reset"} {
			c := s.raw()
			c.headers(1, true, get...)
			c.send()
			for n := 0; n < 65535; {
				f := c.next()
				if f == nil {
					t.Fatal("closed")
				}
				if d, ok := f.(*http2.DataFrame); ok {
					n += len(d.Data())
				}
			}
			if how == "end" {
				c.Close()
			} else {
				c.fr.WriteRSTStream(1, http2.ErrCodeCancel)
				c.send()
			}
			servertest.Await(t, done, "the end of the file")
			if d := servertest.Await(t, got, "the watcher"); d.Complete || d.Body == 0 || d.Body > 65535 {
				t.Errorf("%s: %+v", how, d)
			}
		}
	})
}

// What a direct handler has made is given back if the connection ends while the handler
// holds its loop.
func TestDirectHandlerOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	each(t, "oracle goroutines tls", func(t *testing.T, kind string) {
		file, done := fileOf(t, 1000), make(chan bool, 1)
		got := make(chan wire.Delivery, 1)
		began, release, closed := make(chan bool), make(chan bool), make(chan bool, 1)
		s := serve(t, kind, &chert.Server{
			Handler: direct.HandlerFunc(func(x *direct.Exchange) {
				x.Wire().Watch(watched{got})
				x.SendFile(direct.File{File: file, Len: 1000, Done: func() { done <- true }})
				began <- true
				<-release
			}),
			ConnState: func(_ net.Conn, state http.ConnState) {
				if state == http.StateClosed {
					closed <- true
				}
			},
		})
		c := s.raw()
		c.headers(1, true, get...)
		c.send()
		servertest.Await(t, began, "the handler")
		c.Close()
		servertest.Await(t, closed, "the connection's end")
		release <- true
		servertest.Await(t, done, "the end of the file")
		if d := servertest.Await(t, got, "the watcher"); d.Complete {
			t.Errorf("%+v", d)
		}
	})
}
