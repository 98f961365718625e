package middleware

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/ratelimit"
)

func TestBearer(t *testing.T) {
	mw := Must(Bearer(&BearerOptions{Tokens: map[string]string{"old": "aZ09-._~+/==", "new": "second"}, Realm: `a "b"`}))
	echo := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(UserOf(x)) })
	const missing, invalid, several = `Bearer realm="a \"b\""`, `Bearer realm="a \"b\"", error="invalid_token"`, `Bearer realm="a \"b\"", error="invalid_request"`
	for _, tt := range []struct {
		name      string
		fields    []string
		status    int
		challenge string
		body      string
	}{
		{"first", []string{"Authorization", "Bearer aZ09-._~+/=="}, 200, "", "old"},
		{"second", []string{"Authorization", "Bearer second"}, 200, "", "new"},
		{"scheme in any case, spaces", []string{"Authorization", "bEARER  second"}, 200, "", "new"},
		{"none", nil, 401, missing, ""},
		{"empty", []string{"Authorization", ""}, 401, missing, ""},
		{"another scheme", []string{"Authorization", "Basic c2Vjb25k"}, 401, missing, ""},
		{"no scheme", []string{"Authorization", "second"}, 401, missing, ""},
		{"scheme alone", []string{"Authorization", "Bearer"}, 401, missing, ""},
		{"no token", []string{"Authorization", "Bearer "}, 401, invalid, ""},
		{"wrong", []string{"Authorization", "Bearer third"}, 401, invalid, ""},
		{"beginning", []string{"Authorization", "Bearer secon"}, 401, invalid, ""},
		{"more", []string{"Authorization", "Bearer secondx"}, 401, invalid, ""},
		{"case", []string{"Authorization", "Bearer SECOND"}, 401, invalid, ""},
		{"two tokens", []string{"Authorization", "Bearer second, second"}, 401, invalid, ""},
		{"not a token", []string{"Authorization", "Bearer \xff"}, 401, invalid, ""},
		{"only padding", []string{"Authorization", "Bearer =="}, 401, invalid, ""},
		{"twice", []string{"Authorization", "Bearer second", "Authorization", "Bearer second"}, 400, several, ""},
		{"in the query", []string{"X", "?access_token=second"}, 401, missing, ""},
	} {
		ways(t, mw, echo, func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request("GET", "/?access_token=second", "", tt.fields...))
			if a.Status != tt.status || a.Header.Get("Www-Authenticate") != tt.challenge || tt.status == 200 && a.Body != tt.body && a.Body != "" {
				t.Errorf("%s: got %v", tt.name, a)
			}
		})
	}
	for _, o := range []*BearerOptions{nil, {}, {Tokens: map[string]string{}}} {
		mw, err := Bearer(o)
		refused(t, mw, err, "middleware: Bearer: Tokens: ")
	}
	for _, token := range []string{"", "=", "a b", "a\n", "ä"} {
		mw, err := Bearer(&BearerOptions{Tokens: map[string]string{"x": token}})
		refused(t, mw, err, `middleware: Bearer: Tokens: the token of "x" `)
	}
	none, err := Bearer(&BearerOptions{Tokens: map[string]string{"x": "y"}, Realm: "a\r\nb"})
	refused(t, none, err, "middleware: Bearer: Realm: ")
}

// A request is admitted if its whole token is right, for any number and length of tokens.
func TestBearerTokens(t *testing.T) {
	t.Parallel()
	echo := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(UserOf(x)) })
	long := strings.Repeat("l", 64)
	for name, tokens := range map[string][]string{
		"one": {"a"}, "words": {"12345678", "1234567", "123456789", "1234567890123456"}, "64 bytes": {long, long[1:]}, "65 bytes": {long + "x", long, "a"},
		"eight": strings.Split("a b c d e f g h", " "), "nine": strings.Split("a b c d e f g h i", " "), "differ in the end": {long[1:] + "1", long[1:] + "2"},
	} {
		o := BearerOptions{Tokens: map[string]string{}}
		var all []string
		for _, token := range tokens {
			o.Tokens["of "+token] = token
			all = append(all, token, token+"x", "x"+token, token[1:], token[:len(token)-1], strings.ToUpper(token), token+"\x00", token+"\x00\x00\x00\x00\x00\x00\x00\x00", token+"=", strings.Repeat(token, 2))
		}
		h := Must(Bearer(&o))(echo)
		for _, token := range append(all, "", "\x00", strings.Repeat("z", 1000)) {
			want := ""
			if slices.Contains(tokens, token) {
				want = "of " + token
			}
			if a, ok := directly(t, h, request("GET", "/", "", "Authorization", "Bearer "+token)); !ok || a.Status == 200 != (want != "") || want != "" && a.Body != want {
				t.Errorf("%s: %q: got %d %q, want %q", name, token, a.Status, a.Body, want)
			}
		}
	}
	// The log could name only one of several with the same token, and another one after each start.
	for range 8 {
		mw, err := Bearer(&BearerOptions{Tokens: map[string]string{"c": "t", "b": "t", "e": "t", "d": "u"}})
		refused(t, mw, err, `middleware: Bearer: Tokens: "b" and "c" have the same token`)
	}
}

// chain is logger, limiter, auth, handler: Flint's published figure for these is
// 1,470 ns and 11 allocations.
func chain(o AccessLogOptions) (*AccessLog, direct.Handler) {
	l := NewAccessLog(&o)
	auth := Must(Bearer(&BearerOptions{Tokens: map[string]string{"a": "0123456789abcdef0123456789abcdef", "b": "fedcba9876543210fedcba9876543210"}}))
	answer := direct.NewResponse(200, http.Header{"Content-Type": {"application/json"}}, []byte(`{"id":17}`))
	limit := ratelimit.Must(ratelimit.New(&ratelimit.Options{Rules: []ratelimit.Rule{{Name: "all", Rate: ratelimit.Rate{Count: 1e7, Per: time.Second, Burst: 1e9}}}}))
	return l, Chain(answer, l.Wrap, limit, auth).(direct.Handler)
}

func TestChainAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	l, h := chain(AccessLogOptions{Output: discard{}})
	defer l.Close()
	x, r := benchmarkRequest()
	if n := testing.AllocsPerRun(2000, func() {
		r.Time = wire.Clock()
		x.Wire().Reset(r)
		if !h.ServeDirect(x) {
			t.Error("not answered")
		}
		a := x.Wire().Finish()
		if a.Status != 200 {
			t.Error("not let in")
		}
		a.Watcher.Sent(wire.Delivery{Status: 200, Complete: true})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkChain(b *testing.B) {
	for name, f := range map[string]LogFormat{"common": LogCommon, "combined": LogCombined} {
		b.Run(name, func(b *testing.B) {
			l, h := chain(AccessLogOptions{Format: f, Output: discard{}})
			defer l.Close()
			x, r := benchmarkRequest()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%32 == 0 { // as a loop does before it turns to 32 connections
					r.Time = wire.Clock()
				}
				x.Wire().Reset(r)
				h.ServeDirect(x)
				x.Wire().TakeWatcher().Sent(wire.Delivery{Status: 200, Complete: true})
			}
		})
	}
}
