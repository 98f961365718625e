package middleware

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BearerOptions are the options of Bearer.
type BearerOptions struct {
	// Tokens are the tokens that are let in, by the name of who has them, which
	// handlers and the access log get as User. Two names may be one client's old
	// and new token. Without any nobody is let in. Tokens should be long and
	// random; they are no passwords.
	Tokens map[string]string
	// Realm is told to those who are refused; "": "api".
	Realm string
}

type bearer struct {
	hashes [][sha256.Size]byte
	names  []*string
	auth   *wrap.Auth
}

// Bearer lets in requests with one of some fixed tokens in Authorization (RFC
// 6750 section 2.1). The others are answered 401 with WWW-Authenticate, or 400 if
// there are several credentials.
//
// Tokens are compared by their SHA-256 in constant time, each with all: how long
// it takes tells nothing of any. In the query or in a form they are not looked
// for: they would stand in logs.
func Bearer(o BearerOptions) func(http.Handler) http.Handler {
	b := &bearer{auth: wrap.NewAuth(or(o.Realm, "api"))}
	for name, token := range o.Tokens {
		if !wrap.TokenSyntax([]byte(token)) {
			panic("middleware: Bearer: the token of " + name + " could never be sent: RFC 6750 section 2.1 has its syntax")
		}
		b.hashes = append(b.hashes, sha256.Sum256([]byte(token)))
		b.names = append(b.names, &name)
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				token, refused := b.auth.Plain(r)
				if refused == nil {
					if name := b.find(token); name != nil {
						next.ServeHTTP(w, wrap.WithUser(w, r, name))
						return
					}
					refused = b.auth.Invalid
				}
				refused.ServeHTTP(w, r)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				token, refused := b.auth.Direct(x)
				if refused == nil {
					if name := b.find(token); name != nil {
						wrap.SetUser(x, name)
						return next.ServeDirect(x)
					}
					refused = b.auth.Invalid
				}
				x.Send(refused)
				return true
			})
	}
}

// find is who has the token, nil for nobody.
func (b *bearer) find(token []byte) *string {
	hash := sha256.Sum256(token)
	found := -1
	for i := range b.hashes {
		eq := subtle.ConstantTimeCompare(hash[:], b.hashes[i][:])
		found = subtle.ConstantTimeSelect(eq, i, found)
	}
	if found < 0 {
		return nil
	}
	return b.names[found]
}
