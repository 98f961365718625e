package middleware

import (
	"net/http"

	"github.com/chert-http/chert/ratelimit"
)

// RateLimit is ratelimit.New: requests beyond o's rules get 429 with
// Retry-After. It panics where ratelimit.New returns an error.
func RateLimit(o *ratelimit.Options) func(http.Handler) http.Handler {
	wrap, err := ratelimit.New(o)
	if err != nil {
		panic("middleware: RateLimit: " + err.Error())
	}
	return wrap
}
