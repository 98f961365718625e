package middleware

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/user"
)

// Chain wraps h in middleware; the first is the outermost.
func Chain(h http.Handler, middleware ...func(http.Handler) http.Handler) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// UserOf returns the name of the authenticated client, as Bearer, jwt and basicauth
// set it, "" if there is none. v is the context of a request, or a *direct.Exchange.
func UserOf(v filter.Values) string { return user.Of(v) }

// Must returns v, and panics if err is not nil. It is for middleware with constant
// options, of this package and others:
//
//	middleware.Must(middleware.CORS(&middleware.CORSOptions{Origins: []string{"https://a.example"}}))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// or returns v, or def if v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// options returns *o, or the zero value.
func options[T any](o *T) (t T) {
	if o != nil {
		t = *o
	}
	return t
}

// statusText is a fixed response with the status as text.
func statusText(status int, fields ...string) *direct.Response {
	h := http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
	}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return direct.NewResponse(status, h, []byte(http.StatusText(status)+"\n"))
}
