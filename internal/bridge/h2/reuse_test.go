package h2_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
)

// With ReuseRequests, and with direct handlers, each request has its own fields, body
// and answer, also beside streams that are reset or that wait.
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
			s := serve(t, kind, &chert.Server{ReuseRequests: true, Handler: h})
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
