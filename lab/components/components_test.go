package components

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/router"
)

const (
	get = "GET /users/17/posts?page=2 HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n" +
		"Accept-Encoding: gzip\r\nConnection: keep-alive\r\n\r\n"
	post = "POST /users HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n" +
		"Content-Type: application/json\r\nContent-Length: 15\r\nConnection: keep-alive\r\n\r\n{\"name\":\"flint\"}"
	token = "0123456789abcdef0123456789abcdef"
)

// reused is a response writer that costs nothing.
type reused struct{ h http.Header }

func (r reused) Header() http.Header             { return r.h }
func (reused) WriteHeader(int)                   {}
func (reused) Write(p []byte) (int, error)       { return len(p), nil }
func (reused) WriteString(s string) (int, error) { return len(s), nil }

// BenchmarkComponents has a part for each row, and in it chert's and the standard library's, if that has one.
func BenchmarkComponents(b *testing.B) {
	b.Run("parse-get", func(b *testing.B) { parsers(b, get) })
	b.Run("parse-post", func(b *testing.B) { parsers(b, post) })
	b.Run("router-static", func(b *testing.B) { routers(b, "/api/health") })
	b.Run("router-dynamic", func(b *testing.B) { routers(b, "/users/17/posts/42") })
	b.Run("router-missing", func(b *testing.B) { routers(b, "/nothing/here") })

	log := middleware.NewAccessLog(&middleware.AccessLogOptions{Format: middleware.LogCommon, Output: io.Discard})
	defer log.Close()
	auth := middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"ann": token}}))
	limit := ratelimit.Must(ratelimit.New(&ratelimit.Options{NoFields: true, Rules: []ratelimit.Rule{
		{Name: "address", Rate: ratelimit.Rate{Count: 1e7, Per: time.Second, Burst: 1e9}}}}))
	b.Run("logger/chert", func(b *testing.B) { handled(b, log.Wrap(hello), "/") })
	b.Run("limiter/chert", func(b *testing.B) { handled(b, limit(hello), "/") })
	b.Run("chain/chert", func(b *testing.B) { handled(b, middleware.Chain(hello, log.Wrap, auth, limit), "/") })
}

func parsers(b *testing.B, in string) {
	body := len(in) - bytes.Index([]byte(in), []byte("\r\n\r\n")) - 4
	b.Run("chert", func(b *testing.B) {
		text := []byte(in)
		var r http1.Request
		b.ReportAllocs()
		for b.Loop() {
			if n, err := r.Parse(text, nil, nil); n != len(text)-body || err != nil {
				b.Fatal(n, err)
			}
		}
	})
	b.Run("std", func(b *testing.B) {
		source := bytes.NewReader(nil)
		r := bufio.NewReader(source)
		b.ReportAllocs()
		for b.Loop() {
			source.Reset([]byte(in))
			r.Reset(source)
			if _, err := http.ReadRequest(r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var hello = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Hello, World!") })

var routes = []string{"GET /api/health", "GET /users", "POST /users", "GET /users/{id}", "GET /users/{id}/posts/{post}", "GET /static/{path...}"}

func routers(b *testing.B, path string) {
	ours, std := router.New(), http.NewServeMux()
	for _, route := range routes {
		ours.Handle(route, hello)
		std.Handle(route, hello)
	}
	b.Run("chert", func(b *testing.B) { handled(b, ours, path) })
	b.Run("std", func(b *testing.B) { handled(b, std, path) })
}

func handled(b *testing.B, h http.Handler, path string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := reused{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.h)
		h.ServeHTTP(w, r)
	}
}
