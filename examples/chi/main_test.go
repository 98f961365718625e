package main

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/go-chi/chi/v5/middleware"
)

func TestMain(m *testing.M) { engines.Main(m) }

// quiet suppresses the stacks of panics, which are intentional here.
type quiet struct{}

func (quiet) Write(int, int, http.Header, time.Duration, any) {}
func (quiet) Panic(any, []byte)                               {}

func subject() http.Handler {
	h := handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, middleware.WithLogEntry(r, quiet{}))
	})
}

func TestRoutes(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for _, c := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/", "", 200, "hello\n"},
			{"GET", "/articles/17", "", 200, "article 17\n"},
			{"GET", "/articles/x", "", 404, "404 page not found\n"}, // not a number
			{"DELETE", "/articles/17", "", 405, ""},
			{"GET", "/admin", "", 401, ""},
			{"POST", "/articles/", `{"title":"flint","words":3}`, 201, `{"title":"flint","words":3}` + "\n"},
			{"POST", "/articles/", `{"title":`, 400, "unexpected EOF\n"},
			{"GET", "/nowhere", "", 404, "404 page not found\n"},
		} {
			s.Expect(t, c.method, c.path, c.body, c.status, c.want)
		}
		s.Expect(t, "GET", "/admin", "", 200, "welcome\n", "Authorization", "Basic YWRtaW46c2VjcmV0")
		if res := s.Expect(t, "DELETE", "/articles/17", "", 405, ""); res.Header.Get("Allow") != "GET" {
			t.Errorf("Allow is %q", res.Header["Allow"])
		}
	})
}

func TestPanic(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for range 3 { // the connection is kept
			s.Expect(t, "GET", "/panic", "", 500, "")
		}
		s.Expect(t, "GET", "/", "", 200, "hello\n")
	})
}

func TestUpload(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		for _, n := range []int{0, 1, 5000, 3 << 20} {
			for _, streamed := range []bool{false, true} {
				status, got := s.Upload(t, "/upload", "stone.bin", n, streamed)
				if want := engines.Uploaded("stone.bin", n); status != 200 || got != want {
					t.Errorf("%d bytes, streamed %v: got %d %q, want %q", n, streamed, status, got, want)
				}
			}
		}
		s.Expect(t, "POST", "/upload", "x", 400, "request Content-Type isn't multipart/form-data\n")
	})
}

// A file through chi's router, and so through its ResponseWriter wrappers.
func TestFile(t *testing.T) {
	want, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, subject())
		s.Expect(t, "GET", "/files/main.go", "", 200, string(want))
		s.Expect(t, "GET", "/files/main.go", "", 206, string(want[3:8]), "Range", "bytes=3-7")
	})
}

func TestSame(t *testing.T) {
	engines.Same(t, subject, nil,
		"GET / HTTP/1.1\nHost: h\n\n",
		"HEAD / HTTP/1.1\nHost: h\n\n",
		"GET / HTTP/1.0\n\n",
		"GET /articles/17 HTTP/1.1\nHost: h\nConnection: close\n\n",
		"PUT /articles/17 HTTP/1.1\nHost: h\nContent-Length: 3\n\nabc",
		"POST /articles/ HTTP/1.1\nHost: h\nContent-Length: 27\n\n{\"title\":\"flint\",\"words\":3}",
		"GET /panic HTTP/1.1\nHost: h\n\n",
		"GET /admin HTTP/1.1\nHost: h\n\n",
		"GET /nowhere HTTP/1.1\nHost: h\n\n",
		"GET /text HTTP/1.1\nHost: h\n\n",
		"GET /text HTTP/1.1\nHost: h\nAccept-Encoding: gzip\n\n",
		"GET /files/main.go HTTP/1.1\nHost: h\nRange: bytes=-20\n\n",
		"OPTIONS * HTTP/1.1\nHost: h\n\n",
	)
}
