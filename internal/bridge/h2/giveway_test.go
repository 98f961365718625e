package h2_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// A connection gives way to another when it is idle, and not while it has a stream.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	each(t, "oracle inline", func(t *testing.T, kind string) {
		begun, release := make(chan bool, 1), make(chan bool)
		s := serve(t, kind, &chert.Server{MaxConns: 2, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				begun <- true
				<-release
			}
			io.WriteString(w, "hello")
		})})
		busy, idle := s.raw(), s.raw()
		// Its last frame is older than those of the other.
		busy.headers(1, true, path(get, "/wait")...)
		busy.send()
		servertest.Await(t, begun, "the handler")
		if a := idle.get(1, "/"); a.outcome() != "200" {
			t.Fatalf("got %+v", a)
		}
		// Until its first request has come a new one may itself give way.
		for n := 0; s.raw().get(1, "/").body != "hello"; n++ {
			if n > 100 {
				t.Fatal("no place for another connection")
			}
		}
		// The client learns which streams were not served.
		if a := idle.read(3); a.goaway != "NO_ERROR" || !a.closed {
			t.Errorf("the idle connection: got %+v", a)
		}
		close(release)
		if a := busy.read(1); a.body != "hello" || a.goaway != "" {
			t.Errorf("the busy connection: got %+v", a)
		}
	})
}
