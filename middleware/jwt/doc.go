// Package jwt is middleware for JSON Web Tokens (RFC 7519) as bearer tokens: it
// verifies them with fixed keys or with those of a JWKS endpoint, and hands
// their claims to handlers.
//
//	v, err := jwt.New(&jwt.Options{
//		JWKS: "https://issuer.example/.well-known/jwks.json", Issuer: "https://issuer.example/", Audience: []string{"my-api"},
//	})
//	defer v.Close()
//	h = v.Wrap(h)
//
// It is apart from package middleware because it needs golang-jwt and jwkset.
// It issues no tokens. It must not know servers. Anything may import it.
package jwt
