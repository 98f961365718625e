package wrap

import "net/http"

// Serve calls next with inner, which may be a copy of r, and sets r's pattern and
// address to those that an inner router has found and RealIP has set, also after a
// panic: the access log is outside.
func Serve(next http.Handler, w http.ResponseWriter, r, inner *http.Request) {
	if inner != r {
		defer func() { r.Pattern, r.RemoteAddr = inner.Pattern, inner.RemoteAddr }()
	}
	next.ServeHTTP(w, inner)
}
