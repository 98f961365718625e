package config

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestCredentialProblems(t *testing.T) {
	t.Parallel()
	const tls = "tls_self = true\nclient_ca = 'ca.pem'\n"
	for _, tt := range []struct{ text, want string }{
		{`client_certificate = "required"`, "4:1: client_certificate needs client_ca of the site, the authorities of clients"},
		{tls + `client_certificate = "maybe"`, `6:22: client_certificate wants "required", "optional", or a list of names that are admitted`},
		{tls + `client_certificate = []`, `6:1: client_certificate is empty; want names, or "required" for any certificate`},
		{tls + `client_certificate = ["a",` + "\n" + ` "a.*"]`, `7:2: client_certificate: "a.*": a "*" is only a first label, as in "*.example.com"`},
		{tls + `client_certificate = true`, "6:22: client_certificate wants a string or a list of strings, not true or false"},
		{tls + "[[site.route]]\npath = '/a'\nrespond = 200\nclient_certificate = 'optional'",
			`9:22: the site requires a certificate of every client; want client_certificate = "optional" there`},
		{"[[site.route]]\npath = '/a'\nrespond = 200\nclient_certificate = 'required'", "7:1: client_certificate needs client_ca of the site, the authorities of clients"},

		{`jwt = true`, "4:7: jwt wants a table with jwks or key, or false"},
		{`jwt = {}`, `4:1: [site.jwt]: it has no keys; want jwks = "https://...", where they are published, or key`},
		{`jwt = { jwks = "https://a/" }`, "4:1: [site.jwt]: want issuer, or any_issuer = true"},
		{`jwt = { jwks = "https://a/", issuer = "i" }`, "4:1: [site.jwt]: want audience, or any_audience = true"},
		{`jwt = { jwks = "https://a/", issuer = "i", any_issuer = true, audience = "a" }`, "4:1: [site.jwt]: want issuer or any_issuer, not both"},
		{`jwt = { jwks = "http://a/", issuer = "i", audience = "a" }`, `4:1: [site.jwt]: jwks: "http://a/" is not https`},
		{`jwt = { jwks = "https://a/", issuer = "i", audience = "a", algorithms = "HS256" }`, `4:1: [site.jwt]: algorithm "HS256" is not for published keys`},
		{`jwt = { jwks = "https://a/", issuer = "i", audience = "a", realm = "ä" }`, "4:1: [site.jwt]: realm: \"ä\" is not printable ASCII"},
		{`jwt = { key = "gone.pem", algorithms = "RS256", issuer = "i", audience = "a" }`, `4:15: key: "gone.pem": no such file`},
		{`jwt = { key = "gone.pem", issuer = "i", audience = "a" }`, `4:1: [site.jwt] has a key; want algorithms, the one that it is for, such as "RS256"`},
		{`jwt = { jwks = "https://a/", issuer = "i", audience = "a", isuer = "" }`, `4:60: unknown key "isuer" in [site.jwt]; did you mean "issuer"?`},
		{`jwt = { jwks = "https://a/", issuer = "i", audience = "a", leeway = 3 }`, `4:69: leeway wants a time such as "30s" or "1m30s"`},
		{"basic_auth = { users = { a = '$2a$04$k3PMdLXmKPFdyx3I5A5JLOVs4Ow3WtJ7qzqkI2WqL1m4m0Nn3mF3K' } }\njwt = { jwks = 'https://a/', issuer = 'i', audience = 'a' }",
			"1:3: [[site]] has basic_auth and jwt, and a request has one of them; basic_auth = false or jwt = false leaves one out"},
	} {
		got := problemsOf(t, "[[site]]\nhosts = '*'\nroot = 'www'\n"+tt.text+"\n")
		if len(got) == 0 || got[len(got)-1] != tt.want {
			t.Errorf("%s:\ngot  %q\nwant %s", tt.text, got, tt.want)
		}
	}
}

func TestTokenKeys(t *testing.T) {
	t.Parallel()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	publicKey := text("PUBLIC KEY", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(private)
	privateKey := text("PRIVATE KEY", der, err)
	secret := strings.Repeat("s", 64) + "\n"
	for _, tt := range []struct{ name, key, algorithms, want string }{
		{"public", publicKey, `"EdDSA"`, ""},
		{"secret", secret, `["HS256", "HS512"]`, ""},
		{"private", privateKey, `"EdDSA"`, "KEY is a private key; want the public one, which verifies"},
		{"a secret as a public key", secret, `"EdDSA"`, "KEY has no public key in PEM"},
		{"a public key as a secret", publicKey, `"HS256"`, "KEY has a key in PEM; HS256 wants a secret"},
		{"as both", "a comment\n" + publicKey, `["EdDSA", "HS384"]`, "KEY has a key in PEM; HS384 wants a secret"},
		{"a private key as a secret", privateKey, `"HS512"`, "KEY has a key in PEM; HS512 wants a secret"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tt.key), 0o600); err != nil {
				t.Fatal(err)
			}
			var want []string
			if tt.want != "" {
				want = []string{"4:15: key: " + strings.Replace(tt.want, "KEY", strconv.Quote(file), 1)}
			}
			got := problemsOf(t, "[[site]]\nhosts = '*'\nroot = 'www'\njwt = { key = '"+file+"', algorithms = "+tt.algorithms+
				", issuer = 'i', audience = 'a' }\n")
			if !slices.Equal(got, want) {
				t.Errorf("\ngot  %q\nwant %q", got, want)
			}
		})
	}
}
