package wrap

import "net/http"

// Serve calls next with inner, which may be a copy of r, and sets r's pattern,
// address and form to those that an inner router has found, RealIP has set and a
// handler has parsed, also after a panic: the access log is outside, and the server,
// which removes the form's files.
func Serve(next http.Handler, w http.ResponseWriter, r, inner *http.Request) {
	if inner != r {
		defer func() {
			r.Pattern, r.RemoteAddr = inner.Pattern, inner.RemoteAddr
			if r.MultipartForm == nil {
				r.MultipartForm = inner.MultipartForm
			}
		}()
	}
	next.ServeHTTP(w, inner)
}
