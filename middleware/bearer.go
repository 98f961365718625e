package middleware

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BearerOptions are the options of Bearer.
type BearerOptions struct {
	// Tokens are the accepted tokens by the name of their holder, which UserOf
	// and the access log give. There must be at least one. To replace a
	// client's token, list the old and the new one by two names. Tokens should be
	// long and random; they are not passwords.
	Tokens map[string]string
	// Realm is sent in WWW-Authenticate, and must be printable ASCII. Default
	// "restricted".
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
// It is an error if there are no tokens, since every request would be refused, if a
// token does not have the syntax of RFC 6750, if two names have the same one, or if
// Realm is not printable ASCII.
func Bearer(o *BearerOptions) (func(http.Handler) http.Handler, error) {
	opt := options(o)
	auth, err := wrap.NewAuth(opt.Realm)
	if err != nil {
		return nil, fmt.Errorf("middleware: Bearer: Realm: %w", err)
	}
	if len(opt.Tokens) == 0 {
		return nil, errors.New("middleware: Bearer: Tokens: there are none, so every request would be refused")
	}
	auth.Known = true
	b := &bearer{seed: maphash.MakeSeed()}
	names := map[string]string{} // by token
	for _, name := range slices.Sorted(maps.Keys(opt.Tokens)) {
		token := opt.Tokens[name]
		if !wrap.TokenSyntax([]byte(token)) {
			return nil, fmt.Errorf("middleware: Bearer: Tokens: the token of %q could never be sent: RFC 6750 section "+
				"2.1 has its syntax", name)
		}
		if other, ok := names[token]; ok {
			return nil, fmt.Errorf("middleware: Bearer: Tokens: %q and %q have the same token, which cannot tell them "+
				"apart", other, name)
		}
		names[token] = name
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
	}), nil
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
		if h := &b.holders[i]; h.hash == hash && equal(h.token, token) {
			return h.name
		}
	}
	return nil
}

// equal is subtle.ConstantTimeCompare, many bytes at a time.
func equal(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	var differ uint64
	for len(a) > 0 {
		var d [32]byte
		n := subtle.XORBytes(d[:], a[:min(len(a), len(d))], b)
		differ |= binary.NativeEndian.Uint64(d[0:]) | binary.NativeEndian.Uint64(d[8:]) |
			binary.NativeEndian.Uint64(d[16:]) | binary.NativeEndian.Uint64(d[24:])
		a, b = a[n:], b[n:]
	}
	return differ == 0
}
