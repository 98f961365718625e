package jwt

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/golang-jwt/jwt/v5"
)

// Requests on the fast path, verified and from the cache.
func BenchmarkDirect(b *testing.B) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	for _, m := range []struct {
		method jwt.SigningMethod
		key    any
	}{{jwt.SigningMethodHS256, secret}, {jwt.SigningMethodRS256, rsaKey}, {jwt.SigningMethodES256, ecKey}, {jwt.SigningMethodEdDSA, keyOf("a")}} {
		public := m.key
		if k, ok := m.key.(crypto.Signer); ok {
			public = k.Public()
		}
		token, err := jwt.NewWithClaims(m.method, jwt.MapClaims{
			"iss": "i", "aud": "a", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "scope": "read write",
		}).SignedString(m.key)
		if err != nil {
			b.Fatal(err)
		}
		for name, cache := range map[string]int{"verified": 0, "cached": 1024} {
			b.Run(m.method.Alg()+"/"+name, func(b *testing.B) {
				v, err := New(&Options{Keys: []Key{{Algorithm: m.method.Alg(), Key: public}}, Issuer: "i", Audience: []string{"a"}, CacheSize: cache})
				if err != nil {
					b.Fatal(err)
				}
				h := v.Wrap(direct.HandlerFunc(func(*direct.Exchange) {})).(direct.Handler)
				r := wire.Request{Method: "GET", Fields: wire.FieldsOf(http.Header{"Authorization": {"Bearer " + token}})}
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					var x direct.Exchange
					for pb.Next() {
						x.Wire().Reset(r)
						h.ServeDirect(&x)
						if x.Wire().Finish().Status != 200 {
							b.Error(x.Wire().Finish().Status)
						}
					}
				})
			})
		}
	}
}
