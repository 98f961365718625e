package middleware

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert/direct"
)

// Pages replace refusals, in the format of Problems too, and OwnErrors keeps those.
func TestRefusalsAndPages(t *testing.T) {
	t.Parallel()
	pages := Must(ErrorPages(&ErrorPagesOptions{Pages: map[int]*ErrorPage{0: {Body: []byte("page")}}}))
	auth := Must(Bearer(&BearerOptions{Tokens: map[string]string{"ann": "token"}}))
	rewrite := Must(Rewrite(&RewriteOptions{Rules: []RewriteRule{{From: "^/guarded", To: "/x"}}, Not: func(string) bool { return true }}))
	for _, tt := range []struct {
		chain  []func(http.Handler) http.Handler
		target string
		want   string
	}{
		{[]func(http.Handler) http.Handler{Problems(nil), pages, auth}, "/", "page"},
		{[]func(http.Handler) http.Handler{pages, Problems(nil), auth}, "/", "page"},
		{[]func(http.Handler) http.Handler{pages, OwnErrors, Problems(nil), auth}, "/", `{"title":"Unauthorized","status":401}` + "\n"},
		{[]func(http.Handler) http.Handler{Problems(nil), auth, pages}, "/", `{"title":"Unauthorized","status":401}` + "\n"},
		{[]func(http.Handler) http.Handler{Problems(nil), rewrite}, "/guarded", `{"title":"Not Found","status":404}` + "\n"},
		{[]func(http.Handler) http.Handler{pages, Recover(&RecoverOptions{Handle: func(any, []byte) {}})}, "/panic", "page"},
	} {
		ways(t, func(h http.Handler) http.Handler { return Chain(h, tt.chain...) }, direct.HandlerFunc(func(x *direct.Exchange) {
			panic("for Recover")
		}), func(t *testing.T, do func(r *http.Request) answer) {
			if a := do(request("GET", tt.target, "")); a.Body != tt.want {
				t.Errorf("%d %q, want %q", a.Status, a.Body, tt.want)
			}
		})
	}
}
