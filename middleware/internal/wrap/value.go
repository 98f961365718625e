package wrap

import (
	"net/http"

	"github.com/chert-http/chert/direct/wire"
)

// Serve calls next with inner, which may be a copy of r, and passes back to r what
// inner handlers have set.
func Serve(next http.Handler, w http.ResponseWriter, r, inner *http.Request) {
	if inner != r {
		defer wire.PassBack(r, inner)
	}
	next.ServeHTTP(w, inner)
}
