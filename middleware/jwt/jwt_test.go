package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/user"
	"github.com/golang-jwt/jwt/v5"
)

// The table of tokens that are refused, made by another library, is in
// examples/jwt.

var secret = []byte("0123456789abcdef0123456789abcdef")

func quiet(o Options) *Options {
	o.Logger = slog.New(slog.DiscardHandler)
	return &o
}

// Logger gets why a request is refused, also if there is no token to verify.
func TestRefusalsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	v, err := New(&Options{Keys: []Key{{Algorithm: "HS256", Key: secret}}, AnyIssuer: true, AnyAudience: true,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	h := v.Wrap(http.NotFoundHandler())
	for _, tt := range []struct {
		authorization []string
		status        int
		want          string
	}{
		{nil, 401, "there is no bearer token in Authorization"},
		{[]string{"Token x"}, 401, "there is no bearer token in Authorization"},
		{[]string{"Bearer \"x\""}, 401, "the bearer token has other characters than one may have"},
		{[]string{"Bearer x", "Bearer x"}, 400, "there are several fields Authorization"},
		{[]string{"Bearer x"}, 401, "token is malformed"},
	} {
		log.Reset()
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header["Authorization"] = tt.authorization
		h.ServeHTTP(w, r)
		if got := log.String(); w.Code != tt.status || strings.Count(got, "\n") != 1 ||
			!strings.Contains(got, `level=DEBUG msg="token refused" error="`+tt.want) {
			t.Errorf("%q: %d, logged %s", tt.authorization, w.Code, got)
		}
	}
}

func TestOptions(t *testing.T) {
	edPub, _, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	der, _ := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	off := &ecdsa.PublicKey{Curve: elliptic.P256()}
	//lint:ignore SA1019 no function makes a wrong key
	off.X, off.Y = ec.X, ec.X
	odd := new(big.Int).SetBit(new(big.Int).Lsh(big.NewInt(1), 2047), 0, 1)
	small := &rsa.PublicKey{N: ec.X, E: 65537}
	good := Options{Keys: []Key{{Algorithm: "HS256", Key: secret}}, Issuer: "i", Audience: []string{"a"}}
	with := func(f func(o *Options)) Options { o := good; f(&o); return o }
	key := func(alg string, key any) Options {
		return with(func(o *Options) { o.Keys = []Key{{Algorithm: alg, Key: key}} })
	}
	for _, tt := range []struct {
		name string
		o    Options
		ok   bool
	}{
		{"good", good, true},
		{"nothing", Options{}, false},
		{"no keys", with(func(o *Options) { o.Keys = nil }), false},
		{"no issuer", with(func(o *Options) { o.Issuer = "" }), false},
		{"any issuer", with(func(o *Options) { o.Issuer, o.AnyIssuer = "", true }), true},
		{"no audience", with(func(o *Options) { o.Audience = nil }), false},
		{"any audience", with(func(o *Options) { o.Audience, o.AnyAudience = nil, true }), true},
		{"an empty audience", with(func(o *Options) { o.Audience = []string{""} }), false},
		{"short secret", key("HS256", secret[:31]), false},
		{"a secret too short for HS512", key("HS512", secret), false},
		{"a secret for RS256", key("RS256", secret), false},
		{"a public key for HS256", key("HS256", edPub), false},
		{"a public key in PEM for HS256", key("HS256", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), false},
		{"a certificate in PEM for HS512", key("HS512", append([]byte("# issuer\n"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)), false},
		{"a public key in DER for HS256", key("HS256", der), false},
		{"EdDSA", key("EdDSA", edPub), true},
		{"ES256", key("ES256", &ec.PublicKey), true},
		{"the wrong curve", key("ES384", &ec.PublicKey), false},
		{"a private key", key("ES256", ec), false},
		{"a small key", key("RS256", small), false},
		{"a huge key", key("RS256", &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 8192), E: 65537}), false},
		{"an even exponent", key("RS256", &rsa.PublicKey{N: odd, E: 65536}), false},
		{"an exponent of 1", key("RS256", &rsa.PublicKey{N: odd, E: 1}), false},
		{"a curve alone", key("ES256", &ecdsa.PublicKey{Curve: elliptic.P256()}), false},
		{"a point that is not on the curve", key("ES256", off), false},
		{"a key that is nil", key("RS256", (*rsa.PublicKey)(nil)), false},
		{"an issuer, and any", with(func(o *Options) { o.AnyIssuer = true }), false},
		{"an audience, and any", with(func(o *Options) { o.AnyAudience = true }), false},
		{"no algorithms", with(func(o *Options) { o.Algorithms = []string{} }), false},
		{"none of all that may be none", with(func(o *Options) {
			o.CacheSize, o.CacheBytes, o.Leeway, o.Refresh, o.RefreshUnknown = -1, -1, -1, -1, -1
		}), true},
		{"none", key("none", jwt.UnsafeAllowNoneSignatureType), false},
		{"a string", key("HS256", string(secret)), false},
		{"no key", key("HS256", nil), false},
		{"HS of a set", with(func(o *Options) { o.Algorithms = []string{"HS256"} }), false},
		{"none of a set", with(func(o *Options) { o.Algorithms = []string{"none"} }), false},
		{"http", with(func(o *Options) { o.JWKS = "http://issuer.example/" }), false},
		{"no URL", with(func(o *Options) { o.JWKS = "jwks.json" }), false},
		{"a realm that is no field value", with(func(o *Options) { o.Realm = "a\r\nb" }), false},
		{"a file", with(func(o *Options) { o.JWKS = "file:///etc/passwd" }), false},
	} {
		v, err := New(quiet(tt.o))
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if checked := tt.o.Check(); fmt.Sprint(checked) != fmt.Sprint(err) {
			t.Errorf("%s: Check returns %v, New %v", tt.name, checked, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "jwt: ") {
			t.Errorf("%s: the error does not name the package: %v", tt.name, err)
		}
		if v != nil {
			v.Close()
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("no options are taken")
	}
}

// Changes of the caller's options after New have no effect.
func TestOptionsCopied(t *testing.T) {
	key := slices.Clone(secret)
	o := quiet(Options{Keys: []Key{{Algorithm: "HS256", Key: key}}, AnyIssuer: true, Audience: []string{"a"}, AllowEternal: true})
	v, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"aud": "a"}).SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	key[0]++
	o.Audience[0] = "b"
	o.Keys[0].Algorithm = "HS512"
	expect(t, v, "as it was", token, 200)
}

