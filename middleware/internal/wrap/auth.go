package wrap

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// Auth is what is common to bearer tokens of all kinds: where they are, and how
// a request without a good one is answered (RFC 6750 section 3).
type Auth struct {
	Missing *direct.Response // 401, without an error code: nothing was tried
	Invalid *direct.Response // 401, invalid_token
	Several *direct.Response // 400, invalid_request
	// Known: tokens are only compared with some that have the syntax, so it is
	// not looked at.
	Known bool
}

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

// QuoteRealm is realm as a quoted-string (RFC 9110 section 5.6.4). It is an
// error if realm is not printable ASCII.
func QuoteRealm(realm string) (string, error) {
	for i := 0; i < len(realm); i++ {
		if realm[i] < ' ' || realm[i] >= 0x7f {
			return "", fmt.Errorf("the realm %q is not printable ASCII", realm)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(realm) + `"`, nil
}

// Refusal is an answer with a challenge.
func Refusal(status int, challenge string) *direct.Response {
	return direct.NewResponse(status, http.Header{
		"Content-Type":           {"text/plain; charset=utf-8"},
		"X-Content-Type-Options": {"nosniff"},
		"Cache-Control":          {"no-store"},
		"Www-Authenticate":       {challenge},
	}, []byte(http.StatusText(status)+"\n"))
}

// Token finds the token of a request, or how to refuse it. token is the server's.
func (a *Auth) Token(f wire.Fields) (token []byte, refused *direct.Response) {
	value, n := f.First("Authorization")
	switch n {
	case 0:
		return nil, a.Missing
	case 1:
		return a.parse(value)
	}
	// The first would count for one program and the last for another.
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
// Another scheme is as good as none.
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
