package wrap

import "net/http"

// Serve calls next with inner, which may be a copy of r, and gives r the pattern
// that a router inside has set, also after a panic: the access log is outside.
func Serve(next http.Handler, w http.ResponseWriter, r, inner *http.Request) {
	if inner != r {
		defer func() { r.Pattern = inner.Pattern }()
	}
	next.ServeHTTP(w, inner)
}
