package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// issuer publishes a key, and signs tokens with it.
type issuer struct {
	t       *testing.T
	key     *ecdsa.PrivateKey
	url     string
	down    atomic.Bool
	fetches atomic.Int32
}

func newIssuer(t *testing.T) *issuer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	public, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	set := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","kid":"1","alg":"ES256","use":"sig","x":%q,"y":%q}]}`, b64(public[1:33]), b64(public[33:]))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.fetches.Add(1); i.down.Load() {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/jwk-set+json")
		fmt.Fprint(w, set)
	}))
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

func (i *issuer) token(claims jwt.MapClaims) http.Header {
	i.t.Helper()
	all := jwt.MapClaims{"iss": "me", "aud": "site", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		all[k] = v
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, all)
	token.Header["kid"] = "1"
	text, err := token.SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return http.Header{"Authorization": {"Bearer " + text}}
}

const jwtSites = `
log = { file = "all.log", format = "json" }
[[site]]
hosts = "a.example"
root = "www"
[site.jwt]
jwks = "URL"
issuer = "me"
audience = ["site", "other"]
[[site.route]]
path = "/open/{path...}"
root = "www"
jwt = false
[[site.route]]
path = "/key/{path...}"
root = "www"
[site.route.jwt]
key = "FILE"
algorithms = "ES256"
issuer = "me"
any_audience = true
[[site.route]]
path = "/basic/{path...}"
root = "www"
jwt = false
basic_auth = { users = { bob = "$2a$04$k3PMdLXmKPFdyx3I5A5JLOVs4Ow3WtJ7qzqkI2WqL1m4m0Nn3mF3K" } }
`

// Tokens admit on both paths, by published keys and by one of a file, and go on to do so when the
// file is read again while the keys cannot be fetched.
func TestJWTSites(t *testing.T) {
	t.Parallel()
	needSignals(t)
	i := newIssuer(t)
	public, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "key.pem")
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
	text := strings.NewReplacer("URL", i.url, "FILE", filepath.ToSlash(keyFile)).Replace(jwtSites)
	p, file := startConfig(t, text, map[string]string{"www/f": "f"})
	c := newClient(t, "")
	check := func() {
		t.Helper()
		for _, tt := range []struct {
			path   string
			fields http.Header
			want   int
		}{
			{"f", nil, 401}, {"f", i.token(nil), 200}, {"f", i.token(jwt.MapClaims{"aud": "third"}), 401}, {"f", i.token(jwt.MapClaims{"iss": "you"}), 401},
			{"f", i.token(jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}), 401}, {"f", newIssuer(t).token(nil), 401},
			{"f", http.Header{"Authorization": {"Bearer x"}}, 401}, {"%66", i.token(nil), 200}, {"%66", nil, 401},
			{"open/f", nil, 200}, {"key/f", nil, 401}, {"key/f", i.token(jwt.MapClaims{"aud": "third"}), 200}, {"basic/f", i.token(nil), 401},
		} {
			for range 3 { // the file is in memory then
				if got := send(t, c, p.urls[0], tt.path, "a.example", tt.fields).status; got != tt.want {
					t.Errorf("%s %v: %d, not %d", tt.path, tt.fields, got, tt.want)
				}
			}
		}
	}
	check()
	if n := i.fetches.Load(); n > 2 { // at the start, and for the token of an unknown key
		t.Errorf("the keys were fetched %d times", n)
	}
	i.down.Store(true)
	write(t, file, "# changed\n"+text)
	p.reload()
	check()
	write(t, file, strings.Replace(text, `"other"]`, `"third"]`, 1)) // other tokens, so other keys
	p.reload()
	if got := send(t, c, p.urls[0], "f", "a.example", i.token(nil)).status; got != 503 {
		t.Errorf("without keys: %d", got)
	}
	until(t, func() bool { // the log says that keys cannot be fetched
		log := p.stderr.String()
		return strings.Contains(log, "JWKS") || strings.Contains(log, i.url)
	})
	var users int
	for _, line := range linesOf(t, filepath.Join(filepath.Dir(file), "all.log")) {
		users += strings.Count(line, `"user":"ann"`)
	}
	if users == 0 {
		t.Error("no line has the user")
	}
}

// check and --explain fetch nothing.
func TestJWTCheck(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	file := filepath.Join(folder(t, map[string]string{"www/f": "f"}), "c.toml")
	write(t, file, "[[site]]\nhosts = '*'\nroot = 'www'\n[site.jwt]\njwks = '"+i.url+"'\nissuer = 'me'\nany_audience = true\n")
	if code, stdout, stderr := inProcess(t, "check", file); code != exitOK {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	code, stdout, stderr := inProcess(t, "check", file, "--explain", "http://a.example/f")
	if code != exitOK || !strings.Contains(stdout, "jwt, not verified") || !strings.Contains(stdout, "200 OK") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
	if n := i.fetches.Load(); n != 0 {
		t.Errorf("the keys were fetched %d times", n)
	}
}
