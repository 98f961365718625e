//go:debug rsa1024min=0

package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/middleware/jwt"
	"github.com/lestrrat-go/jwx/v3/jwa"
)

func hs256(key []byte) func(string) []byte {
	return func(s string) []byte {
		h := hmac.New(sha256.New, key)
		io.WriteString(h, s)
		return h.Sum(nil)
	}
}

// es384 signs as ES384 does, with any key.
func es384(key *ecdsa.PrivateKey) func(string) []byte {
	return func(signed string) []byte {
		h := crypto.SHA384.New()
		io.WriteString(h, signed)
		r, s, err := ecdsa.Sign(rand.Reader, key, h.Sum(nil))
		if err != nil {
			panic(err)
		}
		sig := make([]byte, 96)
		r.FillBytes(sig[:48])
		s.FillBytes(sig[48:])
		return sig
	}
}

func certificate(key *rsa.PrivateKey) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	return must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
}

// otherBits spells the same bytes of base64 in another way: 64 bytes leave four
// bits over.
func otherBits(s string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, s[len(s)-1])
	return s[:len(s)-1] + string(alphabet[last|1])
}

func TestRefused(t *testing.T) {
	set := newIssuer(t, allKeys()...)
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Keys: []jwt.Key{{ID: "shared", Algorithm: "HS256", Key: secret}}})
	typed := verifier(t, jwt.Options{JWKS: set.srv.URL, Type: "at+jwt"})
	strict := verifier(t, jwt.Options{JWKS: set.srv.URL, Leeway: -1})
	only := verifier(t, jwt.Options{JWKS: set.srv.URL, Algorithms: []string{"ES256"}})
	weakSet := newIssuer(t, allKeys()...)
	withSmall := strings.Replace(*weakSet.set.Load(), `"keys":[`, `"keys":[{"kty":"RSA","kid":"small","e":"AQAB","n":"`+base64.RawURLEncoding.EncodeToString(small.N.Bytes())+`"},`, 1)
	weakSet.set.Store(&withSmall)
	weak := verifier(t, jwt.Options{JWKS: weakSet.srv.URL})
	if status, _ := ask(t, weak, sign(jwa.ES256(), ec256, claims(), "kid", "ec256")); status != 200 {
		t.Fatalf("a set with a small key: %d", status)
	}
	attackers := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a token made us ask for %s", r.URL)
	}))
	defer attackers.Close()
	eternal := verifier(t, jwt.Options{JWKS: set.srv.URL, AllowEternal: true})
	twice := verifier(t, jwt.Options{JWKS: newIssuer(t, published(rsaKey.Public(), "k"), published(ec256.Public(), "k")).srv.URL})
	pinned := verifier(t, jwt.Options{Keys: []jwt.Key{
		{ID: "a", Algorithm: "HS256", Key: secret}, {ID: "b", Algorithm: "HS384", Key: []byte(strings.Repeat("x", 48))},
		{Algorithm: "RS256", Key: rsaKey.Public()}, {Algorithm: "PS256", Key: otherRSA.Public()},
	}})
	// The forms of the issuer's public key, which attackers have.
	der := must(x509.MarshalPKIXPublicKey(rsaKey.Public()))
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	payload := string(must(json.Marshal(claims())))
	good := sign(jwa.ES256(), ec256, claims(), "kid", "ec256")
	mixed := func(claims string) string { return raw(`{"alg":"RS256","kid":"rsa"}`, claims, rs256(rsaKey)) }
	own := string(must(json.Marshal(published(otherRSA.Public(), "x"))))
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
		{"nOnE", v, raw(`{"alg":"nOnE"}`, payload, unsigned)},
		{"none with a space", v, raw(`{"alg":"none "}`, payload, unsigned)},
		{"none with a zero", v, raw(`{"alg":"none\u0000"}`, payload, unsigned)},
		{"none with a signature", v, raw(`{"alg":"none","kid":"rsa"}`, payload, rs256(rsaKey))},
		{"none after RS256", v, raw(`{"alg":"RS256","alg":"none","kid":"rsa"}`, payload, unsigned)},
		{"none before RS256", v, raw(`{"alg":"none","alg":"RS256","kid":"rsa"}`, payload, unsigned)},
		{"none, fixed keys only", verifier(t, jwt.Options{Keys: []jwt.Key{{Algorithm: "HS256", Key: secret}}}), raw(`{"alg":"none"}`, payload, unsigned)},
		{"rs256", v, raw(`{"alg":"rs256","kid":"rsa"}`, payload, rs256(rsaKey))},
		{"RS256 with a space", v, raw(`{"alg":"RS256 ","kid":"rsa"}`, payload, rs256(rsaKey))},
		{"alg a number", v, raw(`{"alg":1,"kid":"rsa"}`, payload, rs256(rsaKey))},
		{"ALG", v, raw(`{"ALG":"RS256","kid":"rsa"}`, payload, rs256(rsaKey))},
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
		{"HS256 with the JWK", v, sign(jwa.HS256(), must(json.Marshal(published(rsaKey.Public(), "rsa"))), claims(), "kid", "rsa")},
		{"HS256 with the EC key", v, sign(jwa.HS256(), must(ec256.PublicKey.Bytes()), claims(), "kid", "ec256")},
		{"HS256 with PEM, by name of the secret", v, sign(jwa.HS256(), pemKey, claims(), "kid", "shared")},
		{"HS256 with nothing", v, raw(`{"alg":"HS256","kid":"rsa"}`, payload, hs256(nil))},
		{"HS256 with nothing, by name of the secret", v, raw(`{"alg":"HS256","kid":"shared"}`, payload, hs256(nil))},
		{"HS384 with the secret for HS256", v, sign(jwa.HS384(), secret, claims(), "kid", "shared")},
		{"HS384 with the secret for HS256, where another is for that", pinned, sign(jwa.HS384(), secret, claims(), "kid", "a")},
		{"the same, no kid", pinned, sign(jwa.HS384(), secret, claims())},
		{"PS256 with the key for RS256, where another is for that", pinned, sign(jwa.PS256(), rsaKey, claims())},
		{"a published secret", only, sign(jwa.HS256(), secret, claims(), "kid", "oct")},
		{"a published secret, no kid", typed, sign(jwa.HS256(), secret, claims(), "typ", "at+jwt")},
		{"another algorithm of the key", v, sign(jwa.RS384(), rsaKey, claims(), "kid", "rs256-only")},
		{"PS for an RS key", v, sign(jwa.PS256(), rsaKey, claims(), "kid", "rs256-only")},
		{"an algorithm that is not allowed", only, sign(jwa.RS256(), rsaKey, claims(), "kid", "rsa")},
		{"RS256 by name of an EC key", v, sign(jwa.RS256(), rsaKey, claims(), "kid", "ec256")},
		// A signature with P-256 that is as long as one with P-384 (RFC 7518 section 3.4).
		{"ES384 with P-256", v, raw(`{"alg":"ES384","kid":"ec256"}`, payload, es384(ec256))},
		{"ES384 with P-256, no kid", v, raw(`{"alg":"ES384"}`, payload, es384(ec256))},
		{"ES384 with P-521", v, raw(`{"alg":"ES384","kid":"ec521"}`, payload, es384(ec256))},
		{"EdDSA by name of an RSA key", v, sign(jwa.EdDSA(), edKey, claims(), "kid", "rsa")},
		{"RSA of 1024 bits", weak, raw(`{"alg":"RS256","kid":"small"}`, payload, rs256(small))},
		{"RSA of 1024 bits, no kid", weak, raw(`{"alg":"RS256"}`, payload, rs256(small))},
		{"ES256K", v, raw(`{"alg":"ES256K","kid":"ec256"}`, payload, func(string) []byte { return make([]byte, 64) })},
		// Other keys.
		{"another's key", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "rsa")},
		{"another's key, no kid", v, sign(jwa.RS256(), otherRSA, claims())},
		{"a key for encryption", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "enc")},
		{"an unknown key", v, sign(jwa.RS256(), otherRSA, claims(), "kid", "unknown")},
		{"another's Ed25519 key", v, sign(jwa.EdDSA(), ed2, claims(), "kid", "ed")},
		{"another's key, the name twice", twice, sign(jwa.RS256(), otherRSA, claims(), "kid", "k")},
		{"the name twice, the algorithm of neither", twice, sign(jwa.EdDSA(), edKey, claims(), "kid", "k")},
		{"kid empty", v, raw(`{"alg":"RS256","kid":""}`, payload, rs256(otherRSA))},
		{"kid null", v, raw(`{"alg":"RS256","kid":null}`, payload, rs256(rsaKey))},
		{"kid in another case", v, sign(jwa.RS256(), rsaKey, claims(), "kid", "RSA")},
		{"KID", v, raw(`{"alg":"RS256","kid":"x","KID":"rsa"}`, payload, rs256(rsaKey))},
		{"kid for SQL", v, sign(jwa.HS256(), []byte("x"), claims(), "kid", "' UNION SELECT 'x")},
		{"its own key in jwk, with kid", v, raw(`{"alg":"RS256","kid":"rsa","jwk":`+own+`}`, payload, rs256(otherRSA))},
		{"its own key in x5c", v, raw(`{"alg":"RS256","kid":"rsa","x5c":["`+base64.StdEncoding.EncodeToString(certificate(otherRSA))+`"]}`, payload, rs256(otherRSA))},
		{"its own key in jwk", v, raw(`{"alg":"RS256","jwk":`+string(must(json.Marshal(published(otherRSA.Public(), ""))))+`}`, payload, rs256(otherRSA))},
		{"its own key at jku", v, raw(`{"alg":"RS256","kid":"x","jku":"`+attackers.URL+`"}`, payload, rs256(otherRSA))},
		{"its own key at x5u", v, raw(`{"alg":"RS256","kid":"x","x5u":"`+attackers.URL+`"}`, payload, rs256(otherRSA))},
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
		{"unencoded payload, not critical", v, raw(`{"alg":"RS256","kid":"rsa","b64":false}`, payload, rs256(rsaKey))},
		{"b64 a string", v, raw(`{"alg":"RS256","kid":"rsa","b64":"true"}`, payload, rs256(rsaKey))},
		{"critical null", v, raw(`{"alg":"RS256","kid":"rsa","crit":null}`, payload, rs256(rsaKey))},
		{"critical what is known", v, raw(`{"alg":"RS256","kid":"rsa","crit":["exp"],"exp":1}`, payload, rs256(rsaKey))},
		// Claims.
		{"expired", v, es("exp", now.Add(-time.Hour))},
		{"just expired", v, es("exp", now.Add(-30*time.Second))},
		{"just expired, no leeway", strict, es("exp", now)},
		{"exp 0", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":0}`)},
		{"exp 0, where none is needed", eternal, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":0}`)},
		{"exp negative", eternal, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":-1}`)},
		{"exp after the end of time", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1e300}`)},
		{"exp in milliseconds", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1800000000000}`)},
		{"exp too large for any number", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1e400}`)},
		{"exp twice, the last is past", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"exp":1}`)},
		{"expired, where exp is not needed", eternal, es("exp", now.Add(-time.Hour))},
		{"nbf after the end of time", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"nbf":1e300}`)},
		{"nbf null", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"nbf":null}`)},
		{"issued in the future", v, es("iat", now.Add(time.Hour))},
		{"just not issued", v, es("iat", now.Add(31*time.Second))},
		{"just not issued, no leeway", strict, es("iat", now.Add(time.Second))},
		{"iat a string", v, mixed(`{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"iat":"0"}`)},
		{"expired without leeway", strict, es("exp", now.Add(-time.Second))},
		{"no exp", v, es("exp", nil)},
		{"exp a string", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":"1900000000"}`, rs256(rsaKey))},
		{"exp null", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":null}`, rs256(rsaKey))},
		{"not yet valid", v, es("nbf", now.Add(time.Hour))},
		{"just not valid", v, es("nbf", now.Add(31*time.Second))},
		{"nbf a string", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"nbf":"0"}`, rs256(rsaKey))},
		{"wrong audience", v, es("aud", "other")},
		{"wrong audiences", v, es("aud", []string{"other", "another"})},
		{"audience in a list in a list", v, mixed(`{"iss":"https://issuer.example/","aud":[["api"]],"exp":1900000000}`)},
		{"audience beside a number", v, mixed(`{"iss":"https://issuer.example/","aud":["api",1],"exp":1900000000}`)},
		{"audience an object", v, mixed(`{"iss":"https://issuer.example/","aud":{"api":true},"exp":1900000000}`)},
		{"audiences in one string", v, es("aud", "other api")},
		{"audience empty string", v, es("aud", "")},
		{"audience in another case", v, es("aud", "API")},
		{"audience a beginning", v, es("aud", "ap")},
		{"no audience", v, es("aud", nil)},
		{"audience empty", v, es("aud", []string{})},
		{"audience a number", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":1,"exp":1900000000}`, rs256(rsaKey))},
		{"wrong issuer", v, es("iss", "https://evil.example/")},
		{"issuer without its slash", v, es("iss", "https://issuer.example")},
		{"issuer a list", v, mixed(`{"iss":["https://issuer.example/"],"aud":"api","exp":1900000000}`)},
		{"issuer empty", v, mixed(`{"iss":"","aud":"api","exp":1900000000}`)},
		{"issuer in another case", v, es("iss", "https://ISSUER.example/")},
		{"no issuer", v, es("iss", nil)},
		{"sub a number", v, raw(`{"alg":"RS256","kid":"rsa"}`, `{"iss":"https://issuer.example/","aud":"api","exp":1900000000,"sub":1}`, rs256(rsaKey))},
		{"another type", typed, sign(jwa.ES256(), ec256, claims(), "kid", "ec256", "typ", "JWT")},
		// No tokens.
		{"no parts", v, "x"}, {"two parts", v, parts[0] + "." + parts[1]}, {"four parts", v, good + ".x"}, {"five parts", v, "a.b.c.d.e"},
		{"a dot before", v, "." + good}, {"a dot after", v, good + "."}, {"two dots within", v, strings.Replace(good, ".", "..", 1)},
		{"a space after the dot", v, strings.Replace(good, ".", ". ", 1)}, {"a tab", v, strings.Replace(good, ".", "\t.", 1)}, {"quoted", v, `"` + good + `"`},
		{"two with a comma", v, good + "," + good}, {"two with a space", v, good + " " + good}, {"the scheme twice", v, "Bearer " + good},
		{"head padded", v, parts[0] + "=." + parts[1] + "." + parts[2]}, {"standard base64", v, strings.Replace(good, parts[2], "+/"+parts[2][2:], 1)},
		{"other bits after the end", v, parts[0] + "." + parts[1] + "." + otherBits(parts[2])},
		{"empty", v, ""}, {"empty parts", v, ".."}, {"padded", v, parts[0] + "." + parts[1] + "." + parts[2] + "="}, {"no JSON", v, raw("x", payload, unsigned)},
		{"head a list", v, raw(`["RS256"]`, payload, unsigned)}, {"head null", v, raw(`null`, payload, unsigned)},
		{"claims a list", v, raw(`{"alg":"RS256","kid":"rsa"}`, `[1]`, rs256(rsaKey))},
		{"claims null", v, raw(`{"alg":"RS256","kid":"rsa"}`, `null`, rs256(rsaKey))},
		{"claims nothing", v, raw(`{"alg":"RS256","kid":"rsa"}`, ``, rs256(rsaKey))},
		{"claims deep", v, mixed(`{"x":` + strings.Repeat(`[`, 5500) + strings.Repeat(`]`, 5500) + `}`)},
		{"huge", v, sign(jwa.ES256(), ec256, claims("x", strings.Repeat("x", 20000)), "kid", "ec256")},
	} {
		if status, body := ask(t, tt.v, tt.token); status != 401 || strings.Contains(body, "ann") {
			t.Errorf("%s: got %d %q", tt.name, status, body)
		}
	}
}
