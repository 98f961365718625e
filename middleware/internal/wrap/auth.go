package wrap

import (
	"bytes"
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

// NewAuth makes the responses. It is an error if realm is not printable ASCII.
func NewAuth(realm string) (*Auth, error) {
	quoted, err := QuoteRealm(realm)
	if err != nil {
		return nil, err
	}
	challenge := "Bearer realm=" + quoted
	return &Auth{
		Missing: Refusal(http.StatusUnauthorized, "Www-Authenticate", challenge),
		Invalid: Refusal(http.StatusUnauthorized, "Www-Authenticate", challenge+`, error="invalid_token"`),
		Several: Refusal(http.StatusBadRequest, "Www-Authenticate", challenge+`, error="invalid_request"`),
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

// Refusal returns a response with the status as text; fields are names and values.
func Refusal(status int, fields ...string) *direct.Response {
	h := http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
	}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return direct.NewResponse(status, h, []byte(http.StatusText(status)+"\n"))
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

// parse reads
//
//	credentials = "Bearer" 1*SP b64token
//
// Another scheme is treated as none. EqualFold knows no other letters for those of
// "Bearer" than ASCII's.
func (a *Auth) parse(b []byte) (token []byte, refused *direct.Response) {
	const scheme = "Bearer"
	if len(b) <= len(scheme) || b[len(scheme)] != ' ' || string(b[:len(scheme)]) != scheme &&
		!bytes.EqualFold(b[:len(scheme)], []byte(scheme)) {
		return nil, a.Missing
	}
	b = bytes.TrimLeft(b[len(scheme):], " ")
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
