package jwt

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Key is a fixed key. It is for one algorithm, so that a public key cannot be
// used as a secret.
type Key struct {
	ID        string // "kid"; a Key without one is for tokens with any "kid", and with none
	Algorithm string // such as RS256
	// Key is []byte for HS256, HS384 and HS512, of at least as many bits, and no public key;
	// *rsa.PublicKey of 2048 to 8192 bits, *ecdsa.PublicKey, or ed25519.PublicKey.
	Key any
}

// Options are the options of New. Keys are required, and so are an issuer and
// an audience, unless AnyIssuer or AnyAudience is set.
type Options struct {
	Keys []Key
	// JWKS is the address of a JSON Web Key Set (RFC 7517): https, or http to
	// this machine. The same holds for redirects, and https is not left for
	// http. At most 1 MiB and 64 keys are accepted; keys that are not for
	// verifying, or of an unknown kind, are skipped. A token that names no key
	// is tried with at most 8. While the endpoint is down the last valid keys
	// are used.
	JWKS      string
	AllowHTTP bool // http to other machines too: an attacker on the path can issue tokens
	// Client fetches it; nil: one of the Verifier's own. A fetch takes at most
	// 10 s in any case.
	Client *http.Client
	// Refresh is the time between fetches. Default 15 minutes; negative: never once
	// it was fetched, except for RefreshUnknown. A key that was removed from the set
	// is accepted for that long, and as long as the endpoint is down. After an error,
	// or a response that took 5 s or more, it is fetched again after 1 s, 2 s, and so
	// on up to RefreshUnknown.
	Refresh time.Duration
	// RefreshUnknown is the least time between fetches that are caused by tokens
	// which no known key has signed. Default 30 s; negative: they cause none. All
	// such requests wait for the same fetch, until 5 s after its start. After a fetch
	// that took longer none waits, and such tokens are refused at once, until a fetch
	// was quicker again. A key that was not announced may be unknown for that long.
	RefreshUnknown time.Duration
	// Algorithms are those that the keys of the set are used with; nil: RS, PS
	// and ES with 256, 384 and 512, and EdDSA. HS is not permitted, since
	// published keys are no secrets. A key with "alg" is used with that only.
	Algorithms []string

	Issuer   string   // "iss" must be this
	Audience []string // "aud" must have one of these
	// AnyIssuer and AnyAudience skip these checks. A token issued for another
	// service is then accepted by this one.
	AnyIssuer, AnyAudience bool
	// Type, if not "", is the required "typ", such as "at+jwt" (RFC 9068), so
	// that tokens for other purposes, such as ID tokens, are not accepted.
	Type string
	// Leeway is how wrong clocks may be, for "exp", "nbf" and "iat". Default 30 s;
	// negative: none.
	Leeway time.Duration
	// AllowEternal accepts tokens without "exp".
	AllowEternal bool

	// CacheSize is how many verified tokens are remembered. Default none, because all
	// requests with a token then share its Claims; negative: none. They are kept by
	// their SHA-256, and are good as long as they would be without: until "exp",
	// and until the set changes. It spares an event loop some 50 to 100 us a request
	// for RS256, ES256 and EdDSA.
	CacheSize int
	// CacheBytes bounds the memory that the cache takes, roughly. Default 4 KiB for
	// each of CacheSize; negative: no limit.
	CacheBytes int

	// Realm is sent in WWW-Authenticate, and must be printable ASCII. Default
	// "restricted".
	Realm string
	// Logger gets why requests are refused, with level Debug, and what goes wrong
	// with JWKS, with level Error; nil: slog.Default.
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
}

// defaultUnknown is the default of RefreshUnknown.
const defaultUnknown = 30 * time.Second

var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// complete fills in defaults and reports mistakes.
func (o *Options) complete() error {
	switch {
	case len(o.Keys) == 0 && o.JWKS == "":
		return errors.New("neither Keys nor JWKS")
	case o.Issuer == "" && !o.AnyIssuer:
		return errors.New("neither Issuer nor AnyIssuer")
	case o.Issuer != "" && o.AnyIssuer:
		return errors.New("both Issuer and AnyIssuer")
	case len(o.Audience) == 0 && !o.AnyAudience:
		return errors.New("neither Audience nor AnyAudience")
	case len(o.Audience) != 0 && o.AnyAudience:
		return errors.New("both Audience and AnyAudience")
	case o.Algorithms != nil && len(o.Algorithms) == 0:
		return errors.New("empty Algorithms; nil means all")
	case slices.Contains(o.Audience, ""):
		return errors.New("an empty Audience")
	}
	// Later changes by the caller must not change what is admitted.
	o.Keys, o.Audience, o.Algorithms = slices.Clone(o.Keys), slices.Clone(o.Audience), slices.Clone(o.Algorithms)
	for i := range o.Keys {
		k := &o.Keys[i]
		if err := k.check(); err != nil {
			return fmt.Errorf("key %d (%q) of Keys: %w", i, k.ID, err)
		}
		if secret, ok := k.Key.([]byte); ok {
			k.Key = slices.Clone(secret)
		}
	}
	if o.Algorithms == nil {
		o.Algorithms = asymmetric
	}
	for _, a := range o.Algorithms {
		if !slices.Contains(asymmetric, a) {
			return fmt.Errorf("algorithm %q is not for published keys", a)
		}
	}
	o.Refresh = cmp.Or(o.Refresh, 15*time.Minute)
	o.RefreshUnknown = cmp.Or(o.RefreshUnknown, defaultUnknown)
	o.Leeway = max(cmp.Or(o.Leeway, 30*time.Second), 0)
	if o.Refresh < 0 {
		o.Refresh = math.MaxInt64
	}
	o.CacheSize = max(o.CacheSize, 0)
	o.CacheBytes = cmp.Or(o.CacheBytes, o.CacheSize*(4<<10))
	if o.CacheBytes < 0 {
		o.CacheBytes = math.MaxInt
	}
	o.Client = cmp.Or(o.Client, &http.Client{})
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.JWKS != "" {
		return o.checkURL()
	}
	return nil
}

