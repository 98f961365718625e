package h2_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// What a goroutine of the handler does with the request and the response after the
// handler has returned reaches no other stream, and reads nothing of one.
func TestLateUse(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		late := make(chan error, 1000)
		s := serve(t, kind, &chert.Server{Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				want := r.URL.Path
				rc := http.NewResponseController(w)
				for range 20 {
					w.Write([]byte("late"))
					rc.Flush()
					r.Body.Read(make([]byte, 10))
					if r.URL.Path != want {
						t.Errorf("the request has changed: %q, %q", r.URL.Path, want)
					}
				}
				_, err := w.Write([]byte("late"))
				late <- err
			}()
		})})
		c := s.raw()
		for id := uint32(1); id < 200; id += 2 {
			a := c.get(id, "/"+strings.Repeat("x", int(id)))
			if a.goaway != "" || strings.ReplaceAll(a.body, "late", "") != "" {
				t.Fatalf("got %+v", a)
			}
		}
		for id := 1; id < 200; id += 2 {
			servertest.Await(t, late, "a late writer")
		}
		// Nothing has come that belongs to no stream.
		if a := c.get(201, "/end"); a.goaway != "" || a.closed {
			t.Errorf("got %+v", a)
		}
		servertest.Await(t, late, "a late writer")
	})
}
