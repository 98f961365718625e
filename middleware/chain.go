package middleware

import (
	"net/http"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/user"
)

// Chain wraps h in middleware; the first is the outermost. What a middleware does
// holds for all inside of it, and the responses of one that refuses are seen only
// by those outside. So the usual order is: RealIP (the others use the client's
// address), AccessLog, Problems, Recover, RequestID, SecurityHeaders, Headers,
// ErrorPages, NoEarlyData, IPFilter, ClientCert, CORS (preflights carry no credentials), ratelimit,
// InFlight, Timeout, credentials (Bearer, jwt, basicauth, forwardauth), BodyLimit, BodyTimeout,
// ResponseTimeout, Bandwidth, Rewrite (all before it decides by what the client has
// sent), OwnErrors, Compress, ETag. A page for
// panics needs a Recover inside of ErrorPages. AccessLog.Override belongs where it is
// known which log a request has, inside of RealIP and an AccessLog; Choose is a handler, and
// what protects one of its choices belongs around that.
//
// The response writers that handlers receive pass on Flush, Hijack, ReadFrom,
// sendfile and, by Unwrap, all of http.ResponseController. A goroutine that
// writes after its handler has returned gets an error and cannot damage another
// response.
func Chain(h http.Handler, middleware ...func(http.Handler) http.Handler) http.Handler {
	for i := len(middleware) - 1; i >= 0; i-- {
		h = middleware[i](h)
	}
	return h
}

// UserOf returns the name of the authenticated client, as Bearer, jwt, basicauth and
// forwardauth set it, "" if there is none. v is the context of a request, or a *direct.Exchange.
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

// options returns *o, or the zero value.
func options[T any](o *T) (t T) {
	if o != nil {
		t = *o
	}
	return t
}
