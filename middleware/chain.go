package middleware

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
)

// Chain puts middleware around h; the first is the outermost.
func Chain(h http.Handler, middleware ...func(http.Handler) http.Handler) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// Values is where middleware leaves what handlers may want to know: the context
// of an http.Request, or a *direct.Exchange.
type Values interface{ Value(key any) any }

// User is the name of who asks, as Bearer, jwt and basicauth have found it out;
// "" outside of them.
func User(v Values) string { return filter.User(v) }

// or is v, or def if v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// options is *o, or the zero value.
func options[T any](o *T) (t T) {
	if o != nil {
		t = *o
	}
	return t
}

// statusText is an answer of text, the same for all.
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
