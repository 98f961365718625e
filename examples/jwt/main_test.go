package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/jwt"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	jwxt "github.com/lestrrat-go/jwx/v3/jwt"
)

func TestMain(m *testing.M) { engines.Main(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// The keys of an issuer, and those of another.
var (
	rsaKey   = must(rsa.GenerateKey(rand.Reader, 2048))
	otherRSA = must(rsa.GenerateKey(rand.Reader, 2048))
	ec256    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ec384    = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	ec521    = must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	edKey    = func() ed25519.PrivateKey { _, k, err := ed25519.GenerateKey(rand.Reader); return must(k, err) }()
	ed2      = func() ed25519.PrivateKey { _, k, err := ed25519.GenerateKey(rand.Reader); return must(k, err) }()
	small    = must(rsa.GenerateKey(rand.Reader, 1024))
	secret   = []byte(strings.Repeat("0123456789abcdef", 4))
	now      = time.Unix(1_800_000_000, 0)
)

// An issuer has a JWKS endpoint, whose set can be changed and which can go down.
type issuer struct {
	srv   *httptest.Server
	set   atomic.Pointer[string]
	code  atomic.Int64
	asked atomic.Int64
}

func newIssuer(t *testing.T, keys ...jwk.Key) *issuer {
	i := new(issuer)
	i.code.Store(200)
	i.publish(keys...)
	i.srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(i.code.Load()))
		io.WriteString(w, *i.set.Load())
	}))
	t.Cleanup(i.srv.Close)
	return i
}

func (i *issuer) publish(keys ...jwk.Key) {
	set := jwk.NewSet()
	for _, k := range keys {
		set.AddKey(k)
	}
	s := string(must(json.Marshal(set)))
	i.set.Store(&s)
}

// published is the public part of a key as a JWK; fields come in pairs.
func published(key any, kid string, fields ...any) jwk.Key {
	k := must(jwk.Import(key))
	if kid != "" {
		k.Set(jwk.KeyIDKey, kid)
	}
	for i := 0; i < len(fields); i += 2 {
		if err := k.Set(fields[i].(string), fields[i+1]); err != nil {
			panic(err)
		}
	}
	return k
}

// claims returns valid claims with changes.
func claims(change ...any) jwxt.Token {
	t := must(jwxt.NewBuilder().Issuer("https://issuer.example/").Audience([]string{"other", "api"}).Subject("ann").
		IssuedAt(now).NotBefore(now).Expiration(now.Add(time.Hour)).Build())
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == nil {
			t.Remove(change[i].(string))
		} else if err := t.Set(change[i].(string), change[i+1]); err != nil {
			panic(err)
		}
	}
	return t
}

// sign makes a token with another library; head comes in pairs.
func sign(alg jwa.SignatureAlgorithm, key any, t jwxt.Token, head ...any) string {
	h := jws.NewHeaders()
	for i := 0; i < len(head); i += 2 {
		if err := h.Set(head[i].(string), head[i+1]); err != nil {
			panic(err)
		}
	}
	return string(must(jwxt.Sign(t, jwxt.WithKey(alg, key, jws.WithProtectedHeaders(h)))))
}

// raw makes a token of any head and claims, signed by sig.
func raw(head, payload string, sig func(signed string) []byte) string {
	b := base64.RawURLEncoding
	s := b.EncodeToString([]byte(head)) + "." + b.EncodeToString([]byte(payload))
	return s + "." + b.EncodeToString(sig(s))
}

func rs256(key *rsa.PrivateKey) func(string) []byte {
	return func(s string) []byte {
		h := crypto.SHA256.New()
		io.WriteString(h, s)
		return must(rsa.SignPKCS1v15(nil, key, crypto.SHA256, h.Sum(nil)))
	}
}

func unsigned(string) []byte { return nil }

// A clock advances only on request.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time          { return now.Add(time.Duration(c.passed.Load())) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

func verifier(t *testing.T, o jwt.Options) *jwt.Verifier {
	t.Helper()
	if !o.AnyIssuer {
		o.Issuer = "https://issuer.example/"
	}
	if !o.AnyAudience {
		o.Audience = []string{"api"}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return now }
	}
	o.Logger = slog.New(slog.DiscardHandler)
	v, err := jwt.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func protected(v *jwt.Verifier) http.Handler {
	return v.Wrap(direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(middleware.UserOf(x)) }))
}

func bearer(token string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func askPlain(v *jwt.Verifier, token string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	protected(v).ServeHTTP(rec, bearer(token))
	return rec
}

// ask returns the status and the body of both ways; the direct one may decline.
func ask(t *testing.T, v *jwt.Verifier, token string) (int, string) {
	t.Helper()
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Fields: wire.FieldsOf(bearer(token).Header)})
	answered := protected(v).(direct.Handler).ServeDirect(&x)
	a := x.Wire().Finish()
	rec := askPlain(v, token)
	if answered && (a.Status != rec.Code || string(a.Body) != rec.Body.String()) {
		t.Errorf("direct %d %q, plain %d %q", a.Status, a.Body, rec.Code, rec.Body)
	}
	if got := rec.Header().Get("WWW-Authenticate"); rec.Code == 401 && got != `Bearer realm="restricted", error="invalid_token"` {
		t.Errorf("WWW-Authenticate: %s", got)
	}
	return rec.Code, rec.Body.String()
}

