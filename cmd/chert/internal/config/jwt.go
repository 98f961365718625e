package config

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/chert-http/chert/middleware/jwt"
)

// JWT is what a request's token has to be.
type JWT struct {
	Options jwt.Options
	// ID is the same for those that admit the same tokens.
	ID string
}

// rememberedTokens is the default of cache.
const rememberedTokens = 4096

// jwt reads [site.jwt]; false instead of a table is none.
func (l *loader) jwt(t *table, base *JWT) *JWT {
	if v, ok := t.m["jwt"].(bool); ok {
		t.get("jwt")
		if v {
			l.errorf(t.spot.child("jwt").value, "jwt wants a table with jwks or key, or false")
		}
		return nil
	}
	a := t.table("jwt")
	if a == nil {
		return base
	}
	before := len(l.problems)
	j := &JWT{Options: jwt.Options{CacheSize: rememberedTokens}}
	o := &j.Options
	o.JWKS, _, _ = a.str("jwks")
	o.Issuer, _, _ = a.str("issuer")
	o.Type, _, _ = a.str("type")
	o.Realm, _, _ = a.str("realm")
	audience, _ := a.list("audience")
	for _, it := range audience {
		o.Audience = append(o.Audience, it.text)
	}
	algorithms, _ := a.list("algorithms")
	for _, it := range algorithms {
		o.Algorithms = append(o.Algorithms, it.text)
	}
	a.boolean("any_issuer", &o.AnyIssuer)
	a.boolean("any_audience", &o.AnyAudience)
	if d, ok := a.duration("leeway"); ok {
		if o.Leeway = d; d == 0 {
			o.Leeway = -1
		}
	}
	if n := a.count("cache", 0, 1<<20); n != nil {
		o.CacheSize = *n
	}
	id := sha256.New()
	if file, at, ok := a.str("key"); ok {
		if o.JWKS == "" && len(o.Algorithms) == 0 {
			l.errorf(a.spot.key, `%s has a key; want algorithms, the one that it is for, such as "RS256"`, a.name)
		}
		for _, algorithm := range o.Algorithms {
			data, key, err := l.jwtKey(file, algorithm, at)
			if err != nil {
				l.errorf(at, "key: %v", err)
				break
			}
			id.Write(data)
			o.Keys = append(o.Keys, jwt.Key{Algorithm: algorithm, Key: key})
		}
		if o.JWKS != "" {
			l.errorf(at, "key is in the place of jwks; want one of them")
		}
		o.Algorithms = nil // of published keys
	}
	a.done()
	if len(l.problems) == before {
		if err := o.Check(); err != nil {
			l.errorf(a.spot.key, "%s: %s", a.name, jwtProblem(err))
		}
	}
	fmt.Fprintf(id, "%q %q %q %v %v %q %v %q %v %d %q", o.JWKS, o.Issuer, o.Audience, o.AnyIssuer, o.AnyAudience,
		o.Algorithms, o.Type, o.Realm, o.Leeway, o.CacheSize, a.m["algorithms"])
	j.ID = hex.EncodeToString(id.Sum(nil))
	return j
}

// jwtProblem names the keys of the file in place of jwt's options.
func jwtProblem(err error) string {
	return jwtWords.Replace(strings.TrimPrefix(err.Error(), "jwt: "))
}

var jwtWords = strings.NewReplacer(
	"neither Keys nor JWKS", `it has no keys; want jwks = "https://...", where they are published, or key`,
	"neither Issuer nor AnyIssuer", "want issuer, or any_issuer = true",
	"both Issuer and AnyIssuer", "want issuer or any_issuer, not both",
	"neither Audience nor AnyAudience", "want audience, or any_audience = true",
	"both Audience and AnyAudience", "want audience or any_audience, not both",
	"an empty Audience", "audience has an empty name",
	"empty Algorithms; nil means all", "algorithms is empty",
	"JWKS: ", "jwks: ", "Realm: ", "realm: ",
)

// jwtKey reads a key for an algorithm: a public one in PEM, or what is in the file, without
// white space around it, for HS. With a public key as the secret of HS everybody could issue tokens.
func (l *loader) jwtKey(file, algorithm string, at Position) (data []byte, key any, err error) {
	if data, err = readPart(l.path(file)); err != nil {
		return nil, nil, fmt.Errorf("%q: %w", file, err)
	}
	block, _ := pem.Decode(data)
	if strings.HasPrefix(algorithm, "HS") {
		if block != nil {
			return nil, nil, fmt.Errorf("%q has a key in PEM; %s wants a secret", file, algorithm)
		}
		l.secret("the key of tokens", l.path(file), at)
		return data, bytes.TrimSpace(data), nil
	}
	switch {
	case block == nil:
		return nil, nil, fmt.Errorf("%q has no public key in PEM", file)
	case block.Type == "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", file, err)
		}
		return data, cert.PublicKey, nil
	case strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, nil, fmt.Errorf("%q is a private key; want the public one, which verifies", file)
	}
	var public crypto.PublicKey
	if public, err = x509.ParsePKIXPublicKey(block.Bytes); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%q is no public key", file), err)
	}
	return data, public, nil
}
