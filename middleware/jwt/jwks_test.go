package jwt

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// All tokens with a new key wait for the fetch that the first of them causes.
func TestRotationConcurrent(t *testing.T) {
	t.Parallel()
	is := newIssuer(t, setOf(jwkOf("old")))
	v := open(t, Options{JWKS: is.URL})
	is.publish(200, setOf(jwkOf("new")))
	gate := is.shut()
	const n = 20
	waiters, answers := make([]*waiter, n), make(chan int, n)
	for i := range n {
		waiters[i] = newWaiter(t.Context())
		go func() { answers <- ask(waiters[i], v, signed("new")) }()
	}
	for _, w := range waiters {
		await(t, w.waiting, "a request to wait")
	}
	close(await(t, gate, "the fetch"))
	for range n {
		if got := await(t, answers, "a response"); got != 200 {
			t.Errorf("got %d", got)
		}
	}
	if got := is.asked.Load(); got != 2 {
		t.Errorf("the set was asked for %d times", got)
	}
}

// Unknown keys cause one fetch in RefreshUnknown; between them they are refused
// at once, on the fast path too.
func TestUnknownIsNoAmplifier(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("a")))
	v := open(t, Options{JWKS: is.URL, Now: c.now})
	for round := range 3 {
		if got := askDirect(v, signed("x")); got != 0 {
			t.Errorf("direct, when a fetch is due: %d", got)
		}
		answers := make(chan int, 20)
		for i := range cap(answers) {
			go func() { answers <- ask(t.Context(), v, signed(fmt.Sprint(round, i))) }()
		}
		for range cap(answers) {
			if got := await(t, answers, "a response"); got != 401 {
				t.Errorf("got %d", got)
			}
		}
		if got, want := is.asked.Load(), int64(round+2); got != want {
			t.Errorf("round %d: the set was asked for %d times, want %d", round, got, want)
		}
		if got := askDirect(v, signed("x")); got != 401 {
			t.Errorf("direct, when no fetch is due: %d", got)
		}
		c.advance(30*time.Second - 1)
		expect(t, v, "a moment before the next is due", signed("x"), 401)
		if got, want := is.asked.Load(), int64(round+2); got != want {
			t.Errorf("round %d: too early, %d times, want %d", round, got, want)
		}
		c.advance(1)
	}
}

// A client that has left does not wait; the fetch continues, and its result
// stays.
func TestFetchOutlivesClient(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("old")))
	v := open(t, Options{JWKS: is.URL, Now: c.now})
	is.publish(200, setOf(jwkOf("new")))
	gate := is.shut()
	ctx, leave := context.WithCancel(t.Context())
	w, answer := newWaiter(ctx), make(chan int, 1)
	go func() { answer <- ask(w, v, signed("new")) }()
	await(t, w.waiting, "the request to wait")
	release := await(t, gate, "the fetch")
	leave()
	if got := await(t, answer, "the request that has left"); got != 401 {
		t.Errorf("got %d", got)
	}
	if got := ask(t.Context(), v, signed("old")); got != 200 {
		t.Errorf("a known key during the fetch: %d", got)
	}
	joined := newWaiter(t.Context())
	go func() { answer <- ask(joined, v, signed("new")) }()
	await(t, joined.waiting, "another request to wait")
	close(release)
	if got := await(t, answer, "the other request"); got != 200 {
		t.Errorf("got %d", got)
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	is := newIssuer(t, setOf(jwkOf("old")))
	v := open(t, Options{JWKS: is.URL})
	v.set.setPatience(time.Nanosecond)
	is.shut() // without end
	expect(t, v, "the endpoint hangs", signed("new"), 401)
	expect(t, v, "a known key", signed("old"), 200)
}

// Close ends a fetch that would never end, and no token begins another.
func TestClose(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("a")))
	v := open(t, Options{JWKS: is.URL, Now: c.now})
	gate := is.shut()
	answer := make(chan int, 1)
	go func() { answer <- ask(t.Context(), v, signed("new")) }()
	await(t, gate, "the fetch")
	v.Close()
	if got := await(t, answer, "the request"); got != 401 {
		t.Errorf("got %d", got)
	}
	c.advance(time.Hour)
	expect(t, v, "unknown, after Close", signed("new"), 401)
	expect(t, v, "known, after Close", signed("a"), 200)
	v.Close()
}

// After an error the set is fetched again soon, without any token.
func TestRetry(t *testing.T) {
	t.Parallel()
	is := newIssuer(t, "")
	is.publish(503, "")
	v := open(t, Options{JWKS: is.URL, Refresh: time.Hour, RefreshUnknown: time.Millisecond})
	is.publish(200, setOf(jwkOf("a")))
	eventually(t, "the keys are there", func() bool { return askDirect(v, signed("a")) == 200 })
}

