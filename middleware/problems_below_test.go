package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/middleware/jwt"
)

// jwt and basicauth use the hook for their refusals too.
func TestRefusalsBelow(t *testing.T) {
	t.Parallel()
	auth, err := basicauth.New(&basicauth.Options{Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := jwt.New(&jwt.Options{
		Keys:   []jwt.Key{{Algorithm: "HS256", Key: make([]byte, 32)}},
		Issuer: "https://issuer.example", Audience: []string{"api"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer tokens.Close()
	for name, mw := range map[string]func(http.Handler) http.Handler{"basicauth": auth, "jwt": tokens.Wrap} {
		for _, credentials := range [][]string{nil, {"x"}, {"Bearer x", "Bearer y"}} {
			want := http.StatusUnauthorized
			if len(credentials) > 1 {
				want = http.StatusBadRequest
			}
			h := middleware.Problems(nil)(mw(direct.HandlerFunc(func(*direct.Exchange) { t.Error("let in") })))
			r := httptest.NewRequest("GET", "/", nil)
			r.Header["Authorization"] = credentials
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if rec.Code != want || rec.Header().Get("Content-Type") != "application/problem+json" || rec.Header().Get("Www-Authenticate") == "" {
				t.Errorf("%s, %q: got %d %v", name, credentials, rec.Code, rec.Header())
			}
			var x direct.Exchange
			x.Wire().Reset(wire.Request{Method: "GET", Path: []byte("/"), Fields: wire.FieldsOf(r.Header)})
			if !h.(direct.Handler).ServeDirect(&x) || x.Wire().Status() != want || x.Wire().GetHeader("Content-Type") != "application/problem+json" || x.Wire().GetHeader("Www-Authenticate") == "" {
				t.Errorf("%s, %q, direct: got %d", name, credentials, x.Wire().Status())
			}
		}
	}
}
