package wrap

import (
	"context"
	"net/http"

	"github.com/chert-http/chert/direct"
)

// Values is where middleware leaves what handlers may want: a request's context,
// or an exchange.
type Values interface{ Value(key any) any }

// With returns r with a context that has val for key. Two allocations.
func With(r *http.Request, key, val any) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), key, val))
}

// Serve calls next with inner, which may be a copy of r, and gives r the pattern
// that a router inside has set, also after a panic: the access log is outside.
func Serve(next http.Handler, w http.ResponseWriter, r, inner *http.Request) {
	if inner != r {
		defer func() { r.Pattern = inner.Pattern }()
	}
	next.ServeHTTP(w, inner)
}

type userKey struct{}

// SetUser leaves the name of who asks, after a check of credentials. name is
// kept as it is: a pointer, so that nothing is allocated.
func SetUser(x *direct.Exchange, name *string) { x.SetValue(userKey{}, name) }

// WithUser is SetUser for a plain request. The access log, which is outside of
// r, is told through w.
func WithUser(w http.ResponseWriter, r *http.Request, name *string) *http.Request {
	for {
		if l, ok := w.(interface{ NoteUser(name *string) }); ok {
			l.NoteUser(name)
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return With(r, userKey{}, name)
		}
		w = u.Unwrap()
	}
}

// User is the name that was left, "" if none was.
func User(v Values) string {
	if name, ok := v.Value(userKey{}).(*string); ok {
		return *name
	}
	return ""
}