func (o *Options) checkURL() error {
	u, err := url.Parse(o.JWKS)
	if err != nil {
		return fmt.Errorf("JWKS: %w", err)
	}
	if !o.trusted(u) {
		return fmt.Errorf("JWKS: %q is not https", u.Redacted())
	}
	return nil
}

// trusted reports whether keys may be fetched from u.
func (o *Options) trusted(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Host != "" && (u.Scheme == "https" || u.Scheme == "http" && (local || o.AllowHTTP))
}

// methods returns the algorithms that tokens may have.
func (o *Options) methods() (all []string) {
	if o.JWKS != "" {
		all = slices.Clone(o.Algorithms)
	}
	for _, k := range o.Keys {
		all = append(all, k.Algorithm)
	}
	return all
}

func (k *Key) check() error {
	if secret, ok := k.Key.([]byte); ok {
		// RFC 7518 section 3.2: a key of the same size as the hash output or larger
		// MUST be used.
		least := map[string]int{"HS256": 32, "HS384": 48, "HS512": 64}[k.Algorithm]
		switch {
		case least == 0:
			return fmt.Errorf("a secret is not for %q", k.Algorithm)
		case len(secret) < least:
			return fmt.Errorf("%d bytes are too few for %s", len(secret), k.Algorithm)
		case isPublic(secret):
			return fmt.Errorf("a public key is no secret for %s: whoever has it could sign; want it parsed, and "+
				"RS256, PS256, ES256 or EdDSA", k.Algorithm)
		}
		return nil
	}
	if err := suits(k.Key, k.Algorithm); err != nil {
		return err
	}
	return possible(k.Key)
}

// possible reports whether anything can have been signed for a public key. A library that reads keys
// has seen to that, but a program may put one together.
func possible(key any) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.E < 3 || k.E%2 == 0 {
			return errors.New("an RSA key whose exponent is not odd, or less than 3")
		}
	case *ecdsa.PublicKey:
		//lint:ignore SA1019 functions for keys panic if there are none
		if k.X == nil || k.Y == nil {
			return errors.New("a key without a point")
		}
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			_, err := k.Bytes()
			return err
		}
	}
	return nil
}

// isPublic reports whether a secret is a public key or a certificate in PEM or DER.
func isPublic(secret []byte) bool {
	if block, _ := pem.Decode(secret); block != nil {
		return block.Type == "CERTIFICATE" || strings.HasSuffix(block.Type, "PUBLIC KEY")
	}
	_, pkix := x509.ParsePKIXPublicKey(secret)
	_, pkcs1 := x509.ParsePKCS1PublicKey(secret)
	_, cert := x509.ParseCertificate(secret)
	return pkix == nil || pkcs1 == nil || cert == nil
}

// suits reports whether a public key is for an algorithm: the type, and for ES
// the curve (RFC 7518 section 3.4).
func suits(key any, algorithm string) error {
	var of []string
	switch k := key.(type) {
	case *rsa.PublicKey:
		// RFC 7518 sections 3.3 and 3.5 require 2048 bits. Keys larger than
		// crypto/tls accepts would block an event loop.
		if k == nil || k.N == nil || k.N.BitLen() < 2048 || k.N.BitLen() > 8192 {
			return errors.New("an RSA key must have 2048 to 8192 bits")
		}
		of = asymmetric[:6]
	case *ecdsa.PublicKey:
		if k == nil || k.Curve == nil {
			return errors.New("a key without a curve")
		}
		of = []string{map[int]string{256: "ES256", 384: "ES384", 521: "ES512"}[k.Curve.Params().BitSize]}
	case ed25519.PublicKey:
		if len(k) != ed25519.PublicKeySize {
			return errors.New("an Ed25519 key of the wrong size")
		}
		of = []string{"EdDSA"}
	default:
		return fmt.Errorf("a %T is no key to verify with", key)
	}
	if !slices.Contains(of, algorithm) {
		return fmt.Errorf("a %T is not for %q", key, algorithm)
	}
	return nil
}
