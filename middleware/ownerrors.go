package middleware

import (
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// OwnErrors makes ErrorPages around it leave the bodies of next's errors as they are, such
// as those of an API. Response writers of other middleware between the two without a method
// Unwrap, such as that of http.TimeoutHandler, hide ErrorPages from it.
func OwnErrors(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			wrap.LeaveErrors(w)
			next.ServeHTTP(w, r)
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			if !next.ServeDirect(x) {
				return false
			}
			x.Wire().SetValue(ownErrorsKey{}, true)
			return true
		})
}

// ownErrorsKey is the key of a value of exchanges whose errors stay as they are.
type ownErrorsKey struct{}
