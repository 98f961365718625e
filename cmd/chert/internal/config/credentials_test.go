package config

import "testing"

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
