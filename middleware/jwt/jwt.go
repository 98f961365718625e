package jwt

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
	"github.com/golang-jwt/jwt/v5"
)

// maxToken is the longest token that is looked at, in bytes.
const maxToken = 16 << 10

// Claims are a token's, as encoding/json gives them. They must not be changed.
type Claims = jwt.MapClaims

type claimsKey struct{}

// carried is what is left for handlers: a pointer, for the subject's sake.
type carried struct {
	claims  Claims
	subject string
}

// ClaimsOf returns the claims of the token that a request was let in with: of
// its context, or of an exchange. It is nil outside of a Verifier.
func ClaimsOf(v interface{ Value(key any) any }) Claims {
	if c, ok := v.Value(claimsKey{}).(*carried); ok {
		return c.claims
	}
	return nil
}

// A Verifier lets in requests with a good token. All methods may be called
// concurrently.
type Verifier struct {
	o      Options
	parser *jwt.Parser
	auth   *wrap.Auth
	set    *keySet // nil without JWKS
	close  context.CancelFunc

	unavailable *direct.Response
}

// New makes a Verifier. With JWKS it fetches the keys, for at most 10 s, and goes
// on refreshing them until Close; that they cannot be fetched is logged.
func New(o Options) (*Verifier, error) {
	if err := o.complete(); err != nil {
		return nil, fmt.Errorf("jwt: %w", err)
	}
	options := []jwt.ParserOption{
		jwt.WithStrictDecoding(), jwt.WithLeeway(o.Leeway), jwt.WithTimeFunc(o.Now), jwt.WithValidMethods(o.methods()),
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
	v := &Verifier{o: o, parser: jwt.NewParser(options...), auth: wrap.NewAuth(o.Realm)}
	v.unavailable = direct.NewResponse(http.StatusServiceUnavailable,
		http.Header{"Retry-After": {"5"}, "Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-store"}}, []byte("Service Unavailable\n"))
	ctx, cancel := context.WithCancel(context.Background())
	v.close = cancel
	if o.JWKS != "" {
		var err error
		if v.set, err = newKeySet(ctx, &v.o); err != nil {
			cancel()
			return nil, fmt.Errorf("jwt: %w", err)
		}
	}
	return v, nil
}

// methods are the algorithms that tokens may have.
func (o *Options) methods() (all []string) {
	if o.JWKS != "" {
		all = slices.Clone(o.Algorithms)
	}
	for _, k := range o.Keys {
		all = append(all, k.Algorithm)
	}
	return all
}

// Close ends the refreshing.
func (v *Verifier) Close() error {
	v.close()
	return nil
}

// Wrap is the middleware. Handlers get the claims by ClaimsOf, and the subject
// as middleware.User. Without a good token the answer is 401 with
// WWW-Authenticate (RFC 6750), which does not say what is wrong; 400 if there are
// several; and 503 as long as no keys could be fetched.
//
// On the direct way a token is verified on the event loop: some 30 us for RS256, 60
// for ES256. One with an unknown key, for which the set must be fetched, goes to
// the plain way.
func (v *Verifier) Wrap(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) {
			token, refused := v.auth.Plain(r)
			if refused == nil {
				var c *carried
				if c, refused = v.check(r.Context(), token, true); refused == nil {
					r = wrap.WithUser(w, r, &c.subject)
					next.ServeHTTP(w, wrap.With(r, claimsKey{}, c))
					return
				}
			}
			refused.ServeHTTP(w, r)
		},
		func(x *direct.Exchange, next direct.Handler) bool {
			token, refused := v.auth.Direct(x)
			if refused == nil {
				var c *carried
				c, refused = v.check(context.Background(), token, false)
				if c == nil && refused == nil {
					return false
				}
				if refused == nil {
					wrap.SetUser(x, &c.subject)
					x.SetValue(claimsKey{}, c)
					return next.ServeDirect(x)
				}
			}
			x.Send(refused)
			return true
		})
}

var (
	// errWait: the key is not known, and finding out would take long.
	errWait = errors.New("the set must be fetched")
	// errUnavailable: no set could be fetched so far.
	errUnavailable = errors.New("there are no keys yet")
	errNoKey       = errors.New("no key is for the token")
)

