package middleware

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"net/http"
	"slices"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BearerOptions are the options of Bearer.
type BearerOptions struct {
	// Tokens are the tokens that are let in, by the name of who has them, which
	// handlers and the access log get as User. Two names may be one client's old
	// and new token. There must be one at least. Tokens should be long and
	// random; they are no passwords.
	Tokens map[string]string
	// Realm is told to those who are refused; "": "api".
	Realm string
}

// Bearer lets in requests with one of some fixed tokens in Authorization (RFC
// 6750 section 2.1). The others are answered 401 with WWW-Authenticate, or 400 if
// there are several credentials.
//
// Tokens are compared in constant time, each with all: how long it takes tells
// nothing of what is in any, how much of one was right, or whose it is. Up to
// eight tokens of up to 64 bytes are compared as they are, others by their
// SHA-256; which of the two it is can be told by the time. In the query or in a
// form tokens are not looked for: they would stand in logs.
//
// It panics if there are no tokens, since every request would be refused, if one
// does not have the syntax of RFC 6750, or if Realm is not printable ASCII.
func Bearer(o BearerOptions) func(http.Handler) http.Handler {
	auth, err := wrap.NewAuth(or(o.Realm, "api"))
	if err != nil {
		panic("middleware: Bearer: " + err.Error())
	}
	if len(o.Tokens) == 0 {
		panic("middleware: Bearer: no Tokens, so every request would be refused; set BearerOptions.Tokens, a token by its owner's name")
	}
	auth.Known = true
	b := &bearer{auth: auth}
	for name, token := range o.Tokens {
		if !wrap.TokenSyntax([]byte(token)) {
			panic("middleware: Bearer: the token of " + name + " could never be sent: RFC 6750 section 2.1 has its syntax")
		}
		b.names = append(b.names, &name)
		b.tokens = append(b.tokens, token)
	}
	b.init()
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				token, refused := b.auth.Plain(r)
				if refused == nil {
					if name := b.find(token); name != nil {
						wrap.Serve(next, w, r, wrap.WithUser(w, r, name))
						return
					}
					refused = b.auth.Invalid
				}
				refusal.Plain(w, r, refused)
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
				refusal.Direct(x, refused)
				return true
			})
	}
}

const (
	fewTokens  = 8
	shortToken = 64 // bytes; a multiple of 8
)

// A short is a token with zeros behind it, as words, and its length.
type short [shortToken/8 + 1]uint64

type bearer struct {
	names  []*string
	tokens []string            // of names
	shorts []short             // of names, or nil
	hashes [][sha256.Size]byte // of names, if there are no shorts
	auth   *wrap.Auth
}

func (b *bearer) init() {
	if len(b.tokens) <= fewTokens && !slices.ContainsFunc(b.tokens, func(t string) bool { return len(t) > shortToken }) {
		b.shorts = make([]short, len(b.tokens))
		for i, t := range b.tokens {
			b.shorts[i].set([]byte(t))
		}
		return
	}
	for _, t := range b.tokens {
		b.hashes = append(b.hashes, sha256.Sum256([]byte(t)))
	}
}

// set makes s of a token, which is not longer than shortToken. How long that
// takes depends on the length, which is known to who sends it.
func (s *short) set(token []byte) {
	var bytes [shortToken]byte
	copy(bytes[:], token)
	for i := range shortToken / 8 {
		s[i] = binary.LittleEndian.Uint64(bytes[8*i:])
	}
	s[shortToken/8] = uint64(len(token))
}

// differs is 0 if s and t are equal. It looks at all of both and does not
// branch.
func (s *short) differs(t *short) uint64 {
	return (s[0] ^ t[0]) | (s[1] ^ t[1]) | (s[2] ^ t[2]) | (s[3] ^ t[3]) | (s[4] ^ t[4]) |
		(s[5] ^ t[5]) | (s[6] ^ t[6]) | (s[7] ^ t[7]) | (s[8] ^ t[8])
}

// find is who has the token, nil for nobody.
func (b *bearer) find(token []byte) *string {
	found := 0 // one more than the index
	if b.shorts != nil {
		if len(token) > shortToken {
			return nil // of none
		}
		var s short
		s.set(token)
		for i := range b.shorts {
			d := s.differs(&b.shorts[i])
			equal := int((d|-d)>>63) - 1 // all bits, or none
			found = found&^equal | (i+1)&equal
		}
	} else {
		hash := sha256.Sum256(token)
		for i := range b.hashes {
			eq := subtle.ConstantTimeCompare(hash[:], b.hashes[i][:])
			found = subtle.ConstantTimeSelect(eq, i+1, found)
		}
	}
	if found == 0 {
		return nil
	}
	return b.names[found-1]
}
