package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware"
)

func TestMain(m *testing.M) { engines.Main(m) }

// output is the destination of a log.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// The lines are complete when the log is closed.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// quiet logs nothing of the panics, which are intentional here.
var quiet = &middleware.RecoverOptions{Handle: func(any, []byte) {}}

// each runs f on each engine, with the handler by itself, in chi and in gin, with
// a log of its own.
func each(t *testing.T, f func(t *testing.T, router string, s *engines.Server)) {
	for router, make := range map[string]func(mw []func(http.Handler) http.Handler) http.Handler{
		"alone": func(mw []func(http.Handler) http.Handler) http.Handler { return middleware.Chain(handler(), mw...) },
		"chi":   inChi, "gin": inGin,
	} {
		t.Run(router, func(t *testing.T) {
			engines.Each(t, func(t *testing.T, e engines.Engine) {
				access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: io.Discard})
				defer access.Close()
				f(t, router, e.Start(t, make(stack(access, quiet))))
			})
		})
	}
}

var auth = []string{"Authorization", "Bearer secret", "Accept-Encoding", "identity"}

func TestRoutes(t *testing.T) {
	each(t, func(t *testing.T, router string, s *engines.Server) {
		res := s.Expect(t, "GET", "/hello", "", 200, "hello, ann\n", auth...)
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "Vary": "Origin"} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if len(res.Header.Get("X-Request-Id")) != 32 || res.Header.Get("Etag") == "" {
			t.Errorf("got %v", res.Header)
		}
		s.Expect(t, "GET", "/hello", "", 304, "", append([]string{"If-None-Match", res.Header.Get("Etag")}, auth...)...)
		res = s.Expect(t, "GET", "/hello", "", 401, "Unauthorized\n")
		if res.Header.Get("WWW-Authenticate") != `Bearer realm="restricted"` {
			t.Errorf("got %v", res.Header)
		}
		for range 2 { // the connection is kept
			s.Expect(t, "GET", "/panic", "", 500, "Internal Server Error\n", auth...)
		}
		s.Expect(t, "POST", "/upload", strings.Repeat("x", 5000), 200, "5000\n", auth...)
		s.Expect(t, "POST", "/upload", strings.Repeat("x", 1<<20+1), 413, "Request Entity Too Large\n", auth...)
		s.Expect(t, "GET", "/events", "", 200, "data: 0\n\ndata: 1\n\ndata: 2\n\n", auth...)
		s.Expect(t, "GET", "/hijack", "", 200, "mine", auth...)
		if router == "gin" {
			s.Expect(t, "GET", "/stream", "", 200, "0\n1\n2\n", auth...)
		}
		res = s.Expect(t, "OPTIONS", "/hello", "", 204, "", "Origin", "https://a.example", "Access-Control-Request-Method", "GET")
		if res.Header.Get("Access-Control-Allow-Origin") != "https://a.example" {
			t.Errorf("got %v", res.Header)
		}
	})
}

func TestCompression(t *testing.T) {
	each(t, func(t *testing.T, router string, s *engines.Server) {
		res, plain := s.Do(t, "GET", "/text", nil, auth...)
		if res.Header.Get("Content-Encoding") != "" || !strings.HasSuffix(plain, "line 999\n") {
			t.Errorf("got %v", res.Header)
		}
		res, coded := s.Do(t, "GET", "/text", nil, "Authorization", "Bearer secret", "Accept-Encoding", "gzip")
		z, err := gzip.NewReader(strings.NewReader(coded))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); string(b) != plain || err != nil || len(coded) > len(plain)/2 || res.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("got %d bytes of %d, %v, %v", len(b), len(plain), err, res.Header)
		}
	})
}

func TestLog(t *testing.T) {
	for router, make := range map[string]func(mw []func(http.Handler) http.Handler) http.Handler{"chi": inChi, "gin": inGin} {
		engines.Each(t, func(t *testing.T, e engines.Engine) {
			var out output
			access := middleware.NewAccessLog(&middleware.AccessLogOptions{Format: middleware.LogCommon, Output: &out})
			s := e.Start(t, make(stack(access, quiet)))
			s.Expect(t, "GET", "/hello", "", 200, "hello, ann\n", auth...)
			s.Expect(t, "GET", "/hello", "", 401, "Unauthorized\n")
			s.Close()
			access.Close()
			for _, want := range []string{`127.0.0.1 - ann [`, `"GET /hello HTTP/1.1" 200 11` + "\n", `127.0.0.1 - - [`, `"GET /hello HTTP/1.1" 401 13` + "\n"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s: %q is not in\n%s", router, want, out.String())
				}
			}
		})
	}
}