func TestWrap(t *testing.T) {
	now := time.Unix(1e9, 0)
	v, err := New(quiet(Options{Keys: []Key{{Algorithm: "HS256", Key: secret}}, Issuer: "i", Audience: []string{"a"}, Now: func() time.Time { return now }}))
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	sign := func(claims jwt.MapClaims) string {
		s, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	good := sign(jwt.MapClaims{"iss": "i", "aud": "a", "sub": "ann", "exp": now.Add(time.Minute).Unix(), "scope": "x"})
	h := v.Wrap(direct.HandlerFunc(func(x *direct.Exchange) {
		x.WriteString(user.Of(x) + " " + ClaimsOf(x)["scope"].(string))
	}))
	for _, tt := range []struct {
		name   string
		fields []string
		status int
	}{
		{"good", []string{"Bearer " + good}, 200},
		{"none", nil, 401},
		{"two", []string{"Bearer " + good, "Bearer " + good}, 400},
		{"changed", []string{"Bearer " + good[:len(good)-2] + "xx"}, 401},
		{"late", []string{"Bearer " + sign(jwt.MapClaims{"iss": "i", "aud": "a", "exp": now.Add(-time.Hour).Unix()})}, 401},
		{"sub is no string", []string{"Bearer " + sign(jwt.MapClaims{"iss": "i", "aud": "a", "sub": 1, "exp": now.Add(time.Minute).Unix()})}, 401},
		{"long", []string{"Bearer " + strings.Repeat("a", maxToken+1)}, 401},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = tt.fields
		if tt.fields == nil {
			delete(r.Header, "Authorization")
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		var x direct.Exchange
		x.Wire().Reset(wire.Request{Method: "GET", Fields: wire.FieldsOf(r.Header)})
		if !h.(direct.Handler).ServeDirect(&x) {
			t.Errorf("%s: declined", tt.name)
		}
		a := x.Wire().Finish()
		if rec.Code != tt.status || a.Status != tt.status || tt.status == 200 && (rec.Body.String() != "ann x" || string(a.Body) != "ann x") {
			t.Errorf("%s: got %d %q, direct %d %q", tt.name, rec.Code, rec.Body, a.Status, a.Body)
		}
	}
	if ClaimsOf(httptest.NewRequest("GET", "/", nil).Context()) != nil {
		t.Error("claims from nowhere")
	}
}
