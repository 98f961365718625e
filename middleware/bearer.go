package middleware

import (
	"crypto/subtle"
	"hash/maphash"
	"net/http"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BearerOptions are the options of Bearer.
type BearerOptions struct {
	// Tokens are the accepted tokens by the name of their holder, which
	// handlers and the access log get as User. There must be at least one. To
	// replace a client's token, list the old and the new one under two names.
	// Tokens should be long and random; they are not passwords.
	Tokens map[string]string
	// Realm is sent in WWW-Authenticate. Default "api".
	Realm string
}

// Bearer admits requests with one of some fixed tokens in Authorization (RFC
// 6750 section 2.1). Others get 401 with WWW-Authenticate, or 400 if they have
// several credentials.
//
// Tokens are compared in constant time (crypto/subtle), after a lookup by a
// hash under a random seed: the time of the response reveals neither a token
// nor how much of one was right. Tokens in the query or in a form are ignored:
// they would appear in logs.
//
// Bearer panics if there are no tokens, since every request would be refused, if a
// token does not have the syntax of RFC 6750, or if Realm is not printable ASCII.
func Bearer(o BearerOptions) func(http.Handler) http.Handler {
	auth, err := wrap.NewAuth(or(o.Realm, "api"))
	if err != nil {
		panic("middleware: Bearer: " + err.Error())
	}
	if len(o.Tokens) == 0 {
		panic("middleware: Bearer: no Tokens, so every request would be refused; set BearerOptions.Tokens, a token by its owner's name")
	}
	auth.Known = true
	b := &bearer{seed: maphash.MakeSeed()}
	for name, token := range o.Tokens {
		if !wrap.TokenSyntax([]byte(token)) {
			panic("middleware: Bearer: the token of " + name + " could never be sent: RFC 6750 section 2.1 has its syntax")
		}
		b.holders = append(b.holders, holder{maphash.String(b.seed, token), []byte(token), &name})
	}
	return filter.New(func(c *filter.Call) filter.Outcome {
		token, refused := auth.Token(c.Fields())
		if refused != nil {
			return c.Refuse(refused)
		}
		name := b.find(token)
		if name == nil {
			return c.Refuse(auth.Invalid)
		}
		c.SetUser(name)
		return filter.Pass
	})
}

// A holder is a client that has a token.
type holder struct {
	hash  uint64 // of token
	token []byte
	name  *string
}

type bearer struct {
	// A token is found by its hash, then compared. The seed is random, so that the
	// time of the search reveals nothing about the tokens.
	seed    maphash.Seed
	holders []holder
}

// find returns the name of the token's holder, nil if there is none.
func (b *bearer) find(token []byte) *string {
	hash := maphash.Bytes(b.seed, token)
	for i := range b.holders {
		if h := &b.holders[i]; h.hash == hash && subtle.ConstantTimeCompare(h.token, token) == 1 {
			return h.name
		}
	}
	return nil
}