// The log says what happens to requests while the endpoint is down.
func TestDownIsLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // read after Close
	is := newIssuer(t, "")
	is.publish(503, "")
	v, err := New(&Options{JWKS: is.URL, AnyIssuer: true, AnyAudience: true, AllowEternal: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, v, "before any set", signed("a"), 503)
	v.Close()
	if !strings.Contains(log.String(), "get 503") || strings.Contains(log.String(), "last keys are used") {
		t.Errorf("before any set: %s", log.String())
	}

	log.Reset()
	is.publish(200, setOf(jwkOf("a")))
	v, err = New(&Options{JWKS: is.URL, AnyIssuer: true, AnyAudience: true, AllowEternal: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	is.publish(503, "")
	expect(t, v, "a key of the last set", signed("a"), 200)
	expect(t, v, "a key that is not in it", signed("b"), 401)
	v.Close()
	if !strings.Contains(log.String(), "the last keys are used") || strings.Contains(log.String(), "get 503") {
		t.Errorf("after one: %s", log.String())
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	is := newIssuer(t, setOf(jwkOf("a")))
	to := func(where *string, start func(http.Handler) *httptest.Server) *httptest.Server {
		s := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, *where, http.StatusFound)
		}))
		t.Cleanup(s.Close)
		return s
	}
	secure := httptest.NewTLSServer(is)
	t.Cleanup(secure.Close)
	var self string
	loop := to(&self, httptest.NewServer)
	self = loop.URL
	// Whatever is asked for at another machine would get to the issuer.
	other := "http://issuer.example/"
	transport := secure.Client().Transport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "issuer.example:80" {
			address = is.Listener.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for _, tt := range []struct {
		name, url string
		want      int
		asked     int64
		allow     bool
	}{
		{"https to http, on this machine even", to(&is.URL, httptest.NewTLSServer).URL, 503, 0, false},
		{"https to http, where that is allowed", to(&other, httptest.NewTLSServer).URL, 503, 0, true},
		{"https to https", to(&secure.URL, httptest.NewTLSServer).URL, 200, 1, false},
		{"http to http, both on this machine", to(&is.URL, httptest.NewServer).URL, 200, 1, false},
		{"http to another machine", to(&other, httptest.NewServer).URL, 503, 0, false},
		{"http to another machine, allowed", to(&other, httptest.NewServer).URL, 200, 1, true},
		{"to itself", loop.URL, 503, 0, false},
	} {
		before := is.asked.Load()
		// Its certificate is that of all httptest servers.
		v := open(t, Options{JWKS: tt.url, Client: secure.Client(), AllowHTTP: tt.allow})
		tries := 0
		if tt.asked == 0 {
			expect(t, v, tt.name, signed("a"), tt.want)
		} else { // on a busy machine a fetch may be too late, and is repeated
			eventually(t, tt.name, func() bool { tries++; return ask(t.Context(), v, signed("a")) == tt.want })
		}
		v.Close() // or it would go on to ask
		if asked := is.asked.Load() - before; asked != tt.asked && (tries <= 1 || asked < tt.asked) {
			t.Errorf("%s: the set was asked for %d times", tt.name, asked)
		}
	}
	// The client's own rule counts too.
	refused := false
	client := *secure.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { refused = true; return http.ErrUseLastResponse }
	v := open(t, Options{JWKS: to(&secure.URL, httptest.NewTLSServer).URL, Client: &client})
	expect(t, v, "CheckRedirect", signed("a"), 503)
	if !refused {
		t.Error("the client's CheckRedirect was not asked")
	}
}

func TestContentType(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "application/jwk-set+json": 200, "Application/JSON": 200,
		"text/plain; charset=utf-8": 200, "application/octet-stream": 200,
		"text/html": 503, "text/html; charset=utf-8": 503, "application/xml": 503, "image/png": 503, ";": 503,
	} {
		is := newIssuer(t, setOf(jwkOf("a")))
		is.kind = kind
		if got := ask(t.Context(), open(t, Options{JWKS: is.URL}), signed("a")); got != want {
			t.Errorf("%q: got %d, want %d", kind, got, want)
		}
	}
}

