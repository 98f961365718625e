package ratelimit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/testing/redistest"
	"github.com/chert-http/chert/ratelimit"
	"github.com/chert-http/chert/ratelimit/redisstore"
	"github.com/chert-http/chert/router"
)

// Inside of a router each route has a bucket, for all clients and path values:
// on chert directly and not, and on net/http.
func TestByRoute(t *testing.T) {
	t.Parallel()
	hello := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("hello") })
	for _, way := range []string{"direct", "plain", "net/http"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			var next http.Handler = hello
			if way == "plain" {
				next = http.HandlerFunc(hello.ServeHTTP)
			}
			limit, err := ratelimit.New(&ratelimit.Options{
				Rules: []ratelimit.Rule{{Name: "route", Rate: ratelimit.Rate{Count: 1, Per: time.Hour, Burst: 2}, Key: ratelimit.ByRoute()}},
			})
			if err != nil {
				t.Fatal(err)
			}
			h := limit(next)
			if _, is := h.(direct.Handler); is == (way == "plain") {
				t.Errorf("direct is %v", is)
			}
			r := router.New()
			r.Handle("GET /a/{x}", h)
			r.Handle("GET /b", h)
			var url string
			if way == "net/http" {
				s := httptest.NewServer(r)
				t.Cleanup(s.Close)
				url = s.URL
			} else {
				s := chertest.NewServer(r)
				t.Cleanup(s.Close)
				url = s.URL
			}
			for i, tt := range []struct {
				path string
				want int
			}{{"/a/1", 200}, {"/a/2", 200}, {"/b", 200}, {"/a/3", 429}, {"/b", 200}, {"/b", 429}, {"/a/%31", 429}} {
				res, err := http.Get(url + tt.path)
				if err != nil {
					t.Fatal(err)
				}
				if res.Body.Close(); res.StatusCode != tt.want {
					t.Errorf("%d: %s: got %d, want %d", i, tt.path, res.StatusCode, tt.want)
				}
			}
		})
	}
}

// What clients send as keys cannot be read in Redis.
func TestKeysAreNotReadable(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	store, err := redisstore.OpenURL(srv.URL(), &redisstore.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	rate := ratelimit.Rate{Count: 1, Per: time.Hour, Burst: 1}
	token := func(dst []byte, c *filter.Call) []byte { return append(dst, c.RequestHeader("Authorization")...) }
	limit, err := ratelimit.New(&ratelimit.Options{Store: store, Rules: []ratelimit.Rule{
		{Name: "header", Rate: rate, Key: ratelimit.ByHeader("Authorization")},
		{Name: "request", Rate: rate, Key: ratelimit.ByRequest(token)},
		{Name: "func", Rate: rate, Key: ratelimit.ByFunc(func(r *http.Request) string { return r.Header.Get("Authorization") })},
		{Name: "address", Rate: rate},
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := limit(http.NotFoundHandler())
	for range 2 {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", "sesame")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	all := srv.Must("KEYS", "*")
	if strings.Contains(all, "sesame") || strings.Count(all, "chert:rl:{#") != 3 || !strings.Contains(all, "{192.0.2.1}:address") {
		t.Errorf("keys:\n%s", all)
	}
}
