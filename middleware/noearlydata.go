package middleware

import (
	"net/http"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// NoEarlyData refuses requests that may be a replay of another one, with 425 (Too Early), upon which clients send
// them again when the TLS handshake has ended (RFC 8470): those that HTTP/3 with early data runs before,
// and those of which a proxy in front says so, by a field Early-Data. It is for what must not run
// twice although its method is safe, such as the link in a mail that confirms something.
func NoEarlyData(next http.Handler) http.Handler { return noEarlyData(next) }

var tooEarly = wrap.Refusal(http.StatusTooEarly)

var noEarlyData = filter.New(func(c *filter.Call) filter.Outcome {
	// RFC 8470 section 5.1: any value means what the only valid one does.
	if c.Wire().Early() || c.HasHeader("Early-Data") {
		return c.Refuse(tooEarly)
	}
	return filter.Pass
})
