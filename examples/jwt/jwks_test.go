package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware/jwt"
	"github.com/lestrrat-go/jwx/v3/jwa"
)

// Keys rotate: a new one is fetched when a token names it, and one that was
// removed is not accepted any more.
func TestRotation(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "old"))
	c := new(clock)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Now: c.now})
	before, after := sign(jwa.ES256(), ec256, claims(), "kid", "old"), sign(jwa.RS256(), rsaKey, claims(), "kid", "new")
	expect := func(what, token string, want int) {
		t.Helper()
		c.advance(30 * time.Second)
		if status, _ := ask(t, v, token); status != want {
			t.Errorf("%s: got %d, want %d", what, status, want)
		}
	}
	expect("old", before, 200)
	expect("new, not published", after, 401)
	asked := set.asked.Load()
	for range 10 {
		expect("old", before, 200)
	}
	if n := set.asked.Load(); n != asked {
		t.Errorf("the set was asked for %d times for known keys", n-asked)
	}
	set.publish(published(ec256.Public(), "old"), published(rsaKey.Public(), "new"))
	expect("new", after, 200)
	expect("old still", before, 200)
	set.publish(published(rsaKey.Public(), "new"))
	expect("something unknown", sign(jwa.RS256(), rsaKey, claims(), "kid", "x"), 401) // which fetches
	expect("old, taken away", before, 401)
	expect("new", after, 200)
}

// Whatever becomes of the endpoint, the last valid keys are used.
func TestDown(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	c := new(clock)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Now: c.now})
	good, unknown := sign(jwa.ES256(), ec256, claims(), "kid", "a"), sign(jwa.ES256(), ec256, claims(), "kid", "b")
	answer := func(code int64, body string) func() {
		return func() { set.code.Store(code); set.set.Store(&body) }
	}
	huge := `{"keys":[` + strings.Repeat(" ", 2<<20) + `]}`
	for _, tt := range []struct {
		name string
		do   func()
	}{
		{"500", answer(500, "{}")}, {"404", answer(404, "{}")}, {"no JSON", answer(200, "<html>")}, {"no keys", answer(200, `{"keys":[]}`)},
		{"nothing", answer(200, `{}`)}, {"null", answer(200, `null`)}, {"a secret only", answer(200, `{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}`)},
		{"a bad key", answer(200, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"a"}]}`)}, {"huge", answer(200, huge)},
		{"gone", func() { set.srv.Close() }},
	} {
		tt.do()
		c.advance(30 * time.Second)
		asked := set.asked.Load()
		if status, _ := ask(t, v, unknown); status != 401 {
			t.Errorf("%s: an unknown key: %d", tt.name, status)
		}
		if tt.name != "gone" && set.asked.Load() == asked {
			t.Errorf("%s: the set was not asked for", tt.name)
		}
		if status, _ := ask(t, v, good); status != 200 {
			t.Errorf("%s: the last good key: %d", tt.name, status)
		}
	}
}

// Unknown keys do not make the endpoint busy, nor requests wait.
func TestFlood(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	for i := range 50 {
		if status, _ := ask(t, v, sign(jwa.ES256(), ec256, claims(), "kid", fmt.Sprint(i))); status != 401 {
			t.Errorf("got %d", status)
		}
	}
	if n := set.asked.Load(); n > 2 {
		t.Errorf("asked for %d times", n)
	}
}

// An endpoint that is down at the start: 503, and not 401, until it is up.
func TestDownAtFirst(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"), published(ec384.Public(), ""))
	set.code.Store(503)
	c := new(clock)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Now: c.now})
	named, nameless := sign(jwa.ES256(), ec256, claims(), "kid", "a"), sign(jwa.ES384(), ec384, claims())
	for _, token := range []string{named, nameless} {
		c.advance(30 * time.Second)
		if status, _ := ask(t, v, token); status != 503 {
			t.Errorf("got %d", status)
		}
	}
	if status, _ := ask(t, v, raw(`{"alg":"none"}`, "{}", unsigned)); status != 401 {
		t.Errorf("none: got %d", status)
	}
	set.code.Store(200)
	for _, token := range []string{nameless, named} {
		c.advance(30 * time.Second)
		if status, _ := ask(t, v, token); status != 200 {
			t.Errorf("got %d", status)
		}
	}
}

// A regular refresh takes a key away, without any request.
func TestRefresh(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"), published(rsaKey.Public(), "b"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Refresh: 5 * time.Millisecond})
	token := sign(jwa.ES256(), ec256, claims(), "kid", "a")
	if status, _ := ask(t, v, token); status != 200 {
		t.Fatalf("got %d", status)
	}
	set.publish(published(rsaKey.Public(), "b"))
	// On one way only: the key may be removed between the two.
	engines.Eventually(t, "the key is gone", func() bool { return askPlain(v, token).Code == 401 })
}
