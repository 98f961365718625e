package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
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

// The keys of an issuer, and those of somebody else.
var (
	rsaKey   = must(rsa.GenerateKey(rand.Reader, 2048))
	otherRSA = must(rsa.GenerateKey(rand.Reader, 2048))
	ec256    = must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ec384    = must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	ec521    = must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	edKey    = func() ed25519.PrivateKey { _, k, err := ed25519.GenerateKey(rand.Reader); return must(k, err) }()
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

// claims are good ones, changed.
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

// raw is a token of any head and claims, signed by sig.
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

func verifier(t *testing.T, o jwt.Options) *jwt.Verifier {
	t.Helper()
	if !o.AnyIssuer {
		o.Issuer = "https://issuer.example/"
	}
	if !o.AnyAudience {
		o.Audience = []string{"api"}
	}
	o.Now = func() time.Time { return now }
	o.Logger = slog.New(slog.DiscardHandler)
	v, err := jwt.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// ask gives the status and the body of both ways; the direct one may decline.
func ask(t *testing.T, v *jwt.Verifier, token string) (int, string) {
	t.Helper()
	h := v.Wrap(direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(middleware.User(x)) }))
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	var x direct.Exchange
	x.Reset(direct.Request{Method: "GET", Fields: direct.FieldsOf(r.Header)})
	answered := h.(direct.Handler).ServeDirect(&x)
	a := x.Finish()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	if answered && (a.Status != rec.Code || string(a.Body) != rec.Body.String()) {
		t.Errorf("direct %d %q, plain %d %q", a.Status, a.Body, rec.Code, rec.Body)
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
		{"within the leeway", v, sign(jwa.ES256(), ec256, claims("exp", now.Add(-29*time.Second)), "kid", "ec256")},
		{"early within the leeway", v, sign(jwa.ES256(), ec256, claims("nbf", now.Add(29*time.Second)), "kid", "ec256")},
		{"one audience", v, sign(jwa.ES256(), ec256, claims("aud", "api"), "kid", "ec256")},
		{"no nbf", v, sign(jwa.ES256(), ec256, claims("nbf", nil, "iat", nil), "kid", "ec256")},
	} {
		if status, body := ask(t, tt.v, tt.token); status != 200 || body != "ann" {
			t.Errorf("%s: got %d %q", tt.name, status, body)
		}
	}
}

