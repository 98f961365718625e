package middleware

import (
	"net/http"

	"github.com/chert-http/chert/ratelimit"
)

// RateLimit is ratelimit.Handler as a middleware: requests beyond o's rules are
// answered 429 with Retry-After. All handlers that it wraps share its buckets. It
// panics where ratelimit.Handler returns an error.
func RateLimit(o *ratelimit.Options) func(http.Handler) http.Handler {
	opt := options(o)
	if opt.Store == nil {
		opt.Store = ratelimit.NewMemory(nil)
	}
	wrap := func(next http.Handler) http.Handler {
		h, err := ratelimit.Handler(next, &opt)
		if err != nil {
			panic("middleware: RateLimit: " + err.Error())
		}
		return h
	}
	wrap(http.NotFoundHandler()) // what is wrong with o is found here
	return wrap
}
