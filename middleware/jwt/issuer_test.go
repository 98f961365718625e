package jwt

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/user"
	"github.com/golang-jwt/jwt/v5"
)

// A clock advances only on request.
type clock struct{ passed atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.passed.Load()) }
func (c *clock) advance(d time.Duration) { c.passed.Add(int64(d)) }

// An issuer has keys by name and a JWKS endpoint.
type issuer struct {
	*httptest.Server
	asked atomic.Int64
	// gate, if there is one, receives a channel for each request, which is
	// served when that is closed.
	gate atomic.Pointer[chan chan struct{}]

	mu     sync.Mutex
	set    string
	status int
	kind   string // Content-Type
}

func newIssuer(t *testing.T, set string) *issuer {
	i := &issuer{set: set, status: 200, kind: "application/json"}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.asked.Add(1)
	if gate := i.gate.Load(); gate != nil {
		open := make(chan struct{})
		select {
		case *gate <- open:
		case <-r.Context().Done():
			return
		}
		select {
		case <-open:
		case <-r.Context().Done():
			return
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", i.kind)
	w.WriteHeader(i.status)
	fmt.Fprint(w, i.set)
}

func (i *issuer) publish(status int, set string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status, i.set = status, set
}

// shut makes requests wait. Its result has the next of them.
func (i *issuer) shut() chan chan struct{} {
	gate := make(chan chan struct{})
	i.gate.Store(&gate)
	return gate
}

// keyOf returns the private key of that name, always the same.
func keyOf(kid string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(fmt.Sprintf("%32s", kid)))
}

func jwkOf(kid string, more ...string) string {
	x := base64.RawURLEncoding.EncodeToString(keyOf(kid).Public().(ed25519.PublicKey))
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q%s}`, kid, x, strings.Join(more, ""))
}

func setOf(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }

// signed returns a token signed with the key of that name; claims are pairs.
func signed(kid string, claims ...any) string { return signedAs(kid, kid, claims...) }

// signedAs is signed with another key ID, or none.
func signedAs(kid, key string, claims ...any) string {
	c := jwt.MapClaims{"sub": "ann"}
	for i := 0; i < len(claims); i += 2 {
		c[claims[i].(string)] = claims[i+1]
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	if kid != "" {
		t.Header["kid"] = kid
	}
	s, err := t.SignedString(keyOf(key))
	if err != nil {
		panic(err)
	}
	return s
}

func (s *keySet) setPatience(d time.Duration) {
	s.mu.Lock() // keepFresh may have begun a fetch
	defer s.mu.Unlock()
	s.patience = d
}

// open returns a Verifier for the tokens of signed.
func open(t *testing.T, o Options) *Verifier {
	t.Helper()
	o.AnyIssuer, o.AnyAudience, o.AllowEternal = true, true, true
	v, err := New(quiet(o))
	if err != nil {
		t.Fatal(err)
	}
	if v.set != nil {
		v.set.setPatience(time.Hour) // no test depends on how fast the machine is
	}
	t.Cleanup(func() { v.Close() })
	return v
}

var names = direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(user.Of(x)) })

// ask returns the status of the ordinary path.
func ask(ctx context.Context, v *Verifier, token string) int {
	r := httptest.NewRequestWithContext(ctx, "GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	v.Wrap(names).ServeHTTP(rec, r)
	return rec.Code
}

// askDirect returns the status of the fast path, 0 if that is declined.
func askDirect(v *Verifier, token string) int {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Fields: wire.FieldsOf(http.Header{"Authorization": {"Bearer " + token}})})
	if !v.Wrap(names).(direct.Handler).ServeDirect(&x) {
		return 0
	}
	return x.Wire().Finish().Status
}

func expect(t *testing.T, v *Verifier, what, token string, want int) {
	t.Helper()
	if got := ask(t.Context(), v, token); got != want {
		t.Errorf("%s: got %d, want %d", what, got, want)
	}
}

// A waiter is a context that notifies when a goroutine waits for its end: a
// request that has joined a fetch.
type waiter struct {
	context.Context
	once    sync.Once
	waiting chan struct{}
}

func newWaiter(ctx context.Context) *waiter {
	return &waiter{Context: ctx, waiting: make(chan struct{})}
}

func (w *waiter) Done() <-chan struct{} {
	w.once.Do(func() { close(w.waiting) })
	return w.Context.Done()
}

// Value hides the parent context, which package context would use instead.
func (w *waiter) Value(any) any { return nil }

const hang = 90 * time.Second // beside other tests, with the race detector

func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(hang):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
		time.Sleep(time.Millisecond) // polling, not synchronising
	}
}
