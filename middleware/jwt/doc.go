// Package jwt provides middleware for JSON Web Tokens (RFC 7519) as bearer
// tokens: it verifies them with fixed keys or with those of a JWKS endpoint,
// and passes their claims to handlers.
//
//	v, err := jwt.New(&jwt.Options{
//		JWKS:     "https://issuer.example/.well-known/jwks.json",
//		Issuer:   "https://issuer.example/",
//		Audience: []string{"my-api"},
//	})
//	defer v.Close()
//	h = v.Wrap(h)
//
// It does not issue tokens.
package jwt

// The package is apart from package middleware because it needs golang-jwt and
// jwkset. It must not depend on servers. Any package may import it.