func TestRefused(t *testing.T) {
	set := newIssuer(t, allKeys()...)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Keys: []jwt.Key{{ID: "shared", Algorithm: "HS256", Key: secret}}})
	typed := verifier(t, jwt.Options{JWKS: set.srv.URL, Type: "at+jwt"})
	strict := verifier(t, jwt.Options{JWKS: set.srv.URL, Leeway: -1})
	only := verifier(t, jwt.Options{JWKS: set.srv.URL, Algorithms: []string{"ES256"}})
	// What an attacker has of the issuer's: its public key in all its forms.
	der := must(x509.MarshalPKIXPublicKey(rsaKey.Public()))
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	payload := string(must(json.Marshal(claims())))
	good := sign(jwa.ES256(), ec256, claims(), "kid", "ec256")
	parts := strings.Split(good, ".")
	es := func(change ...any) string { return sign(jwa.ES256(), ec256, claims(change...), "kid", "ec256") }
	if status, _ := ask(t, v, good); status != 200 {
		t.Fatalf("the good token: %d", status)
	}
	for _, tt := range []struct {
		name  string
		v     *jwt.Verifier
		token string
	}{
		// No signature.
		{"none", v, raw(`{"alg":"none","typ":"JWT","kid":"rsa"}`, payload, unsigned)},
		{"none without kid", v, raw(`{"alg":"none"}`, payload, unsigned)},
		{"None", v, raw(`{"alg":"None","kid":"rsa"}`, payload, unsigned)},
		{"NONE", v, raw(`{"alg":"NONE","kid":"rsa"}`, payload, unsigned)},
		{"alg empty", v, raw(`{"alg":"","kid":"rsa"}`, payload, unsigned)},
		{"alg missing", v, raw(`{"kid":"rsa"}`, payload, unsigned)},
		{"alg null", v, raw(`{"alg":null,"kid":"rsa"}`, payload, unsigned)},
		{"alg a list", v, raw(`{"alg":["RS256"],"kid":"rsa"}`, payload, unsigned)},
		{"signature removed", v, parts[0] + "." + parts[1] + "."},
		{"signature of zeros", v, raw(`{"alg":"ES256","kid":"ec256"}`, payload, func(string) []byte { return make([]byte, 64) })}, // CVE-2022-21449
		{"signature in DER", v, raw(`{"alg":"ES256","kid":"ec256"}`, payload, func(string) []byte { return []byte{0x30, 6, 2, 1, 1, 2, 1, 1} })},
		// Algorithm confusion: a public key as a secret.
		{"HS256 with PEM", v, sign(jwa.HS256(), pemKey, claims(), "kid", "rsa")},
		{"HS256 with PEM, no kid", v, sign(jwa.HS256(), pemKey, claims())},
		{"HS256 with DER", v, sign(jwa.HS256(), der, claims(), "kid", "rsa")},
		{"HS256 with the modulus", v, sign(jwa.HS256(), rsaKey.N.Bytes(), claims(), "kid", "rsa")},
		{"HS256 with the Ed25519 key", v, sign(jwa.HS256(), []byte(edKey.Public().(ed25519.PublicKey)), claims(), "kid", "ed")},
		{"HS384 with the secret for HS256", v, sign(jwa.HS384(), secret, claims(), "kid", "shared")},
		{"a published secret", only, sign(jwa.HS256(), secret, claims(), "kid", "oct")},
		{"a published secret, no kid", typed, sign(jwa.HS256(), secret, claims(), "typ", "at+jwt")},
		{"another algorithm of the key", v, sign(jwa.RS384(), rsaKey, claims(), "kid", "rs256-only")},
		{"PS for an RS key", v, sign(jwa.PS256(), rsaKey, claims(), "kid", "rs256-only")},
		{"an algorithm that is not allowed", only, sign(jwa.RS256(), rsaKey, claims(), "kid", "rsa")},
		{"RS256 by name of an EC key", v, sign(jwa.RS256(), rsaKey, claims(), "kid", "ec256")},
		{"ES256K", v, raw(`{"alg":"ES256K","kid":"ec256"}`, payload, func(string) []byte { return make([]byte, 64) })},
		// Other keys.
		{"another's key", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "rsa")},
		{"another's key, no kid", v, sign(jwa.RS256(), otherRSA, claims())},
		{"a key for encryption", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "enc")},
		{"an unknown key", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "unknown")},
		{"its own key in jwk", v, raw(`{"alg":"RS256","jwk":`+string(must(json.Marshal(published(otherRSA.Public(), ""))))+`}`, payload, rs256(otherRSA))},
		{"its own key at jku", v, raw(`{"alg":"RS256","kid":"x","jku":"http://127.0.0.1:1/"}`, payload, rs256(otherRSA))},
		{"its own key at x5u", v, raw(`{"alg":"RS256","kid":"x","x5u":"http://127.0.0.1:1/"}`, payload, rs256(otherRSA))},
		{"kid a path", v, sign(jwa.HS256(), []byte{0}, claims(), "kid", "../../dev/zero")},
		{"kid a number", v, raw(`{"alg":"RS256","kid":1}`, payload, rs256(rsaKey))},
		{"kid a list", v, raw(`{"alg":"RS256","kid":["rsa"]}`, payload, rs256(rsaKey))},
		// Changed.
		{"claims changed", v, parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(payload, "ann", "eve", 1))) + "." + parts[2]},
		{"head changed", v, base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"ec256","x":1}`)) + "." + parts[1] + "." + parts[2]},
		{"signature changed", v, parts[0] + "." + parts[1] + "." + "AAAA" + parts[2][4:]},
		{"signature longer", v, good + "AAAA"},
		{"critical extension", v, raw(`{"alg":"RS256","kid":"rsa","crit":["x"],"x":1}`, payload, rs256(rsaKey))},
		{"critical nothing", v, raw(`{"alg":"RS256","kid":"rsa","crit":[]}`, payload, rs256(rsaKey))},
		{"unencoded payload", v, raw(`{"alg":"RS256","kid":"rsa","b64":false,"crit":["b64"]}`, payload, rs256(rsaKey))},
		// Claims.
		{"expired", v, es("exp", now.Add(-time.Hour))},
		{"just expired", v, es("exp", now.Add(-31*time.Second))},
		{"expired without leeway", strict, es("exp", now.Add(-time.Second))},
		{"no exp", v, es("exp", nil)},
		{"exp a string", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":"1900000000"}`, rs256(rsaKey))},
		{"exp null", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":null}`, rs256(rsaKey))},
		{"not yet valid", v, es("nbf", now.Add(time.Hour))},
		{"just not valid", v, es("nbf", now.Add(31*time.Second))},
		{"nbf a string", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"nbf":"0"}`, rs256(rsaKey))},
		{"wrong audience", v, es("aud", "other")},
		{"audience in another case", v, es("aud", "API")},
		{"audience a beginning", v, es("aud", "ap")},
		{"no audience", v, es("aud", nil)},
		{"audience empty", v, es("aud", []string{})},
		{"audience a number", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":1,"exp":1900000000}`, rs256(rsaKey))},
		{"wrong issuer", v, es("iss", "https://evil.example/")},
		{"issuer without its slash", v, es("iss", "https://issuer.example")},
		{"no issuer", v, es("iss", nil)},
		{"sub a number", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"sub":1}`, rs256(rsaKey))},
		{"another type", typed, sign(jwa.ES256(), ec256, claims(), "kid", "ec256", "typ", "JWT")},
		// No tokens.
		{"no parts", v, "x"}, {"two parts", v, parts[0] + "." + parts[1]}, {"four parts", v, good + ".x"}, {"five parts", v, "a.b.c.d.e"},
		{"empty parts", v, ".."}, {"padded", v, parts[0] + "." + parts[1] + "." + parts[2] + "="}, {"no JSON", v, raw("x", payload, unsigned)},
		{"head a list", v, raw(`["RS256"]`, payload, unsigned)}, {"head null", v, raw(`null`, payload, unsigned)},
		{"claims a list", v, raw(`{"alg":"RS256","kid":"rsa"}`, `[1]`, rs256(rsaKey))},
		{"claims null", v, raw(`{"alg":"RS256","kid":"rsa"}`, `null`, rs256(rsaKey))},
		{"claims nothing", v, raw(`{"alg":"RS256","kid":"rsa"}`, ``, rs256(rsaKey))},
		{"claims deep", v, raw(`{"alg":"RS256","kid":"rsa"}`, strings.Repeat(`[`, 4000)+strings.Repeat(`]`, 4000), rs256(rsaKey))},
		{"huge", v, sign(jwa.ES256(), ec256, claims("x", strings.Repeat("x", 20000)), "kid", "ec256")},
	} {
		if status, body := ask(t, tt.v, tt.token); status != 401 || strings.Contains(body, "ann") {
			t.Errorf("%s: got %d %q", tt.name, status, body)
		}
	}
}

// Keys rotate: a new one is fetched when a token has it, and one that was taken
// away is not good any more.
func TestRotation(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "old"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, RefreshUnknown: time.Nanosecond})
	before, after := sign(jwa.ES256(), ec256, claims(), "kid", "old"), sign(jwa.RS256(), rsaKey, claims(), "kid", "new")
	expect := func(what, token string, want int) {
		t.Helper()
		if status, _ := ask(t, v, token); status != want {
			t.Errorf("%s: got %d, want %d", what, status, want)
		}
	}
	expect("old", before, 200)
	expect("new, not published", after, 401)
	asked := set.asked.Load()
	for range 10 {
		expect("old", before, 200)
	}
	if n := set.asked.Load(); n != asked {
		t.Errorf("the set was asked for %d times for known keys", n-asked)
	}
	set.publish(published(ec256.Public(), "old"), published(rsaKey.Public(), "new"))
	expect("new", after, 200)
	expect("old still", before, 200)
	set.publish(published(rsaKey.Public(), "new"))
	expect("something unknown", sign(jwa.RS256(), rsaKey, claims(), "kid", "x"), 401) // which fetches
	expect("old, taken away", before, 401)
	expect("new", after, 200)
}

// Whatever becomes of the endpoint, the last good keys are used.
func TestDown(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, RefreshUnknown: time.Nanosecond})
	good, unknown := sign(jwa.ES256(), ec256, claims(), "kid", "a"), sign(jwa.ES256(), ec256, claims(), "kid", "b")
	answer := func(code int64, body string) func() {
		return func() { set.code.Store(code); set.set.Store(&body) }
	}
	huge := `{"keys":[` + strings.Repeat(" ", 2<<20) + `]}`
	for _, tt := range []struct {
		name string
		do   func()
	}{
		{"500", answer(500, "{}")}, {"404", answer(404, "{}")}, {"no JSON", answer(200, "<html>")}, {"no keys", answer(200, `{"keys":[]}`)},
		{"nothing", answer(200, `{}`)}, {"null", answer(200, `null`)}, {"a secret only", answer(200, `{"keys":[{"kty":"oct","kid":"a","k":"AAAA"}]}`)},
		{"a bad key", answer(200, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"a"}]}`)}, {"huge", answer(200, huge)},
		{"gone", func() { set.srv.Close() }},
	} {
		tt.do()
		asked := set.asked.Load()
		if status, _ := ask(t, v, unknown); status != 401 {
			t.Errorf("%s: an unknown key: %d", tt.name, status)
		}
		if tt.name != "gone" && set.asked.Load() == asked {
			t.Errorf("%s: the set was not asked for", tt.name)
		}
		if status, _ := ask(t, v, good); status != 200 {
			t.Errorf("%s: the last good key: %d", tt.name, status)
		}
	}
}

