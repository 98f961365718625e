package jwt

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
	"github.com/golang-jwt/jwt/v5"
)

// Claims are a token's by name, as encoding/json gives them: a date such as "exp" is a
// float64, in seconds. They must not be changed: with Options.CacheSize other requests
// have them too.
type Claims map[string]any

type claimsKey struct{}

// carried is what handlers get: a pointer, so that the subject needs no
// allocation. It is immutable.
type carried struct {
	claims  Claims
	subject string

	// For the cache: when it is valid, the set it was verified with, and
	// roughly how many bytes it takes.
	window window
	set    *published
	size   int
}

// ClaimsOf returns the claims of the token that a request was let in with, nil if
// there is none. v is the context of a request, or a *direct.Exchange.
func ClaimsOf(v filter.Values) Claims {
	if c, ok := v.Value(claimsKey{}).(*carried); ok {
		return c.claims
	}
	return nil
}

// A Verifier admits requests with a valid token. Its methods are safe for
// concurrent use.
type Verifier struct {
	o      Options
	parser *jwt.Parser
	auth   *wrap.Auth
	set    *keySet // nil without JWKS
	cache  *cache  // nil without CacheSize

	unavailable *direct.Response
}

// Check returns the error that New would return for o, and fetches nothing: it is for
// programs that check a configuration without starting.
func (o *Options) Check() error {
	var all Options
	if o != nil {
		all = *o
	}
	if err := all.complete(); err != nil {
		return fmt.Errorf("jwt: %w", err)
	}
	if _, err := wrap.NewAuth(all.Realm); err != nil {
		return fmt.Errorf("jwt: Realm: %w", err)
	}
	return nil
}

// New makes a Verifier. With JWKS it fetches the keys, for at most 10 s, and goes
// on refreshing them until Close; that they cannot be fetched is logged. It is an
// error if the options are not complete, see Options, or if one cannot be used.
func New(opt *Options) (*Verifier, error) {
	var o Options
	if opt != nil {
		o = *opt
	}
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	options := []jwt.ParserOption{
		jwt.WithStrictDecoding(), jwt.WithLeeway(o.Leeway), jwt.WithTimeFunc(o.Now), jwt.WithIssuedAt(),
		jwt.WithValidMethods(o.methods()),
	}
	if !o.AllowEternal {
		options = append(options, jwt.WithExpirationRequired())
	}
	if !o.AnyIssuer {
		options = append(options, jwt.WithIssuer(o.Issuer))
	}
	if !o.AnyAudience {
		options = append(options, jwt.WithAudience(o.Audience...))
	}
	auth, err := wrap.NewAuth(o.Realm)
	if err != nil {
		return nil, fmt.Errorf("jwt: Realm: %w", err)
	}
	v := &Verifier{o: o, parser: jwt.NewParser(options...), auth: auth, cache: newCache(o.CacheSize, o.CacheBytes)}
	v.unavailable = wrap.Refusal(http.StatusServiceUnavailable, "Retry-After", "5")
	if o.JWKS != "" {
		v.set = newKeySet(&v.o)
	}
	return v, nil
}

// Close ends the refreshing, and a fetch in progress. The keys stay.
func (v *Verifier) Close() error {
	if v.set != nil {
		v.set.close()
	}
	return nil
}

// Wrap passes requests with a valid token to next, which gets the claims by ClaimsOf and
// the subject as middleware.UserOf. A token is valid if a key has signed it, if "iss",
// "aud" and the type are those of Options, and if "exp" is to come and neither "nbf" nor
// "iat" is, but for Leeway; one of more than 16 KiB, or with "crit", is not.
//
// Without a valid token the response is 401 with WWW-Authenticate (RFC 6750), which does
// not say what is wrong; 400 if there are several; and 503 as long as no keys could be
// fetched. A token is looked for in Authorization only: in the query it would appear in
// logs (RFC 6750 section 2.3).
//
// On the fast path a token is verified on the event loop: see Options.CacheSize for
// what that takes. One for which the set must be fetched goes to the ordinary path.
func (v *Verifier) Wrap(next http.Handler) http.Handler {
	return filter.New(v.admit)(next)
}

var (
	errMissing = errors.New("there is no bearer token in Authorization")
	errSeveral = errors.New("there are several fields Authorization")
	errSyntax  = errors.New("the bearer token has other characters than one may have")
)

// unread returns why there is no token to verify in a request that is refused.
func (v *Verifier) unread(refused *direct.Response) error {
	switch refused {
	case v.auth.Missing:
		return errMissing
	case v.auth.Several:
		return errSeveral
	}
	return errSyntax
}

func (v *Verifier) admit(r *filter.Call) filter.Outcome {
	token, refused := v.auth.Token(r.Fields())
	if refused != nil {
		v.o.Logger.DebugContext(r.Context(), "token refused", "error", v.unread(refused))
		return r.Refuse(refused)
	}
	c, err := v.verify(r.Context(), token, !r.Direct())
	switch {
	case err == nil:
		r.SetUser(&c.subject)
		r.SetValue(claimsKey{}, c)
		return filter.Pass
	case errors.Is(err, errWait):
		return filter.OnPlain
	}
	v.o.Logger.DebugContext(r.Context(), "token refused", "error", err)
	if errors.Is(err, errUnavailable) {
		return r.Refuse(v.unavailable) // it may be valid
	}
	return r.Refuse(v.auth.Invalid)
}
