package jwt

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chert-http/chert/ratelimit"
)

func limited(t *testing.T, h http.Handler, n int64) http.Handler {
	t.Helper()
	limit, err := ratelimit.New(&ratelimit.Options{
		Rules: []ratelimit.Rule{{Name: "subject", Rate: ratelimit.Rate{Count: n, Per: time.Hour}, Key: BySubject()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return limit(h)
}

func TestBySubject(t *testing.T) {
	t.Parallel()
	v := open(t, Options{Keys: []Key{{Algorithm: "EdDSA", Key: keyOf("a").Public()}}})
	served := 0
	h := v.Wrap(limited(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }), 2))
	get := func(token, address string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = address
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	const one, two = "192.0.2.1:1", "192.0.2.2:1"
	ann, bob := signed("a"), signed("a", "sub", "bob")
	nobody := signed("a", "sub", "")
	for _, tt := range []struct {
		name, token, address string
		want                 int
	}{
		// Bad tokens in ann's name take nothing from her.
		{"another's signature", signedAs("a", "b"), one, 401},
		{"another's signature", signedAs("a", "b"), one, 401},
		{"another's signature", signedAs("a", "b"), one, 401},
		{"expired", signed("a", "exp", 1), one, 401},
		{"no token", "", one, 401},
		{"ann", ann, one, 200},
		{"ann from elsewhere", ann, two, 200},
		{"ann, too often", ann, one, 429},
		{"ann, with another token", signed("a", "x", 1), two, 429},
		{"bob from where ann is", bob, one, 200},
		{"bob", bob, one, 200},
		{"bob, too often", bob, two, 429},
		{"ann of another issuer", signed("a", "iss", "x"), one, 200},
		{"ann of another issuer", signed("a", "iss", "x"), one, 200},
		{"ann of another issuer, too often", signed("a", "iss", "x"), one, 429},
		{"ann of a third", signed("a", "iss", "y"), one, 200},
		{"a name that looks like it", signed("a", "iss", "", "sub", "xann"), one, 200},
		{"no subject: by address", nobody, one, 200},
		{"no subject: by address", nobody, one, 200},
		{"no subject: by address", nobody, one, 429},
		{"no subject, from elsewhere", nobody, two, 200},
	} {
		if got := get(tt.token, tt.address); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
	if served != 11 {
		t.Errorf("served %d", served)
	}
}

// Outside of Wrap nothing is verified yet, so the address counts, whatever the
// token says.
func TestBySubjectOutside(t *testing.T) {
	t.Parallel()
	v := open(t, Options{Keys: []Key{{Algorithm: "EdDSA", Key: keyOf("a").Public()}}})
	h := limited(t, v.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), 2)
	for i, want := range []int{200, 401, 429} {
		token := []string{signed("a"), signedAs("a", "b", "sub", "x"), signed("a", "sub", "bob")}[i]
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != want {
			t.Errorf("%d: got %d, want %d", i, rec.Code, want)
		}
	}
}
