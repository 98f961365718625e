// Package basicauth provides middleware for HTTP's Basic authentication (RFC
// 7617) with passwords that are stored as hashes of bcrypt or Argon2id.
//
//	auth, err := basicauth.New(&basicauth.Options{Users: map[string]string{"admin": "$2a$10$..."}})
//	h = auth(h)
//
// [Hash] makes such a hash, and so does htpasswd -nB NAME; [HashArgon2id] makes one of Argon2id.
package basicauth

// The package is apart from package middleware because bcrypt is in
// golang.org/x/crypto. It must not depend on servers. Any package may import it.
