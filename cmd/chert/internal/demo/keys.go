package demo

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware"
	chertjwt "github.com/chert-http/chert/middleware/jwt"
	"github.com/golang-jwt/jwt/v5"
)

// keys are the accepted credentials. They are random and are lost with the
// process.
type keys struct {
	bearer   string
	secret   []byte // of the signatures of JWTs
	verifier *chertjwt.Verifier
}

const (
	issuer    = "chert demo"
	tokenLife = 24 * time.Hour
)

func newKeys() (*keys, error) {
	k := &keys{bearer: rand.Text(), secret: make([]byte, 32)}
	rand.Read(k.secret) // it never fails
	var err error
	k.verifier, err = chertjwt.New(&chertjwt.Options{
		Keys:   []chertjwt.Key{{Algorithm: "HS256", Key: k.secret}},
		Issuer: issuer, Audience: []string{issuer},
		Realm: "demo", Logger: slog.New(slog.DiscardHandler),
	})
	return k, err
}

func (k *keys) close() { k.verifier.Close() }

// issue makes a JSON Web Token.
func (k *keys) issue(now time.Time) (string, error) {
	return jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Issuer: issuer, Subject: "jwt", Audience: jwt.ClaimStrings{issuer},
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)),
	}).SignedString(k.secret)
}

// require is middleware that admits requests with either kind of token.
func (k *keys) require(next http.Handler) http.Handler {
	fixed := middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"bearer": k.bearer},
		Realm: "demo"}))
	return either{fixed(next).(direct.Handler), k.verifier.Wrap(next).(direct.Handler)}
}

// either passes a request to the handler for its kind of token. Only a JWT has
// a dot in it.
type either struct{ bearer, jwt direct.Handler }

// ServeDirect implements direct.Handler.
func (e either) ServeDirect(x *direct.Exchange) bool {
	return e.of(string(x.RequestHeader("Authorization"))).ServeDirect(x)
}

// ServeHTTP implements http.Handler.
func (e either) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.of(r.Header.Get("Authorization")).ServeHTTP(w, r)
}

func (e either) of(authorization string) direct.Handler {
	if strings.Contains(authorization, ".") {
		return e.jwt
	}
	return e.bearer
}

// token issues a token to every client: it is a demonstration.
func (d *Demo) token(w http.ResponseWriter, _ *http.Request) {
	t, err := d.JWT()
	if err != nil {
		http.Error(w, "no token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store, no-transform")
	w.Write([]byte(t + "\n"))
}
