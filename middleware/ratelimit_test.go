package middleware

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/ratelimit"
)

// What one RateLimit is put around shares its buckets, and stays direct.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	limit := RateLimit(&ratelimit.Options{
		Store: ratelimit.NewMemory(&ratelimit.MemoryOptions{Clock: func() time.Duration { return time.Hour }}),
		Rules: []ratelimit.Rule{{Name: "all", Rate: ratelimit.Rate{Count: 2, Per: time.Hour}}},
	})
	hello := direct.NewResponse(200, nil, []byte("hello"))
	a, b := limit(hello), limit(hello)
	if _, ok := a.(direct.Handler); !ok {
		t.Error("it is not direct")
	}
	ask := func(h http.Handler) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		if rec.Code == 429 && rec.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return rec.Code
	}
	for i, h := range []http.Handler{a, b, a, b} {
		if got, want := ask(h), []int{200, 200, 429, 429}[i]; got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
}

func TestRateLimitPanics(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*ratelimit.Options{
		"none":     nil,
		"no rules": {},
		"no rate":  {Rules: []ratelimit.Rule{{Name: "a"}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			RateLimit(o)
		}()
	}
}
