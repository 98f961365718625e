package jwt

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// endpoint is a JWKS endpoint without a network, which hangs on demand.
type endpoint struct {
	hangs   atomic.Bool
	slow    atomic.Int64 // how long a response takes
	fetches atomic.Int64
	set     atomic.Value
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	e.fetches.Add(1)
	time.Sleep(time.Duration(e.slow.Load()))
	if e.hangs.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(e.set.Load().(string))),
	}, nil
}

// An endpoint that hangs delays tokens with unknown keys once in all, not once for
// each, however long it hangs; when it works again, they wait as before.
func TestHangCostsPatienceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endpoint)
		e.set.Store(setOf(jwkOf("old")))
		v, err := New(&Options{JWKS: "http://127.0.0.1/", AnyIssuer: true, AnyAudience: true, AllowEternal: true, Client: &http.Client{Transport: e}})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		took := func(what, kid string, status int, want time.Duration) {
			t.Helper()
			began := time.Now()
			got := ask(t.Context(), v, signed(kid))
			if passed := time.Since(began); got != status || passed != want {
				t.Errorf("%s: got %d after %v, want %d after %v", what, got, passed, status, want)
			}
		}
		e.hangs.Store(true)
		took("a known key", "old", 200, 0)
		took("the first that waits", "x", 401, patience)
		took("the second", "y", 401, 0)
		if got := askDirect(v, signed("y")); got != 401 {
			t.Errorf("direct: got %d, which is no immediate response", got)
		}
		for range 10 { // beyond the fetch, and further ones
			time.Sleep(7 * time.Second)
			took("later", "z", 401, 0)
		}
		took("a known key", "old", 200, 0)
		e.hangs.Store(false)
		e.set.Store(setOf(jwkOf("new")))
		time.Sleep(2 * time.Minute) // what hung has ended, and was tried again
		took("well again", "new", 200, 0)
		e.hangs.Store(true)
		time.Sleep(time.Minute)
		go ask(t.Context(), v, signed("x"))
		time.Sleep(2 * time.Second)
		took("it joins one that has been waiting", "y", 401, patience-2*time.Second)
	})
}

// A slow endpoint that responds is not asked repeatedly; when it is quick again,
// that is noticed without a token.
func TestSlowEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endpoint)
		e.set.Store(setOf(jwkOf("old")))
		v, err := New(&Options{JWKS: "http://127.0.0.1/", AnyIssuer: true, AnyAudience: true, AllowEternal: true,
			Client: &http.Client{Transport: e}, RefreshUnknown: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		waits := func(what string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if got := ask(t.Context(), v, signed("x")); got != 401 || time.Since(began) != want {
				t.Errorf("%s: got %d after %v, want 401 after %v", what, got, time.Since(began), want)
			}
		}

		// A token finds out that it is slow, and no regular fetch is near.
		e.slow.Store(int64(patience + time.Second))
		waits("slow", patience)
		time.Sleep(2 * time.Second) // it has responded
		e.slow.Store(0)
		time.Sleep(2 * time.Minute)
		e.slow.Store(int64(time.Second))
		waits("well again", time.Second)

		// It stays slow: each fetch brings the keys, only late.
		e.slow.Store(int64(patience + time.Second))
		time.Sleep(15 * time.Minute)
		before := e.fetches.Load()
		time.Sleep(time.Hour)
		if n := e.fetches.Load() - before; n > 60 || n < 50 {
			t.Errorf("%d fetches in an hour, want one in 66 s", n)
		}
		if got := ask(t.Context(), v, signed("old")); got != 200 {
			t.Errorf("a known key: got %d", got)
		}
	})
}

// Negative: the set is fetched until that succeeds once, and never again, whatever
// time passes and tokens arrive.
func TestRefreshNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(endpoint)
		e.set.Store("no set")
		v, err := New(quiet(Options{JWKS: "http://127.0.0.1/", AnyIssuer: true, AnyAudience: true, AllowEternal: true,
			Client: &http.Client{Transport: e}, Refresh: -1, RefreshUnknown: -1}))
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		time.Sleep(time.Hour)
		if n := e.fetches.Load(); n < 60 || n > 200 {
			t.Errorf("%d fetches in an hour without a set, want one every 30 s", n)
		}
		e.set.Store(setOf(jwkOf("old")))
		time.Sleep(time.Minute)
		before := e.fetches.Load()
		e.set.Store(setOf(jwkOf("new")))
		for range 10 {
			time.Sleep(10 * 24 * time.Hour)
			if got := ask(t.Context(), v, signed("old")); got != 200 {
				t.Errorf("a token of the set: got %d", got)
			}
			if got := ask(t.Context(), v, signed("new")); got != 401 {
				t.Errorf("a token with a key that was not in the set: got %d", got)
			}
		}
		if n := e.fetches.Load() - before; n != 0 {
			t.Errorf("%d fetches", n)
		}
	})
}
