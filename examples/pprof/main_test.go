package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
)

func TestMain(m *testing.M) { engines.Main(m) }

func TestProfiles(t *testing.T) {
	const packed = "\x1f\x8b" // a profile is gzip's
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, handler())
		for _, c := range []struct{ path, typ, begin, has string }{
			{"/", "text/html; charset=utf-8", "<html>", "full goroutine stack dump"}, // redirected
			{"/debug/pprof/cmdline", "text/plain; charset=utf-8", "", "pprof.test"},
			{"/debug/pprof/goroutine?debug=2", "text/plain; charset=utf-8", "goroutine ", "pprof.Index"},
			{"/debug/pprof/goroutine", "application/octet-stream", packed, ""},
			{"/debug/pprof/heap", "application/octet-stream", packed, ""},
			{"/debug/pprof/allocs?debug=1", "text/plain; charset=utf-8", "heap profile", ""},
			{"/debug/pprof/profile?seconds=1", "application/octet-stream", packed, ""},
			{"/debug/pprof/trace?seconds=0.1", "application/octet-stream", "go 1.", ""},
			{"/debug/pprof/mutex?seconds=1", "application/octet-stream", packed, ""}, // a difference over time
		} {
			res, got := s.Do(t, "GET", c.path, nil)
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != c.typ {
				t.Errorf("%s: %s, %q", c.path, res.Status, res.Header["Content-Type"])
			}
			if !strings.HasPrefix(got, c.begin) || !strings.Contains(got, c.has) {
				t.Errorf("%s: %d bytes, %.200q", c.path, len(got), got)
			}
		}
	})
}

// later moves write deadlines by a minute more than the handler wants, for what a busy machine may take.
type later struct {
	http.ResponseWriter
	wanted []time.Time
}

func (w *later) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *later) SetWriteDeadline(t time.Time) error {
	w.wanted = append(w.wanted, t)
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t.Add(time.Minute))
}

// pprof finds the server's WriteTimeout by http.ServerContextKey and moves the
// deadline with http.ResponseController, so that a long trace can be written.
func TestWriteTimeout(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		wanted := make(chan []time.Time, 1)
		s := e.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			l := &later{ResponseWriter: w}
			handler().ServeHTTP(l, r)
			wanted <- l.wanted
		}), func(f *engines.Fields) { f.WriteTimeout = time.Second })
		began := time.Now()
		if res, got := s.Do(t, "GET", "/debug/pprof/trace?seconds=1.2", nil); res.StatusCode != 200 || !strings.HasPrefix(got, "go 1.") {
			t.Errorf("%s: %.200q", res.Status, got)
		}
		all := engines.Await(t, wanted, "the handler")
		if len(all) != 1 || all[0].Before(began.Add(2200*time.Millisecond)) {
			t.Errorf("it has moved the deadline to %v, %v before", all, began)
		}
	})
}

// A profile ends when its client leaves; only one can run at a time.
func TestLeaving(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		entered, ended := make(chan struct{}), make(chan struct{})
		s := e.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			handler().ServeHTTP(w, r)
			close(ended)
		}))
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "GET", s.URL+"/debug/pprof/profile?seconds=60", nil)
		done := make(chan error, 1)
		go func() {
			_, err := s.Client.Do(req)
			done <- err
		}()
		engines.Await(t, entered, "the handler")
		cancel()
		if err := engines.Await(t, done, "the client"); err == nil {
			t.Error("it got a response")
		}
		engines.Await(t, ended, "the handler's end")
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, handler, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"GET /debug/pprof/none HTTP/1.1\nHost: h\n\n",
		"GET /debug/pprof/cmdline HTTP/1.1\nHost: h\n\n",
		"POST /debug/pprof/symbol HTTP/1.1\nHost: h\nContent-Length: 3\n\n0x1",
	)
}