// An unusable key does not prevent the use of the others.
func TestSets(t *testing.T) {
	t.Parallel()
	a, many := jwkOf("a"), make([]string, 100)
	for i := range many {
		many[i] = jwkOf(fmt.Sprint(i))
	}
	private := func() string { return jwkOf("a", `,"d":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`) }()
	for _, tt := range []struct {
		name, set string
		want      int
	}{
		{"good", setOf(a), 200},
		{"for signatures", setOf(jwkOf("a", `,"use":"sig"`)), 200},
		{"for encryption", setOf(jwkOf("a", `,"use":"enc"`)), 503},
		{"for something else", setOf(jwkOf("a", `,"use":"x"`)), 503},
		{"to verify", setOf(jwkOf("a", `,"key_ops":["x","verify"]`)), 200},
		{"to sign only", setOf(jwkOf("a", `,"key_ops":["sign"]`)), 503},
		{"for nothing", setOf(jwkOf("a", `,"key_ops":[]`)), 503},
		{"for its algorithm", setOf(jwkOf("a", `,"alg":"EdDSA"`)), 200},
		{"for another algorithm", setOf(jwkOf("a", `,"alg":"RS256"`)), 503},
		{"for none", setOf(jwkOf("a", `,"alg":"none"`)), 503},
		{"with the private key", setOf(private), 200},
		{"with a certificate that is none", setOf(jwkOf("a", `,"x5c":["AAAA"],"x5t":"AAAA"`)), 200},
		{"no key", setOf(`1`, a), 200},
		{"no type", setOf(`{"kid":"b"}`, a), 200},
		{"an unknown type", setOf(`{"kty":"X","kid":"b"}`, a), 200},
		{"an unknown curve", setOf(`{"kty":"OKP","crv":"Ed448","x":"AAAA","kid":"b"}`, a), 200},
		{"a point that is not on the curve", setOf(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA","kid":"b"}`, a), 200},
		{"a short key", setOf(`{"kty":"OKP","crv":"Ed25519","x":"AA","kid":"b"}`, a), 200},
		{"an unknown use", setOf(jwkOf("b", `,"use":"x"`), a), 200},
		{"a secret", setOf(`{"kty":"oct","k":"AAAA","kid":"b"}`, a), 200},
		{"RSA of 1024 bits", setOf(`{"kty":"RSA","e":"AQAB","kid":"b","n":"`+strings.Repeat("_", 171)+`"}`, a), 200},
		{"the name twice", setOf(strings.Replace(jwkOf("b"), `"b"`, `"a"`, 1), a), 200},
		{"too many", setOf(append(many, a)...), 401},
		{"the same many times", setOf(strings.Split(strings.Repeat(a+" ", 50), " ")[:50]...), 200},
		{"something after it", setOf(a) + "x", 503},
		{"a list", "[" + a + "]", 503},
		{"a megabyte", setOf(a, strings.Repeat(" ", maxSet)+"{}"), 503},
	} {
		v := open(t, Options{JWKS: newIssuer(t, tt.set).URL})
		if got := ask(t.Context(), v, signed("a")); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A token names no key, and the only one has changed; or a name is used again.
func TestRotationWithoutNewName(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("a")))
	v := open(t, Options{JWKS: is.URL, Now: c.now})
	expect(t, v, "before", signed("a"), 200)
	is.publish(200, setOf(strings.Replace(jwkOf("b"), `"b"`, `"a"`, 1)))
	nameless := signedAs("", "b")
	expect(t, v, "no name", nameless, 200)
	expect(t, v, "the same name", signedAs("a", "b"), 200)
	expect(t, v, "taken away", signed("a"), 401)
	if got := is.asked.Load(); got != 2 {
		t.Errorf("the set was asked for %d times", got)
	}
}

// A token that names no key is tried with a bounded number of them.
func TestTries(t *testing.T) {
	t.Parallel()
	keys := make([]string, 20)
	for i := range keys {
		keys[i] = jwkOf(fmt.Sprint(i + 1))
	}
	v := open(t, Options{JWKS: newIssuer(t, setOf(keys...)).URL})
	expect(t, v, "the eighth", signedAs("", "8"), 200)
	expect(t, v, "the ninth", signedAs("", "9"), 401)
	expect(t, v, "the ninth by name", signed("9"), 200)
}

// Fixed keys for any name do not hide those of the set, nor wait for them.
func TestFixedAndSet(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("a")))
	v := open(t, Options{JWKS: is.URL, Now: c.now, Keys: []Key{
		{Algorithm: "EdDSA", Key: keyOf("fixed").Public()}, {ID: "named", Algorithm: "EdDSA", Key: keyOf("named").Public()},
	}})
	is.publish(200, setOf(jwkOf("a"), jwkOf("new")))
	for _, tt := range []struct {
		kid, key string
		direct   int
	}{
		{"a", "a", 200}, {"fixed", "fixed", 200}, {"", "fixed", 200}, {"named", "named", 200},
		{"named", "a", 401}, // whatever the set has
	} {
		if got := askDirect(v, signedAs(tt.kid, tt.key)); got != tt.direct {
			t.Errorf("%+v: got %d", tt, got)
		}
	}
	if got := is.asked.Load(); got != 1 {
		t.Errorf("the set was asked for %d times", got)
	}
	if got := askDirect(v, signed("new")); got != 0 {
		t.Errorf("a new key, direct: %d", got) // 401 would be wrong
	}
	expect(t, v, "a new key", signed("new"), 200)
}

// The password in the endpoint's address is not logged.
func TestPasswordNotLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer // read after Close
	var credentials atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		credentials.Store(password)
		w.WriteHeader(500)
	}))
	defer s.Close()
	v, err := New(&Options{
		JWKS: strings.Replace(s.URL, "http://", "http://u:sesame@", 1), AnyIssuer: true, AnyAudience: true,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	if credentials.Load() != "sesame" || !strings.Contains(log.String(), "status 500") || strings.Contains(log.String(), "sesame") {
		t.Errorf("%v, %s", credentials.Load(), log.String())
	}
	if _, err := New(&Options{JWKS: "ftp://u:sesame@x/", AnyIssuer: true, AnyAudience: true}); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Error(err)
	}
}
