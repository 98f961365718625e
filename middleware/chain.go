package middleware

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
)

// Chain wraps h in middleware; the first is the outermost.
func Chain(h http.Handler, middleware ...func(http.Handler) http.Handler) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// Values is where middleware leaves values for handlers: the context of an
// http.Request, or a *direct.Exchange.
type Values interface{ Value(key any) any }

// User returns the name of the client that Bearer, jwt or basicauth has
// authenticated; "" outside of them.
func User(v Values) string { return filter.User(v) }

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
