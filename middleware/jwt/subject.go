package jwt

import (
	"net/http"
	"strconv"

	"github.com/chert-http/chert/ratelimit"
)

// BySubject is a bucket for each subject ("sub") of verified tokens, one for each
// issuer: a subject is unique to its issuer only (RFC 7519 section 4.1.2). A
// request without a verified token, or one without a subject, is charged to its
// address; so it belongs inside of Wrap. Nothing of a token counts before it is
// verified.
//
//	h = v.Wrap(middleware.RateLimit(&ratelimit.Options{
//		Rules: []ratelimit.Rule{{Rate: rate, Key: jwt.BySubject()}},
//	})(h))
//
// What has a rule with it is not direct, as with ratelimit.ByFunc.
func BySubject() ratelimit.Key {
	return ratelimit.ByFunc(func(r *http.Request) string {
		c, ok := r.Context().Value(claimsKey{}).(*carried)
		if !ok || c.subject == "" {
			return ""
		}
		issuer, _ := c.claims["iss"].(string)
		// With the length no issuer can be another's beginning.
		return strconv.Itoa(len(issuer)) + ":" + issuer + c.subject
	})
}
