package jwt

import (
	"strconv"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/ratelimit"
)

// BySubject has a bucket for each subject ("sub") of verified tokens, per
// issuer: a subject is unique to its issuer only (RFC 7519 section 4.1.2). A
// request without a verified token, or whose token has no subject, is charged
// to its address; so the limit belongs inside of Wrap. Nothing of a token
// counts before it is verified.
//
//	limit, err := ratelimit.New(&ratelimit.Options{
//		Rules: []ratelimit.Rule{{Name: "subject", Rate: rate, Key: jwt.BySubject()}},
//	})
//	...
//	h = v.Wrap(limit(h))
//
// It works on both paths.
func BySubject() ratelimit.Key {
	return ratelimit.ByRequest(func(dst []byte, r *filter.Call) []byte {
		c, ok := r.Value(claimsKey{}).(*carried)
		if !ok || c.subject == "" {
			return dst
		}
		issuer, _ := c.claims["iss"].(string)
		// With its length no issuer can be a prefix of another.
		dst = append(strconv.AppendInt(dst, int64(len(issuer)), 10), ':')
		return append(append(dst, issuer...), c.subject...)
	})
}
