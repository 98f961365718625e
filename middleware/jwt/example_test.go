package jwt_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/jwt"
	issuer "github.com/golang-jwt/jwt/v5"
)

// A handler gets the claims of tokens that were verified with a shared secret.
func Example() {
	secret := []byte("0123456789abcdef0123456789abcdef")
	v, err := jwt.New(&jwt.Options{
		Keys:   []jwt.Key{{Algorithm: "HS256", Key: secret}},
		Issuer: "https://issuer.example/", Audience: []string{"my-api"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	h := v.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("hello,", middleware.UserOf(r.Context()), jwt.ClaimsOf(r.Context())["scope"])
	}))

	token, err := issuer.NewWithClaims(issuer.SigningMethodHS256, issuer.MapClaims{
		"iss": "https://issuer.example/", "aud": "my-api", "sub": "ann", "scope": "read", "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString(secret)
	if err != nil {
		log.Fatal(err)
	}
	for _, credentials := range []string{"", "Bearer " + token} {
		r := httptest.NewRequest("GET", "/", nil)
		if credentials != "" {
			r.Header.Set("Authorization", credentials)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// hello, ann read
	// 200
}

// The keys of an issuer are fetched and refreshed.
func ExampleNew() {
	v, err := jwt.New(&jwt.Options{
		JWKS: "https://issuer.example/.well-known/jwks.json", Issuer: "https://issuer.example/", Audience: []string{"my-api"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	http.Handle("/", v.Wrap(http.NotFoundHandler()))
}
