package jwt

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// maxToken is the length of the longest token that is parsed, in bytes.
const maxToken = 16 << 10

var (
	// errWait: the key is not known, and a fetch would take long.
	errWait = errors.New("the set must be fetched")
	// errUnknown: a newer set may have the key. errUnavailable is such an
	// error.
	errUnknown     = errors.New("the key is not known")
	errUnavailable = fmt.Errorf("%w: there are none yet", errUnknown)
	errNoKey       = errors.New("no key is for the token")
)

// verify looks a token up in the cache or verifies it. It fetches the set only
// if wait is true.
func (v *Verifier) verify(ctx context.Context, token []byte, wait bool) (*carried, error) {
	if len(token) > maxToken {
		return nil, errors.New("the token is too long")
	}
	set := v.published()
	if v.cache == nil {
		return v.verifyNew(ctx, token, set, wait)
	}
	d := digest(sha256.Sum256(token))
	if c := v.cache.get(&d, set, v.o.Now()); c != nil {
		return c, nil
	}
	c, err := v.verifyNew(ctx, token, set, wait)
	if err == nil {
		v.cache.put(&d, c)
	}
	return c, err
}

// published returns the last valid set, nil if there is none.
func (v *Verifier) published() *published {
	if v.set == nil {
		return nil
	}
	return v.set.keys.Load()
}

func (v *Verifier) verifyNew(ctx context.Context, token []byte, set *published, wait bool) (*carried, error) {
	c, err := v.parse(token, set)
	if v.set == nil || !errors.Is(err, errUnknown) {
		return c, err
	}
	if v.set.due() {
		if !wait {
			return nil, errWait
		}
		v.set.refresh(ctx)
	}
	// Also if no fetch was due: another request's may have ended since.
	if newer := v.published(); newer != set {
		return v.parse(token, newer)
	}
	return c, err
}

// parse verifies a token with the fixed keys and those of set.
func (v *Verifier) parse(token []byte, set *published) (*carried, error) {
	asked := false // the set is needed, or would be if there was one
	t, err := v.parser.ParseWithClaims(string(token), jwt.MapClaims{}, func(t *jwt.Token) (any, error) {
		if err := v.checkHead(t); err != nil {
			return nil, err
		}
		keys, err := v.keys(t, set, &asked)
		return jwt.VerificationKeySet{Keys: keys}, err
	})
	if asked && errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		// The token may name no key, or one whose name was reused.
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
	if err != nil {
		return nil, err
	}
	c := &carried{claims: Claims(t.Claims.(jwt.MapClaims)), set: set}
	if c.subject, err = t.Claims.GetSubject(); err != nil {
		return nil, err
	}
	if c.window, err = windowOf(c.claims, v.o.Leeway); err != nil {
		return nil, err
	}
	if v.cache != nil {
		c.size = 200 + sizeOf(map[string]any(c.claims))
	}
	return c, c.window.check(v.o.Now())
}

// checkHead checks what golang-jwt does not.
func (v *Verifier) checkHead(t *jwt.Token) error {
	// RFC 7515 section 4.1.11: if any of the listed extensions are not
	// understood and supported, the JWS is invalid. We support none.
	if _, ok := t.Header["crit"]; ok {
		return errors.New("the token has critical extensions")
	}
	// RFC 7797 section 6 requires "crit" with it; section 7 forbids it in a
	// JWT.
	if b64, ok := t.Header["b64"]; ok && b64 != true {
		return errors.New("the payload is not encoded")
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

// keys returns the keys to verify a token with, all for its algorithm.
func (v *Verifier) keys(t *jwt.Token, set *published, asked *bool) (keys []jwt.VerificationKey, err error) {
	alg := t.Method.Alg()
	kid, named := t.Header["kid"].(string)
	if _, ok := t.Header["kid"]; ok && !named {
		return nil, errors.New("kid is no string")
	}
	known := false
	for _, k := range v.o.Keys {
		if k.Algorithm == alg && (!named || k.ID == kid || k.ID == "") {
			keys = append(keys, k.Key)
			known = known || named && k.ID == kid
		}
	}
	switch {
	case known || v.set == nil || !slices.Contains(v.o.Algorithms, alg):
		if len(keys) == 0 {
			return nil, errNoKey
		}
		return keys, nil
	case signedWith(t, keys):
		return keys, nil // whatever becomes of the set
	}
	*asked = true
	if set == nil {
		return nil, errUnavailable
	}
	more, inSet := set.choose(alg, kid, named)
	for _, k := range more {
		keys = append(keys, k)
	}
	switch {
	case len(more) > 0:
		return keys, nil
	case inSet && named:
		return nil, errNoKey
	}
	return nil, errUnknown
}

// signedWith is called if there are both keys without a name and a set.
func signedWith(t *jwt.Token, keys []jwt.VerificationKey) bool {
	signed := t.Raw[:strings.LastIndexByte(t.Raw, '.')]
	return slices.ContainsFunc(keys,
		func(k jwt.VerificationKey) bool { return t.Method.Verify(signed, t.Signature, k) == nil })
}

// A window is when a token is good, with leeway: from from on, and before until.
type window struct{ from, until time.Time } // until zero: no end

var (
	errEarly = errors.New("the token is not valid yet")
	errLate  = errors.New("the token has expired")
)

func (w *window) check(now time.Time) error {
	switch {
	case now.Before(w.from):
		return errEarly
	case !w.until.IsZero() && !now.Before(w.until):
		return errLate
	}
	return nil
}

// windowOf is stricter than golang-jwt, which treats 0 as no date, and converts
// values that are no dates.
func windowOf(c Claims, leeway time.Duration) (w window, err error) {
	for _, name := range [...]string{"nbf", "iat", "exp"} {
		v, ok := c[name]
		if !ok {
			continue
		}
		const year9999 = 253402300799
		f, ok := v.(float64)
		if !ok || f < 0 || f > year9999 {
			return w, fmt.Errorf("%s is no date", name)
		}
		switch t := time.Unix(int64(f), 0); {
		case name == "exp":
			w.until = t.Add(leeway)
		case t.Add(-leeway).After(w.from):
			w.from = t.Add(-leeway)
		}
	}
	return w, nil
}
