package jwt

import (
	"strings"
	"testing"
)

// Nothing unsigned is admitted, and both ways and the cache agree.
func FuzzToken(f *testing.F) {
	good := signed("a")
	head, rest, _ := strings.Cut(good, ".")
	for _, s := range []string{good, good[:len(good)-2], head + ".." + rest, head + ".", "..", "eyJhbGciOiJub25lIn0.e30.", "", ".", "=", "\x00"} {
		f.Add(s)
	}
	o := quiet(Options{AnyIssuer: true, AnyAudience: true, AllowEternal: true, Keys: []Key{
		{ID: "a", Algorithm: "EdDSA", Key: keyOf("a").Public()}, {Algorithm: "HS256", Key: secret},
	}})
	plain, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	o.CacheSize = 10
	cached, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got := ask(t.Context(), plain, token)
		if got == 200 && strings.Trim(token, " ") != good {
			t.Errorf("%q is let in", token)
		}
		for range 2 {
			if d, c := askDirect(plain, token), askDirect(cached, token); d != got || c != got {
				t.Errorf("%q: %d, direct %d, cached %d", token, got, d, c)
			}
		}
	})
}

// Keys that are accepted can verify signatures, whatever the endpoint sends.
func FuzzSet(f *testing.F) {
	for _, s := range []string{
		setOf(jwkOf("a")), setOf(jwkOf("a", `,"d":"AAAA","x5c":["AAAA"],"key_ops":["verify"],"alg":"EdDSA"`)), `{"keys":null}`, `[]`, ``,
		setOf(`{"kty":"RSA","n":"` + strings.Repeat("_", 342) + `","e":"AQAB"}`), setOf(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`), setOf(`{"kty":"oct","k":"AAAA"}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		set, _, err := parseSet(body)
		if err != nil {
			return
		}
		if !set.equal(set) {
			t.Error("not equal to itself")
		}
		some := false
		for _, alg := range asymmetric {
			keys, _ := set.choose(alg, "", false)
			some = some || len(keys) > 0
		}
		if !some {
			t.Error("no key is for any algorithm")
		}
	})
}