// check verifies a token. Without wait it gives nil and nil if it would have to.
func (v *Verifier) check(ctx context.Context, token []byte, wait bool) (*carried, *direct.Response) {
	c, err := v.verify(ctx, token, wait)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, errWait):
		return nil, nil
	case errors.Is(err, errUnavailable):
		return nil, v.unavailable // it may be good
	}
	v.o.Logger.DebugContext(ctx, "token refused", "error", err)
	return nil, v.auth.Invalid
}

func (v *Verifier) verify(ctx context.Context, token []byte, wait bool) (*carried, error) {
	if len(token) > maxToken {
		return nil, errors.New("the token is too long")
	}
	t, err := v.parser.ParseWithClaims(string(token), jwt.MapClaims{}, func(t *jwt.Token) (any, error) {
		if err := v.checkHead(t); err != nil {
			return nil, err
		}
		return v.key(ctx, t, wait)
	})
	if err != nil {
		return nil, err
	}
	claims := t.Claims.(jwt.MapClaims)
	subject, err := claims.GetSubject()
	if err != nil {
		return nil, err
	}
	return &carried{claims, subject}, nil
}

// checkHead looks at what golang-jwt does not.
func (v *Verifier) checkHead(t *jwt.Token) error {
	// RFC 7515 section 4.1.11: if any of the listed extensions are not understood
	// and supported, the JWS is invalid. None are. "b64" (RFC 7797) comes with it.
	if _, ok := t.Header["crit"]; ok {
		return errors.New("the token has critical extensions")
	}
	if v.o.Type == "" {
		return nil
	}
	typ, _ := t.Header["typ"].(string)
	// RFC 7515 section 4.1.9: "application/" may be left out.
	cut := func(s string) string { return strings.TrimPrefix(strings.ToLower(s), "application/") }
	if cut(typ) != cut(v.o.Type) {
		return fmt.Errorf("the token has the type %q", typ)
	}
	return nil
}

// key finds what to verify a token with.
func (v *Verifier) key(ctx context.Context, t *jwt.Token, wait bool) (any, error) {
	alg := t.Method.Alg()
	kid, named := t.Header["kid"].(string)
	if _, ok := t.Header["kid"]; ok && !named {
		return nil, errors.New("kid is no string")
	}
	var keys []jwt.VerificationKey
	for _, k := range v.o.Keys {
		if k.Algorithm == alg && (!named || k.ID == kid || k.ID == "") {
			keys = append(keys, k.Key)
		}
	}
	if v.set != nil && slices.Contains(v.o.Algorithms, alg) {
		published, err := v.published(ctx, alg, kid, named, wait)
		if err != nil && len(keys) == 0 {
			return nil, err
		}
		keys = append(keys, published...)
	}
	if len(keys) == 0 {
		return nil, errNoKey
	}
	return jwt.VerificationKeySet{Keys: keys}, nil
}

// published are the keys of the set that a token may be signed with.
func (v *Verifier) published(ctx context.Context, alg, kid string, named, wait bool) (keys []jwt.VerificationKey, err error) {
	keys, known, err := v.choose(ctx, alg, kid, named)
	if known || err != nil {
		return keys, err
	}
	if !wait {
		return nil, errWait
	}
	// This fails if the set was fetched lately, if that cannot be done, and if
	// the key is not in it either. It goes on when the client leaves: who sends
	// such tokens and hangs up would else keep new keys from ever coming.
	_, fetchErr := v.set.remote.KeyRead(context.WithoutCancel(ctx), kid)
	if !v.set.loaded.Load() {
		return nil, errUnavailable
	}
	keys, known, err = v.choose(ctx, alg, kid, named)
	if !known && err == nil {
		err = fetchErr
	}
	return keys, err
}

// choose finds keys in what was fetched. known: there is one of that name.
func (v *Verifier) choose(ctx context.Context, alg, kid string, named bool) (keys []jwt.VerificationKey, known bool, err error) {
	all, err := v.set.KeyReadAll(ctx)
	for _, k := range all {
		m := k.Marshal()
		if named && m.KID != kid {
			continue
		}
		known = true
		// RFC 7517 section 4.4: alg is what the key is intended for.
		if key := public(k.Key()); (m.ALG == "" || m.ALG.String() == alg) && suits(key, alg) == nil {
			keys = append(keys, key)
		}
	}
	return keys, known, err
}