// Unknown keys do not make the endpoint busy, nor requests wait.
func TestFlood(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	for i := range 50 {
		if status, _ := ask(t, v, sign(jwa.ES256(), ec256, claims(), "kid", fmt.Sprint(i))); status != 401 {
			t.Errorf("got %d", status)
		}
	}
	if n := set.asked.Load(); n > 2 {
		t.Errorf("asked for %d times", n)
	}
}

// An endpoint that is down when we start: 503, and not 401, until it is up.
func TestDownAtFirst(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"), published(ec384.Public(), ""))
	set.code.Store(503)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, RefreshUnknown: time.Nanosecond})
	named, nameless := sign(jwa.ES256(), ec256, claims(), "kid", "a"), sign(jwa.ES384(), ec384, claims())
	for _, token := range []string{named, nameless} {
		if status, _ := ask(t, v, token); status != 503 {
			t.Errorf("got %d", status)
		}
	}
	if status, _ := ask(t, v, raw(`{"alg":"none"}`, "{}", unsigned)); status != 401 {
		t.Errorf("none: got %d", status)
	}
	set.code.Store(200)
	for _, token := range []string{nameless, named} {
		if status, _ := ask(t, v, token); status != 200 {
			t.Errorf("got %d", status)
		}
	}
}

// A regular refresh takes a key away, without any request.
func TestRefresh(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"), published(rsaKey.Public(), "b"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Refresh: 5 * time.Millisecond})
	token := sign(jwa.ES256(), ec256, claims(), "kid", "a")
	if status, _ := ask(t, v, token); status != 200 {
		t.Fatalf("got %d", status)
	}
	set.publish(published(rsaKey.Public(), "b"))
	engines.Eventually(t, "the key is gone", func() bool {
		status, _ := ask(t, v, token)
		return status == 401
	})
}

func TestRoutes(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, handler(v))
		s.Expect(t, "GET", "/me", "", 200, "ann, issued by https://issuer.example/\n", "Authorization", "Bearer "+sign(jwa.ES256(), ec256, claims(), "kid", "a"))
		res := s.Expect(t, "GET", "/me", "", 401, "Unauthorized\n", "Authorization", "Bearer x")
		if got := res.Header.Get("WWW-Authenticate"); got != `Bearer realm="api", error="invalid_token"` {
			t.Errorf("got %q", got)
		}
		s.Expect(t, "POST", "/me", "", 405, "Method Not Allowed\n")
	})
}
