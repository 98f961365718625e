package middleware

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/ratelimit"
)

// refusers are all middleware that refuses, with a request that is refused.
// Without a hook the response is text. The last field is one that it must have.
func refusers() []refuser {
	limited := func() func(http.Handler) http.Handler {
		mw := ratelimit.Must(ratelimit.New(&ratelimit.Options{Rules: []ratelimit.Rule{{Name: "little", Rate: ratelimit.Rate{Count: 1, Per: time.Hour, Burst: 1}}}}))
		plain(mw(hello), request("GET", "/", "")) // the one that is let in
		return mw
	}
	return []refuser{
		{"bearer", Must(Bearer(&BearerOptions{Tokens: map[string]string{"a": "b"}})), hello, request("GET", "/", ""), 401, "Www-Authenticate"},
		{"bearer, several", Must(Bearer(&BearerOptions{Tokens: map[string]string{"a": "b"}})), hello, request("GET", "/", "", "Authorization", "a", "Authorization", "b"), 400, "Www-Authenticate"},
		{"body limit", BodyLimit(&BodyLimitOptions{MaxSize: 1}), hello, request("POST", "/", "too long"), 413, "Cache-Control"},
		{"recover", Recover(&RecoverOptions{Handle: func(any, []byte) {}}), direct.HandlerFunc(func(*direct.Exchange) { panic(1) }), request("GET", "/", ""), 500, "Cache-Control"},
		{"etag", ETag(nil), hello, request("GET", "/", "", "If-Match", `"other"`), 412, "Cache-Control"},
		{"rate limit", limited(), hello, request("GET", "/", ""), 429, "Retry-After"},
		{"rate limit, JSON", limited(), hello, request("GET", "/", "", "Accept", "application/json"), 429, "Retry-After"},
	}
}

type refuser struct {
	name   string
	mw     func(http.Handler) http.Handler
	inside direct.Handler
	r      *http.Request
	status int
	field  string
}

// The hook around them writes the body of all refusals, on both ways, and keeps
// their fields.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range refusers() {
		var calls atomic.Int32
		custom := Problems(func(r *Problem) []byte {
			calls.Add(1)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Hook", r.Header.Get(tt.field))
			return fmt.Appendf(nil, `{"code":%d,"title":%q}`, r.Status, r.Title)
		})
		problems := Problems(nil)
		type way func(mw func(http.Handler) http.Handler) answer
		ways := map[string]way{
			"plain": func(mw func(http.Handler) http.Handler) answer {
				return plain(mw(tt.mw(hf(tt.inside.ServeHTTP))), again(tt.r))
			},
			"direct": func(mw func(http.Handler) http.Handler) answer {
				a, ok := directly(t, mw(tt.mw(tt.inside)), again(tt.r))
				if !ok {
					t.Errorf("%s: declined", tt.name)
				}
				return a
			},
		}
		for name, do := range ways {
			for range 2 {
				a := do(custom)
				want := fmt.Sprintf(`{"code":%d,"title":`, tt.status)
				if a.Status != tt.status || a.Header.Get("Content-Type") != "application/json" || a.Header.Get(tt.field) == "" || a.Header.Get("X-Hook") != a.Header.Get(tt.field) || !strings.HasPrefix(a.Body, want) {
					t.Errorf("%s, %s: got %v", tt.name, name, a)
				}
			}
			a := do(problems)
			var p struct {
				Type, Title string
				Status      int
				Violated    []string `json:"violated-policies"`
			}
			err := json.Unmarshal([]byte(a.Body), &p)
			if err != nil || a.Status != tt.status || p.Status != tt.status || p.Title == "" || a.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s, %s: %v, got %v", tt.name, name, err, a)
			}
			if tt.status == 429 && (len(p.Violated) != 1 || p.Violated[0] != "little" || !strings.HasSuffix(p.Type, "#quota-exceeded")) {
				t.Errorf("%s, %s: got %+v", tt.name, name, p)
			}
			// The inner of two is used; what is outside is not changed.
			if a := do(func(h http.Handler) http.Handler { return problems(custom(h)) }); a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s, %s, in two: got %v", tt.name, name, a)
			}
			if a := do(func(h http.Handler) http.Handler { return h }); a.Status != tt.status || strings.HasPrefix(a.Body, `{"code"`) {
				t.Errorf("%s, %s, without: got %v", tt.name, name, a)
			}
		}
		if n := calls.Load(); tt.status != 429 && n != 1 {
			t.Errorf("%s: called %d times for one kind of refusal", tt.name, n)
		}
	}
}

