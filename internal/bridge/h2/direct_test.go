package h2_test

import (
	"fmt"
	"io"
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

// slowly is a direct handler that may be called ahead of the body, and returns when it may.
type slowly struct {
	http.Handler
	began, release chan bool
	reads          bool // and needs the body after all
}

func (h *slowly) TakesAhead() bool { return true }

func (h *slowly) ServeDirect(x *direct.Exchange) bool {
	h.began <- x.Wire().Ahead()
	<-h.release
	if h.reads {
		x.Write(x.Body())
	}
	return h.reads
}

// A direct handler that has lost its loop declines when the body has come: the plain one gets that.
func TestBodyComesWhileDirectHandlerDecides(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		fields []string
		send   func(c *raw)
		want   string // length, body and trailers
	}{
		{"whole", nil, func(c *raw) { c.fr.WriteData(1, true, []byte("abc")) }, `-1 "abc" map[]`},
		{"length", []string{"content-length: 3"}, func(c *raw) { c.fr.WriteData(1, true, []byte("abc")) }, `3 "abc" map[]`},
		{"in parts", nil, func(c *raw) {
			c.fr.WriteData(1, false, []byte("a"))
			c.fr.WriteData(1, false, []byte("bc"))
			c.fr.WriteData(1, true, nil)
		}, `-1 "abc" map[]`},
		{"trailers", []string{"trailer: x-end"}, func(c *raw) {
			c.fr.WriteData(1, false, []byte("abc"))
			c.headers(1, true, "x-end: 1")
		}, `-1 "abc" map[X-End:[1]]`},
		{"empty", nil, func(c *raw) { c.fr.WriteData(1, true, nil) }, `-1 "" map[]`},
	} {
		for _, reads := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, " ", reads), func(t *testing.T) {
				t.Parallel()
				each(t, "oracle goroutines tls pooled inline", func(t *testing.T, kind string) {
					h := &slowly{began: make(chan bool), release: make(chan bool), reads: reads}
					h.Handler = hf(func(w http.ResponseWriter, r *http.Request) {
						b, err := io.ReadAll(r.Body)
						if err != nil {
							t.Error(err)
						}
						fmt.Fprintf(w, "%d %q %v", r.ContentLength, b, r.Trailer)
					})
					c := serve(t, kind, &chert.Server{Handler: h}).raw()
					c.headers(1, false, with(post, tt.fields...)...)
					c.send()
					if !servertest.Await(t, h.began, "the direct handler") {
						t.Error("it has the body already")
					}
					tt.send(c)
					c.fr.WritePing(false, [8]byte{1})
					c.send()
					for ponged := false; !ponged; { // the other driver of the loop has all of it
						f := c.next()
						if f == nil {
							t.Fatal("closed")
						}
						p, ok := f.(*http2.PingFrame)
						ponged = ok && p.IsAck() && p.Data[0] == 1
					}
					close(h.release)
					if a := c.read(1); a.outcome() != "200" || a.body != tt.want {
						t.Errorf("%s, %s, want %s", a.outcome(), a.body, tt.want)
					}
				})
			})
		}
	}
}
