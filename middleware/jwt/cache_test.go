package jwt

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"net/http"
)

// found verifies a token and reports whether it was in the cache.
func found(t *testing.T, v *Verifier, token string) (ok, fromCache bool) {
	t.Helper()
	d := digest(sha256.Sum256([]byte(token)))
	c := v.cache.get(&d, v.published(), v.o.Now())
	got, err := v.verify(t.Context(), []byte(token), true)
	return err == nil, c != nil && c == got
}

func TestCacheTime(t *testing.T) {
	t.Parallel()
	c := new(clock)
	at := func(d time.Duration) int64 { return c.now().Add(d).Unix() }
	v := open(t, Options{Keys: []Key{{Algorithm: "EdDSA", Key: keyOf("a").Public()}}, CacheSize: 10, Now: c.now})
	token := signed("a", "exp", at(time.Minute))
	eternal := signed("a")
	check := func(what, token string, ok, cached bool) {
		t.Helper()
		if gotOK, gotCached := found(t, v, token); gotOK != ok || gotCached != cached {
			t.Errorf("%s: good %t, from the cache %t", what, gotOK, gotCached)
		}
	}
	check("first", token, true, false)
	check("second", token, true, true)
	check("eternal", eternal, true, false)
	c.advance(90*time.Second - 1) // with the leeway
	check("a moment before the end", token, true, true)
	c.advance(1)
	check("expired", token, false, false)
	check("eternal", eternal, true, true)
	// A clock that is put back: what is not good yet is not taken.
	late := signed("a", "nbf", at(0))
	issued := signed("a", "iat", at(0))
	check("nbf", late, true, false)
	check("iat", issued, true, false)
	c.advance(-30 * time.Second)
	check("nbf within the leeway", late, true, true)
	check("iat within the leeway", issued, true, true)
	c.advance(-1)
	check("nbf", late, false, false)
	check("iat", issued, false, false)
}

// Tokens of a key that was removed from the set are refused, cached or not. A set
// that is fetched again unchanged has no effect.
func TestCacheRotation(t *testing.T) {
	t.Parallel()
	c := new(clock)
	is := newIssuer(t, setOf(jwkOf("a"), jwkOf("b")))
	v := open(t, Options{JWKS: is.URL, CacheSize: 10, Now: c.now})
	fetch := func() {
		t.Helper()
		c.advance(time.Minute)
		expect(t, v, "unknown", signed("x"), 401)
	}
	for range 2 {
		expect(t, v, "a", signed("a"), 200)
		expect(t, v, "b", signed("b"), 200)
	}
	fetch()
	if ok, cached := found(t, v, signed("a")); !ok || !cached {
		t.Errorf("the same set: good %t, from the cache %t", ok, cached)
	}
	is.publish(500, "")
	fetch()
	if ok, cached := found(t, v, signed("a")); !ok || !cached {
		t.Errorf("no set: good %t, from the cache %t", ok, cached)
	}
	is.publish(200, setOf(jwkOf("b")))
	fetch()
	expect(t, v, "taken away", signed("a"), 401)
	if got := askDirect(v, signed("a")); got != 401 {
		t.Errorf("taken away, direct: %d", got)
	}
	expect(t, v, "b", signed("b"), 200)
	is.publish(200, setOf(strings.Replace(jwkOf("c"), `"c"`, `"b"`, 1)))
	fetch()
	expect(t, v, "another key of that name", signed("b"), 401)
}

// Only verified tokens are cached.
func TestCacheRefused(t *testing.T) {
	t.Parallel()
	v := open(t, Options{Keys: []Key{{Algorithm: "EdDSA", Key: keyOf("a").Public()}}, CacheSize: 10})
	good := signed("a")
	expect(t, v, "good", good, 200)
	for _, token := range []string{signedAs("a", "b"), good[:len(good)-3] + "AAA", good + "=", good + ".", "x", signed("a", "exp", 1)} {
		for range 2 {
			expect(t, v, token, token, 401)
		}
	}
	if n := len(v.cache.shards[0].young); n != 1 {
		t.Errorf("%d in the cache", n)
	}
}

func TestCacheBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ count, bytes, each int }{
		{1, 1 << 20, 100}, {2, 1 << 20, 100}, {100, 1 << 20, 100}, {5000, 1 << 20, 1000}, {1 << 20, 64 << 10, 1000}, {100, 1000, 2000},
	} {
		c := newCache(tt.count, tt.bytes)
		for i := range 10_000 {
			d := digest(sha256.Sum256([]byte(fmt.Sprint(i % 7000))))
			if c.get(&d, nil, time.Time{}) == nil {
				c.put(&d, &carried{size: tt.each + i%3})
			}
			c.put(&d, &carried{size: tt.each})
		}
		count, bytes := 0, 0
		for i := range c.shards {
			s, young := &c.shards[i], 0
			for _, t := range s.young {
				young += t.size
			}
			if young != s.bytes {
				t.Errorf("%+v: counted %d bytes, are %d", tt, s.bytes, young)
			}
			bytes += young
			for _, t := range s.old {
				bytes += t.size
			}
			count += len(s.young) + len(s.old)
		}
		// With one there are still two generations.
		if count > max(tt.count, 2) || bytes > tt.bytes || count == 0 && tt.each < tt.bytes {
			t.Errorf("%+v: %d with %d bytes", tt, count, bytes)
		}
	}
}

// Tokens that are used often stay.
func TestCacheKeepsUsed(t *testing.T) {
	t.Parallel()
	c := newCache(100, 1<<20)
	used := digest{1}
	want := &carried{size: 100}
	c.put(&used, want)
	for i := range 10_000 {
		d := digest(sha256.Sum256([]byte(fmt.Sprint(i))))
		c.put(&d, &carried{size: 100})
		if c.get(&used, nil, time.Time{}) != want {
			t.Fatalf("forgotten after %d", i)
		}
	}
}

func TestSizeOf(t *testing.T) {
	t.Parallel()
	small, large := sizeOf(map[string]any{"a": "x"}), sizeOf(map[string]any{"a": []any{1.0, strings.Repeat("x", 1000), map[string]any{"b": nil}}})
	if small < 300 || large < small+1000+300 {
		t.Errorf("%d, %d", small, large)
	}
}

// Requests, refreshes that change the set, and Close, all at the same time.
func TestRaces(t *testing.T) {
	t.Parallel()
	is := newIssuer(t, setOf(jwkOf("a"), jwkOf("b")))
	v := open(t, Options{JWKS: is.URL, CacheSize: 4, Refresh: time.Millisecond, RefreshUnknown: time.Millisecond})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 100 {
				kid := string(rune('a' + (i+n)%3))
				got, gotDirect := ask(t.Context(), v, signed(kid)), askDirect(v, signed(kid))
				// b always is in the set.
				if kid == "b" && (got != 200 || gotDirect != 200) {
					t.Errorf("got %d, direct %d", got, gotDirect)
				}
				if i == 0 {
					is.publish(200, setOf(jwkOf("b"), jwkOf(string(rune('a'+n%3)))))
				}
			}
		})
	}
	all.Wait()
	for range 2 {
		all.Go(func() { v.Close() })
	}
	all.Wait()
}

// A cached token costs no allocation on the fast path.
func TestCacheAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates on its own account")
	}
	v := open(t, Options{Keys: []Key{{Algorithm: "EdDSA", Key: keyOf("a").Public()}}, CacheSize: 10})
	h := v.Wrap(direct.HandlerFunc(func(*direct.Exchange) {})).(direct.Handler)
	r := wire.Request{Method: "GET", Fields: wire.FieldsOf(http.Header{"Authorization": {"Bearer " + signed("a")}})}
	var x direct.Exchange
	if n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(r)
		h.ServeDirect(&x)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