// again returns r with a body that was not read.
func again(r *http.Request) *http.Request {
	c := r.Clone(r.Context())
	if r.ContentLength > 0 {
		c = request(r.Method, r.RequestURI, strings.Repeat("x", int(r.ContentLength)))
	}
	return c
}

// Outside of the hook refusals are unchanged, also if they are decided later.
func TestRefusalsOutside(t *testing.T) {
	t.Parallel()
	inside := direct.HandlerFunc(func(x *direct.Exchange) {
		if string(x.Path()) == "/panic" {
			panic(1)
		}
		x.WriteString("hello")
	})
	outer := func(h http.Handler) http.Handler {
		return Chain(h, Recover(&RecoverOptions{Handle: func(any, []byte) {}}), ETag(nil), Problems(nil))
	}
	ways(t, outer, inside, func(t *testing.T, do func(r *http.Request) answer) {
		for _, r := range []*http.Request{request("GET", "/panic", ""), request("GET", "/", "", "If-Match", `"other"`)} {
			if a := do(r); a.Status < 400 || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s: got %v", r.URL.Path, a)
			}
		}
	})
}

// 503 and 504, which are sent after waiting.
func TestRefusalsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := newHeld()
		full := Problems(nil)(InFlight(&InFlightOptions{Max: 1})(hf(held.ServeHTTP)))
		done := make(chan answer)
		go func() { done <- plain(full, request("GET", "/", "")) }()
		<-held.entered
		slow := Problems(nil)(Timeout(&TimeoutOptions{Limit: time.Second})(hf(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })))
		for status, h := range map[int]http.Handler{503: full, 504: slow} {
			a := plain(h, request("GET", "/", ""))
			if a.Status != status || a.Header.Get("Content-Type") != "application/problem+json" || a.Body != fmt.Sprintf(`{"title":%q,"status":%d}`+"\n", http.StatusText(status), status) {
				t.Errorf("got %v", a)
			}
		}
		held.leave <- struct{}{}
		<-done
		direct503 := Problems(nil)(InFlight(&InFlightOptions{Max: 1})(heldDirect{held}))
		go func() { done <- plain(direct503, request("GET", "/", "")) }()
		<-held.entered
		if a, _ := directly(t, direct503, request("GET", "/", "")); a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Body, "{") {
			t.Errorf("got %v", a)
		}
		held.leave <- struct{}{}
		<-done
	})
}

type heldDirect struct{ held }

// Requests that are admitted cost no allocation on the fast path.
func TestRefusalsAllocations(t *testing.T) {
	h := Problems(nil)(hello).(direct.Handler)
	x, r := benchmarkRequest()
	if n := testing.AllocsPerRun(1000, func() {
		x.Wire().Reset(r)
		h.ServeDirect(x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// On servers, through everything else of this package.
func TestRefusalsServers(t *testing.T) {
	for name, mw := range everything(t) {
		if name == "bearer" || name == "all" {
			continue
		}
		h := Chain(hello, Problems(nil), mw, Must(Bearer(&BearerOptions{Tokens: map[string]string{"a": "b"}})))
		servers(t, h, func(t *testing.T, url string, c *http.Client) {
			res, body, err := get(t, c, url)
			if err != nil || res.StatusCode != 401 || res.Header.Get("Content-Type") != "application/problem+json" || body != `{"title":"Unauthorized","status":401}`+"\n" || res.Header.Get("Www-Authenticate") == "" {
				t.Errorf("%s: %v, got %d %v %q", name, err, res.StatusCode, res.Header, body)
			}
		})
	}
}

func ExampleProblems() {
	h := Chain(plainHello,
		Problems(nil), // problem details in JSON (RFC 9457)
		Must(Bearer(&BearerOptions{Tokens: map[string]string{"ops": "0123456789abcdef"}})))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	fmt.Print(rec.Code, " ", rec.Header().Get("Content-Type"), "\n", rec.Body)
	// Output:
	// 401 application/problem+json
	// {"title":"Unauthorized","status":401}
}

// A hook that panics when the time is over must not end the process: the panic is
// raised on the handler's goroutine.
func TestProblemsThatPanicInTimeout(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 1)
	mistaken := Problems(func(*Problem) []byte {
		called <- struct{}{}
		panic("mistake")
	})
	var seen any
	outer := Recover(&RecoverOptions{Handle: func(v any, _ []byte) { seen = v }})
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-called })
	rec := httptest.NewRecorder()
	Chain(slow, outer, mistaken, Timeout(&TimeoutOptions{Limit: time.Millisecond})).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if seen != "mistake" || rec.Code != 500 {
		t.Errorf("got %d, Recover has seen %v", rec.Code, seen)
	}
}
