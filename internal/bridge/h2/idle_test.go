package h2_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// opening sends the preface and a request at once, so that no timeout of the server's can
// come between them.
func (r *running) opening(id uint32, p string) *raw {
	c := r.bare()
	c.out.WriteString(http2.ClientPreface)
	c.fr.WriteSettings()
	c.headers(id, true, path(get, p)...)
	c.send()
	return c
}

// idles reports whether the server ends the connection as one that is idle.
func (c *raw) idles() bool {
	a := c.read(1 << 30)
	return a.closed && a.goaway == "NO_ERROR"
}

// A connection without requests is closed after IdleTimeout, and one with a request in
// progress is not, however long that takes.
func TestIdle(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		began, release := make(chan bool), make(chan bool)
		s := serve(t, kind, &chert.Server{IdleTimeout: 50 * time.Millisecond, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				began <- true
				<-release
			}
			hello(w, r)
		})})
		busy := s.opening(1, "/wait")
		servertest.Await(t, began, "the handler")
		for range 2 { // others are idle for as long as the first has been busy, and more
			idle := s.opening(1, "/")
			if a := idle.read(1); a.outcome() != "200" {
				t.Errorf("%+v", a)
			}
			if !idle.idles() {
				t.Error("an idle connection is not closed by GOAWAY")
			}
		}
		close(release)
		if a := busy.read(1); a.outcome() != "200" || a.goaway != "" {
			t.Errorf("a request that takes longer than IdleTimeout: %+v", a)
		}
		if !busy.idles() {
			t.Error("a connection is not closed after its last request")
		}
		// One without any request.
		if !s.raw().idles() {
			t.Error("a connection that has had no request is not closed")
		}
	})
}

// ConnState hears that the connection is idle once the preface is there, and again after each request.
func TestStates(t *testing.T) {
	t.Parallel()
	each(t, "", func(t *testing.T, kind string) {
		states := make(chan http.ConnState, 16)
		srv := &chert.Server{Handler: hf(hello), ConnState: func(_ net.Conn, st http.ConnState) { states <- st }}
		s := serve(t, kind, srv)
		want := func(all ...http.ConnState) {
			t.Helper()
			for _, st := range all {
				if got := servertest.Await(t, states, st.String()); got != st {
					t.Errorf("%v, want %v", got, st)
				}
			}
		}
		c := s.raw()
		c.send()
		want(http.StateNew, http.StateActive, http.StateIdle)
		for id := range uint32(2) {
			if a := c.get(2*id+1, "/"); a.status() != "200" {
				t.Errorf("%+v", a)
			}
			want(http.StateActive, http.StateIdle)
		}
		c.Close()
		want(http.StateClosed)
	})
}

// A header block that has begun has a time of its own, ReadHeaderTimeout: the connection
// is not idle.
func TestBlockWithoutEnd(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		s := serve(t, kind, &chert.Server{IdleTimeout: time.Millisecond, ReadHeaderTimeout: 2 * time.Second, Handler: hf(hello)})
		c := s.bare()
		c.out.WriteString(http2.ClientPreface)
		c.fr.WriteSettings()
		c.out.Write(unhex("000001 01 00 00000001 82"))
		c.send()
		if a := c.read(3); a.goaway != "PROTOCOL_ERROR" {
			t.Errorf("%+v", a)
		}
	})
}
