package wrap

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// Auth implements what bearer tokens of all kinds have in common: where they
// are found, and the response to a request without a valid one (RFC 6750
// section 3).
type Auth struct {
	Missing *direct.Response // 401, without an error code: nothing was tried
	Invalid *direct.Response // 401, invalid_token
	Several *direct.Response // 400, invalid_request
	// Known skips the check of the syntax, for tokens that are compared only
	// with known ones, whose syntax is valid.
	Known bool
}

// DefaultRealm is the realm of all middleware that has none of its own.
const DefaultRealm = "restricted"

// NewAuth makes the answers. It is an error if realm is not printable ASCII.
func NewAuth(realm string) (*Auth, error) {
	quoted, err := QuoteRealm(realm)
	if err != nil {
		return nil, err
	}
	challenge := "Bearer realm=" + quoted
	return &Auth{
		Missing: Refusal(http.StatusUnauthorized, challenge),
		Invalid: Refusal(http.StatusUnauthorized, challenge+`, error="invalid_token"`),
		Several: Refusal(http.StatusBadRequest, challenge+`, error="invalid_request"`),
	}, nil
}

// QuoteRealm is realm, by default DefaultRealm, as a quoted-string (RFC 9110 section
// 5.6.4). It is an error if realm is not printable ASCII.
func QuoteRealm(realm string) (string, error) {
	if realm == "" {
		realm = DefaultRealm
	}
	for i := 0; i < len(realm); i++ {
		if realm[i] < ' ' || realm[i] >= 0x7f {
			return "", fmt.Errorf("%q is not printable ASCII", realm)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(realm) + `"`, nil
}

// Refusal is a response with a challenge.
func Refusal(status int, challenge string) *direct.Response {
	return direct.NewResponse(status, http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
		"Www-Authenticate":       {challenge},
	}, []byte(http.StatusText(status)+"\n"))
}

// Token returns the token of a request, a view of the server's buffer, or the
// refusal.
func (a *Auth) Token(f wire.Fields) (token []byte, refused *direct.Response) {
	value, n := f.First("Authorization")
	switch n {
	case 0:
		return nil, a.Missing
	case 1:
		return a.parse(value)
	}
	// One program would use the first and another the last.
	return nil, a.Several
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// parse reads
//
//	credentials = "Bearer" 1*SP b64token
//
// Another scheme is treated as none.
func (a *Auth) parse(b []byte) (token []byte, refused *direct.Response) {
	const scheme = "bearer"
	if len(b) <= len(scheme) || b[len(scheme)] != ' ' || string(b[:len(scheme)]) != "Bearer" && !equalFold(b[:len(scheme)], scheme) {
		return nil, a.Missing
	}
	for b = b[len(scheme):]; len(b) > 0 && b[0] == ' '; b = b[1:] {
	}
	if !a.Known && !TokenSyntax(b) {
		return nil, a.Invalid
	}
	return b, nil
}

// TokenSyntax reports whether b is
//
//	b64token = 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="
func TokenSyntax(b []byte) bool {
	end := len(b)
	for end > 0 && b[end-1] == '=' {
		end--
	}
	for _, c := range b[:end] {
		if c >= 0x80 || !tokenByte[c] {
			return false
		}
	}
	return end > 0
}

var tokenByte = func() (t [128]bool) {
	const all = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/"
	for i := range len(all) {
		t[all[i]] = true
	}
	return t
}()