func allKeys() []jwk.Key {
	return []jwk.Key{
		published(rsaKey.Public(), "rsa"), published(ec256.Public(), "ec256"), published(ec384.Public(), "ec384"),
		published(ec521.Public(), "ec521"), published(edKey.Public(), "ed"),
		published(rsaKey.Public(), "rs256-only", "alg", jwa.RS256()), published(otherRSA.Public(), "enc", "use", "enc"),
		published(secret, "oct", "alg", jwa.HS256()),
	}
}

func TestAccepted(t *testing.T) {
	set := newIssuer(t, allKeys()...)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	strict := verifier(t, jwt.Options{JWKS: set.srv.URL, Leeway: -1})
	twice := verifier(t, jwt.Options{JWKS: newIssuer(t, published(rsaKey.Public(), "k"), published(ec256.Public(), "k"), published(otherRSA.Public(), "k")).srv.URL})
	es := func(change ...any) string { return sign(jwa.ES256(), ec256, claims(change...), "kid", "ec256") }
	fixed := verifier(t, jwt.Options{Keys: []jwt.Key{
		{ID: "hs256", Algorithm: "HS256", Key: secret}, {ID: "hs384", Algorithm: "HS384", Key: secret}, {Algorithm: "HS512", Key: secret},
		{ID: "pub", Algorithm: "PS512", Key: rsaKey.Public()},
	}})
	for _, tt := range []struct {
		name  string
		v     *jwt.Verifier
		token string
	}{
		{"RS256", v, sign(jwa.RS256(), rsaKey, claims(), "kid", "rsa")}, {"RS384", v, sign(jwa.RS384(), rsaKey, claims(), "kid", "rsa")},
		{"RS512", v, sign(jwa.RS512(), rsaKey, claims(), "kid", "rsa")}, {"PS256", v, sign(jwa.PS256(), rsaKey, claims(), "kid", "rsa")},
		{"PS384", v, sign(jwa.PS384(), rsaKey, claims(), "kid", "rsa")}, {"PS512", v, sign(jwa.PS512(), rsaKey, claims(), "kid", "rsa")},
		{"ES256", v, sign(jwa.ES256(), ec256, claims(), "kid", "ec256")}, {"ES384", v, sign(jwa.ES384(), ec384, claims(), "kid", "ec384")},
		{"ES512", v, sign(jwa.ES512(), ec521, claims(), "kid", "ec521")}, {"EdDSA", v, sign(jwa.EdDSA(), edKey, claims(), "kid", "ed")},
		{"a key for one algorithm", v, sign(jwa.RS256(), rsaKey, claims(), "kid", "rs256-only")},
		{"no kid", v, sign(jwa.ES384(), ec384, claims())},
		{"HS256", fixed, sign(jwa.HS256(), secret, claims(), "kid", "hs256")}, {"HS384", fixed, sign(jwa.HS384(), secret, claims(), "kid", "hs384")},
		{"HS512, any kid", fixed, sign(jwa.HS512(), secret, claims(), "kid", "x")}, {"PS512", fixed, sign(jwa.PS512(), rsaKey, claims(), "kid", "pub")},
		{"just not expired", v, es("exp", now.Add(-29*time.Second))},
		{"just valid", v, es("nbf", now.Add(30*time.Second))},
		{"just issued", v, es("iat", now.Add(30*time.Second))},
		{"just not expired, no leeway", strict, es("exp", now.Add(time.Second))},
		{"just valid, no leeway", strict, es("nbf", now, "iat", now)},
		{"the name twice, RSA", twice, sign(jwa.RS256(), rsaKey, claims(), "kid", "k")},
		{"the name twice, EC", twice, sign(jwa.ES256(), ec256, claims(), "kid", "k")},
		{"the name twice, the second RSA", twice, sign(jwa.RS256(), otherRSA, claims(), "kid", "k")},
		{"b64 as it is anyway", v, raw(`{"alg":"RS256","kid":"rsa","b64":true}`, string(must(json.Marshal(claims()))), rs256(rsaKey))},
		{"one audience", v, sign(jwa.ES256(), ec256, claims("aud", "api"), "kid", "ec256")},
		{"no nbf", v, sign(jwa.ES256(), ec256, claims("nbf", nil, "iat", nil), "kid", "ec256")},
	} {
		if status, body := ask(t, tt.v, tt.token); status != 200 || body != "ann" {
			t.Errorf("%s: got %d %q", tt.name, status, body)
		}
	}
}
