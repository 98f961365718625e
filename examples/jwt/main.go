// Command jwt responds with the claims of a JSON Web Token.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/jwt"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	jwks := flag.String("jwks", "", "address of the issuer's keys")
	issuer := flag.String("issuer", "", "the issuer of the tokens")
	audience := flag.String("audience", "example", "for whom the tokens are")
	flag.Parse()
	if *jwks == "" || *issuer == "" {
		log.Fatal("-jwks and -issuer are required, such as -jwks https://issuer.example/jwks.json -issuer https://issuer.example/")
	}
	v, err := jwt.New(&jwt.Options{JWKS: *jwks, Issuer: *issuer, Audience: []string{*audience}})
	if err != nil {
		log.Fatal(err)
	}
	defer v.Close()
	access := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: os.Stdout})
	defer access.Close()
	srv := &chert.Server{Handler: middleware.Chain(handler(v), access.Wrap, middleware.Recover(nil))}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("curl -H 'Authorization: Bearer ...' http://%s/me\n", l.Addr())
	err = chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) })
	if err != nil {
		access.Close() // Fatal calls no deferred function
		log.Fatal(err)
	}
}

func handler(v *jwt.Verifier) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /me", v.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s, issued by %v\n", middleware.UserOf(r.Context()), jwt.ClaimsOf(r.Context())["iss"])
	})))
	return mux
}
