package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware/jwt"
	"github.com/lestrrat-go/jwx/v3/jwa"
)

func TestRoutes(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, handler(v))
		s.Expect(t, "GET", "/me", "", 200, "ann, issued by https://issuer.example/\n", "Authorization", "Bearer "+sign(jwa.ES256(), ec256, claims(), "kid", "a"))
		s.Expect(t, "GET", "/me", "", 401, "Unauthorized\n", "Authorization", "Bearer x")
		s.Expect(t, "POST", "/me", "", 405, "Method Not Allowed\n")
	})
}

// Where a request may have a token, and the response if it is refused: RFC 6750
// sections 2 and 3. Without credentials there is no error code.
func TestCredentials(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL, Realm: `the "api"`})
	good := sign(jwa.ES256(), ec256, claims(), "kid", "a")
	const (
		missing = `Bearer realm="the \"api\""`
		invalid = missing + `, error="invalid_token"`
		several = missing + `, error="invalid_request"`
	)
	table := []struct {
		name, line, head, body string
		status                 int
		challenge              string
	}{
		{"good", "GET /me", "Authorization: Bearer " + good, "", 200, ""},
		{"lower case", "GET /me", "authorization: bearer " + good, "", 200, ""},
		{"upper case", "GET /me", "AUTHORIZATION: BEARER " + good, "", 200, ""},
		{"spaces", "GET /me", "Authorization:   Bearer   " + good + "  ", "", 200, ""},
		{"nothing", "GET /me", "X: y", "", 401, missing},
		{"empty", "GET /me", "Authorization:", "", 401, missing},
		{"the scheme only", "GET /me", "Authorization: Bearer", "", 401, missing},
		{"another scheme", "GET /me", "Authorization: Basic YTpi", "", 401, missing},
		{"another scheme with a good token", "GET /me", "Authorization: DPoP " + good, "", 401, missing},
		{"no scheme", "GET /me", "Authorization: " + good, "", 401, missing},
		{"a longer scheme", "GET /me", "Authorization: Bearers " + good, "", 401, missing},
		{"a tab", "GET /me", "Authorization: Bearer\t" + good, "", 401, missing},
		{"bad", "GET /me", "Authorization: Bearer x", "", 401, invalid},
		{"two tokens in one line", "GET /me", "Authorization: Bearer " + good + " " + good, "", 401, invalid},
		{"a list", "GET /me", "Authorization: Bearer " + good + ", Bearer " + good, "", 401, invalid},
		{"a parameter", "GET /me", "Authorization: Bearer token=" + good, "", 401, invalid},
		{"two good lines", "GET /me", "Authorization: Bearer " + good + "\r\nAuthorization: Bearer " + good, "", 400, several},
		{"bad and good", "GET /me", "Authorization: Bearer x\r\nauthorization: Bearer " + good, "", 400, several},
		{"good and another scheme", "GET /me", "Authorization: Bearer " + good + "\r\nAuthorization: Basic YTpi", "", 400, several},
		{"in the query", "GET /me?access_token=" + good, "X: y", "", 401, missing},
		{"in the query too", "GET /me?access_token=" + good, "Authorization: Bearer x", "", 401, invalid},
		{"in a form", "GET /me", "Content-Type: application/x-www-form-urlencoded", "access_token=" + good, 401, missing},
		{"in a cookie", "GET /me", "Cookie: access_token=" + good, "", 401, missing},
		{"for a proxy", "GET /me", "Proxy-Authorization: Bearer " + good, "", 401, missing},
	}
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		s := e.Start(t, handler(v))
		for _, tt := range table {
			c := s.Dial(t)
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n\r\n%s", tt.line, len(tt.body), tt.head, tt.body)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got := res.Header.Values("WWW-Authenticate"); res.StatusCode != tt.status || strings.Join(got, "|") != tt.challenge {
				t.Errorf("%s: got %d %q, want %d %q", tt.name, res.StatusCode, got, tt.status, tt.challenge)
			}
			if res.StatusCode != 200 && res.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: Cache-Control %q", tt.name, res.Header.Get("Cache-Control"))
			}
			c.Close()
		}
	})
}

// The abilities of a response writer are passed on.
func TestPassing(t *testing.T) {
	set := newIssuer(t, published(ec256.Public(), "a"))
	v := verifier(t, jwt.Options{JWKS: set.srv.URL})
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		more := make(chan struct{})
		mux := http.NewServeMux()
		mux.HandleFunc("/flush", func(w http.ResponseWriter, _ *http.Request) {
			c := http.NewResponseController(w)
			if err := c.SetWriteDeadline(time.Now().Add(engines.Patience)); err != nil {
				t.Error(err)
			}
			io.WriteString(w, "one")
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
			<-more
			io.WriteString(w, " two")
			w.(http.Flusher).Flush()
		})
		mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello %v", jwt.ClaimsOf(r.Context())["sub"])
		})
		s := e.Start(t, v.Wrap(mux))
		get := func(path string) *bufio.Reader {
			c := s.Dial(t)
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", path, sign(jwa.ES256(), ec256, claims(), "kid", "a"))
			return bufio.NewReader(c)
		}
		res, err := http.ReadResponse(get("/flush"), nil)
		if err != nil {
			t.Fatal(err)
		}
		one := make([]byte, 3)
		_, err = io.ReadFull(res.Body, one) // before there is more
		close(more)
		rest, restErr := io.ReadAll(res.Body)
		if string(one)+string(rest) != "one two" || err != nil || restErr != nil {
			t.Errorf("got %q, %v, %q, %v", one, err, rest, restErr)
		}
		br := get("/hijack")
		if res, err = http.ReadResponse(br, nil); err != nil || res.StatusCode != 101 {
			t.Fatal(res, err)
		}
		if b, err := io.ReadAll(br); string(b) != "hello ann" || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// Keys rotate while a server is under load: no valid token is refused. Then the
// endpoint goes down, and the last keys stay.
func TestRotationUnderLoad(t *testing.T) {
	engines.Each(t, func(t *testing.T, e engines.Engine) {
		set := newIssuer(t, published(ec256.Public(), "old"))
		c := new(clock)
		v := verifier(t, jwt.Options{JWKS: set.srv.URL, CacheSize: 100, Now: c.now})
		s := e.Start(t, handler(v))
		before, after := sign(jwa.ES256(), ec256, claims(), "kid", "old"), sign(jwa.RS256(), rsaKey, claims(), "kid", "new")
		round := func(tokens ...string) {
			t.Helper()
			answers := make(chan int)
			for i := range 20 {
				go func() {
					req, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/me", nil)
					req.Header.Set("Authorization", "Bearer "+tokens[i%len(tokens)])
					res, err := s.Client.Do(req)
					if err != nil {
						t.Error(err)
						answers <- 0
						return
					}
					res.Body.Close()
					answers <- res.StatusCode
				}()
			}
			for range 20 {
				if got := engines.Await(t, answers, "a response"); got != 200 {
					t.Errorf("got %d", got)
				}
			}
		}
		round(before)
		set.publish(published(ec256.Public(), "old"), published(rsaKey.Public(), "new"))
		round(before, after)
		if n := set.asked.Load(); n != 2 {
			t.Errorf("the set was asked for %d times", n)
		}
		set.code.Store(503)
		c.advance(time.Minute)
		round(before, after)
		set.srv.Close()
		c.advance(time.Minute)
		s.Expect(t, "GET", "/me", "", 401, "Unauthorized\n", "Authorization", "Bearer "+sign(jwa.RS256(), otherRSA, claims(), "kid", "x"))
		round(before, after)
	})
}
