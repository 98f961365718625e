package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/rfc/coding"
)

// Responses beyond MaxEncoders are sent uncompressed, and an encoder is
// released however a handler ends.
func TestCompressMaxEncoders(t *testing.T) {
	t.Parallel()
	const most = 2
	for _, name := range []string{"gzip", "br", "zstd"} {
		c := Must(newCompress(CompressOptions{MaxEncoders: most}))
		h := newHeld()
		mw := c.around(hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Etag", `"1"`)
			io.WriteString(w, page)
			switch r.URL.Path {
			case "/hold":
				h.entered <- struct{}{}
				<-h.leave
			case "/panic":
				panic(http.ErrAbortHandler)
			}
		}))
		ask := func(path string) answer { return plain(mw, request("GET", path, "", "Accept-Encoding", name)) }
		check := func(when, coding, tag string) {
			t.Helper()
			a := ask("/")
			if a.Header.Get("Content-Encoding") != coding || a.Header.Get("Vary") != "Accept-Encoding" || a.Header.Get("Etag") != tag || decode(t, a) != page {
				t.Errorf("%s, %s: got %v", name, when, a.Header)
			}
		}
		var holding sync.WaitGroup
		for range most {
			holding.Go(func() { ask("/hold") })
			<-h.entered
		}
		if n := c.live.Load(); n != most {
			t.Errorf("%s: %d encoders at work", name, n)
		}
		for range 3 {
			check("full", "", `"1"`)
		}
		if a := plain(mw, request("HEAD", "/", "", "Accept-Encoding", name)); a.Header.Get("Content-Encoding") != name {
			t.Errorf("%s: HEAD: %v; it needs no encoder", name, a.Header)
		}
		if n := c.live.Load(); n != most {
			t.Errorf("%s: %d encoders at work", name, n)
		}
		close(h.leave)
		holding.Wait()
		for range most + 1 {
			func() {
				defer func() { recover() }()
				ask("/panic")
			}()
		}
		check("free again", name, `W/"1"`)
		if n := c.live.Load(); n != 0 {
			t.Errorf("%s: %d places are not given back", name, n)
		}
	}
}

// On the fast path too, and without a limit.
func TestCompressMaxEncodersDirect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		max  int
		want string
	}{{1, ""}, {2, "gzip"}, {-1, "gzip"}} {
		c := Must(newCompress(CompressOptions{MaxEncoders: tt.max}))
		c.enter() // another
		h := c.around(direct.HandlerFunc(func(x *direct.Exchange) {
			x.SetHeader("Content-Type", "text/plain")
			x.WriteString(page)
		}))
		a, ok := directly(t, h, request("GET", "/", "", "Accept-Encoding", "gzip"))
		if !ok || a.Header.Get("Content-Encoding") != tt.want || a.Header.Get("Vary") != "Accept-Encoding" || decode(t, a) != page {
			t.Errorf("%d: got %v %v", tt.max, ok, a.Header)
		}
		if n := c.live.Load(); n != 1 {
			t.Errorf("%d: %d at work", tt.max, n)
		}
	}
}

// A connection that was taken over holds no encoder.
func TestCompressMaxEncodersHijack(t *testing.T) {
	t.Parallel()
	c := Must(newCompress(CompressOptions{}))
	a := &compressing{c: c, coding: coding.Gzip}
	w := a.Init(hijackable{httptest.NewRecorder()}, a)
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, page)
	if n := c.live.Load(); n != 1 {
		t.Fatalf("%d at work", n)
	}
	if _, _, err := http.NewResponseController(w).Hijack(); err != nil {
		t.Fatal(err)
	}
	a.Writer.End(true)
	a.Writer.End(true)
	if n := c.live.Load(); n != 0 {
		t.Errorf("%d at work", n)
	}
}

type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }
