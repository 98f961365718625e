package h2_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
)

// What handlers have kept of a request does nothing to those after it, which use the
// same stream.
func TestKept(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		var answered sync.Map // channels, closed when the client has an answer
		var wg sync.WaitGroup
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Path", r.URL.Path)
			io.WriteString(w, r.URL.Path)
			done, _ := answered.Load(r.URL.Path)
			wg.Go(func() {
				<-done.(chan struct{})
				ctl := http.NewResponseController(w)
				ctl.SetReadDeadline(time.Unix(1, 0))
				ctl.SetWriteDeadline(time.Unix(1, 0))
				ctl.Flush()
				if _, err := w.Write([]byte("late")); err == nil {
					t.Errorf("%s: a late Write succeeds", r.URL.Path)
				}
				if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("%s: a late Read: %d, %v", r.URL.Path, n, err)
				}
				if err := r.Context().Err(); err != context.Canceled {
					t.Errorf("%s: the context's error is %v", r.URL.Path, err)
				}
				_ = r.Context().Value(http.LocalAddrContextKey)
			})
		})})
		var clients sync.WaitGroup
		for n := range 4 {
			clients.Go(func() {
				c := s.raw()
				for id := uint32(1); id < 200; id += 2 {
					p := fmt.Sprintf("/%d/%d", n, id)
					done := make(chan struct{})
					answered.Store(p, done)
					c.headers(id, id%4 == 1, path(get, p)...)
					if id%4 == 3 {
						c.send()
						c.fr.WriteData(id, true, []byte("body"))
					}
					c.send()
					a := c.read(id)
					if close(done); a.body != p || a.field("x-path") != p || a.goaway != "" {
						t.Errorf("got %+v, want %q", a, p)
						return
					}
				}
			})
		}
		clients.Wait()
		wg.Wait()
	})
}

// Each request has its own fields, body and answer, also beside streams that are reset or
// that wait.
func TestReuse(t *testing.T) {
	t.Parallel()
	plain := hf(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.HasPrefix(r.URL.Path, "/watched") {
			_ = r.Context().Done()
		}
		w.Header().Set("X-Path", r.URL.Path)
		fmt.Fprintf(w, "%s %s %d %s %d", r.URL.Path, r.Header.Get("X-A"), len(r.Header), body, len(w.Header()))
	})
	d := direct.HandlerFunc(func(x *direct.Exchange) {
		x.SetHeader("X-Path", string(x.Path()))
		fmt.Fprintf(x, "%s %s 1  1", x.Path(), x.RequestHeader("x-a"))
	})
	each(t, "oracle", func(t *testing.T, kind string) {
		for _, h := range []http.Handler{plain, d} {
			s := serve(t, kind, &chert.Server{Handler: h})
			var wg sync.WaitGroup
			for n := range 4 {
				wg.Go(func() {
					c := s.raw()
					for id := uint32(1); id < 600; id += 2 {
						p := fmt.Sprintf("/%d/%d", n, id)
						want := fmt.Sprintf("%s a%d 1 %s 1", p, id, "")
						switch id % 10 {
						case 1:
							c.headers(id, false, with(path(get, p), "x-b: reset")...)
							c.fr.WriteRSTStream(id, http2.ErrCodeCancel)
							continue
						case 3:
							p = "/watched" + p
							want = "/watched" + want
							c.headers(id, true, with(path(get, p), fmt.Sprint("x-a: a", id))...)
						case 5:
							c.headers(id, false, with(path(get, p), fmt.Sprint("x-a: a", id))...)
							c.send()
							c.fr.WriteData(id, true, nil)
						default:
							c.headers(id, true, with(path(get, p), fmt.Sprint("x-a: a", id))...)
						}
						c.send()
						if a := c.read(id); a.body != want || a.field("x-path") != p || a.goaway != "" {
							t.Errorf("got %+v, want %q", a, want)
							return
						}
					}
				})
			}
			wg.Wait()
		}
	})
}
