package ratelimit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/testing/race"
	"github.com/chert-http/chert/internal/view"
)

var hello = direct.HandlerFunc(func(x *direct.Exchange) {
	x.SetHeader("Content-Type", "text/plain")
	x.WriteString("hello")
})

// get makes a request; fields are pairs of name and value.
func get(remote string, fields ...string) *http.Request {
	r := httptest.NewRequest("GET", "/a?b", nil)
	r.RemoteAddr = remote
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	return r
}

type answer struct {
	status int
	header http.Header
	body   string
}

// ways runs f with a function that sends requests, once for each way.
func ways(t *testing.T, next direct.Handler, o func() *Options, f func(t *testing.T, do func(r *http.Request) answer)) {
	t.Helper()
	make := func(next http.Handler) http.Handler {
		h, err := around(next, o())
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	plain := func(h http.Handler) func(r *http.Request) answer {
		return func(r *http.Request) answer {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			return answer{rec.Code, rec.Header(), rec.Body.String()}
		}
	}
	t.Run("plain", func(t *testing.T) { f(t, plain(make(next))) })
	t.Run("plain only", func(t *testing.T) {
		h := make(http.HandlerFunc(next.ServeHTTP))
		if _, is := h.(direct.Handler); is {
			t.Error("it is direct before a handler that is not")
		}
		f(t, plain(h))
	})
	t.Run("direct", func(t *testing.T) {
		h := make(next)
		d, is := h.(direct.Handler)
		if !is {
			t.Skip("not direct")
		}
		f(t, func(r *http.Request) answer {
			var x direct.Exchange
			x.Wire().Reset(request(r))
			if !d.ServeDirect(&x) {
				t.Error("declined")
			}
			a := x.Wire().Finish()
			all := http.Header{}
			for _, f := range a.Fields {
				all.Add(f.Name, f.Value)
			}
			return answer{a.Status, all, string(a.Body)}
		})
	})
}

func TestHandler(t *testing.T) {
	t.Parallel()
	var c *clock
	o := func() *Options {
		c = new(clock)
		return &Options{
			Store: NewMemory(&MemoryOptions{Clock: c.now}),
			Rules: []Rule{{Name: "a", Rate: Rate{2, time.Second, 2}}, {Name: "b", Rate: Rate{60, time.Minute, 100}, Key: Everyone()}},
		}
	}
	ways(t, hello, o, func(t *testing.T, do func(r *http.Request) answer) {
		for i, tt := range []struct {
			remote string
			status int
			limits []string
			after  string
		}{
			{"192.0.2.1:1", 200, []string{`"a";r=1;t=1`, `"b";r=99;t=1`}, ""},
			{"192.0.2.1:2", 200, []string{`"a";r=0;t=1`, `"b";r=98;t=2`}, ""},
			{"192.0.2.1:3", 429, []string{`"a";r=0;t=1`}, "1"},
			{"192.0.2.2:3", 200, []string{`"a";r=1;t=1`, `"b";r=97;t=3`}, ""}, // b was not charged for the refused one
		} {
			a := do(get(tt.remote))
			if a.status != tt.status || !slices.Equal(a.header["Ratelimit"], tt.limits) || a.header.Get("Retry-After") != tt.after {
				t.Errorf("%d: got %d, %v", i, a.status, a.header)
			}
			if p := a.header["Ratelimit-Policy"]; !slices.Equal(p, []string{`"a";q=2;w=1, "b";q=100;w=100`}) {
				t.Errorf("%d: policy %q", i, p)
			}
			want := "hello"
			if tt.status == 429 {
				want = "429 Too many requests; try again in 1 s\n"
			}
			if a.body != want {
				t.Errorf("%d: body %q", i, a.body)
			}
		}
		c.advance(500 * time.Millisecond)
		if a := do(get("192.0.2.1:1")); a.status != 200 {
			t.Errorf("after half a second: %d", a.status)
		}
	})
}

// Prepared Responses get the fields too.
func TestHandlerOfResponse(t *testing.T) {
	t.Parallel()
	o := func() *Options { return &Options{Rules: []Rule{{Name: "a", Rate: Rate{1, time.Hour, 3}}}} }
	ways(t, direct.NewResponse(200, nil, []byte("x")), o, func(t *testing.T, do func(r *http.Request) answer) {
		if a := do(get("192.0.2.1:1")); a.header.Get("RateLimit") != `"a";r=2;t=3600` || a.body != "x" {
			t.Errorf("got %v", a)
		}
	})
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	o := func() *Options {
		return &Options{
			Store: NewMemory(&MemoryOptions{Clock: new(clock).now}),
			Rules: []Rule{{Name: "a", Rate: Rate{1, time.Hour, 1}}, {Name: "b", Rate: Rate{2, time.Hour, 1}, Key: Everyone()}},
		}
	}
	ways(t, hello, o, func(t *testing.T, do func(r *http.Request) answer) {
		do(get("192.0.2.1:1"))
		for _, tt := range []struct{ accept, contentType string }{
			{"application/json", "application/problem+json"},
			{"application/problem+json", "application/problem+json"},
			{"", "text/plain; charset=utf-8"},
			{"text/html,application/json", "text/plain; charset=utf-8"},
			{"*/*", "text/plain; charset=utf-8"},
		} {
			a := do(get("192.0.2.1:1", "Accept", tt.accept))
			if a.status != 429 || a.header.Get("Content-Type") != tt.contentType || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Retry-After") != "3600" {
				t.Errorf("%q: got %v", tt.accept, a)
			}
			if !strings.Contains(tt.contentType, "json") {
				continue
			}
			var p refusal.Problem
			if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Status != 429 || !slices.Equal(p.Violated, []string{"a", "b"}) ||
				p.Type != "https://iana.org/assignments/http-problem-types#quota-exceeded" {
				t.Errorf("%q: %v", a.body, err)
			}
		}
		head := get("192.0.2.1:1")
		head.Method = "HEAD"
		if a := do(head); a.status != 429 || a.body != "" {
			t.Errorf("HEAD: got %v", a)
		}
	})
}

func TestCost(t *testing.T) {
	t.Parallel()
	o := func() *Options {
		return &Options{NoFields: true, Rules: []Rule{{Name: "a", Rate: Rate{1, time.Hour, 10}, Cost: func(c *filter.Call) int64 {
			switch string(c.RequestHeader("Cost")) {
			case "4":
				return 4
			case "11":
				return 11
			}
			return -1
		}}}}
	}
	ways(t, hello, o, func(t *testing.T, do func(r *http.Request) answer) {
		for i, tt := range []struct {
			cost   string
			status int
			after  bool
		}{{"4", 200, false}, {"4", 200, false}, {"4", 429, true}, {"", 200, false}, {"11", 429, false}, {"-1", 200, false}} {
			a := do(get("192.0.2.1:1", "Cost", tt.cost))
			if a.status != tt.status || (a.header.Get("Retry-After") != "") != tt.after || a.header["Ratelimit"] != nil || a.header["Ratelimit-Policy"] != nil {
				t.Errorf("%d: got %v", i, a)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	one := []byte("one")
	for _, tt := range []struct {
		name string
		key  Key
		r    *http.Request
		want string
	}{
		{"IPv4", ByAddress(), get("192.0.2.1:80"), "192.0.2.1"},
		{"IPv6 is a /64", ByAddress(), get("[2001:db8:1:2:3:4:5:6]:80"), "2001:db8:1:2::/64"},
		{"the same /64", ByAddress(), get("[2001:db8:1:2::9]:81"), "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", ByAddress(), get("[::ffff:192.0.2.1]:80"), "192.0.2.1"},
		{"zone", ByAddress(), get("[fe80::1%eth0]:80"), "fe80::/64"},
		{"without port", ByAddress(), get("192.0.2.1"), "192.0.2.1"},
		{"unix socket", ByAddress(), get("@"), "@"},
		{"unix socket with a name", ByAddress(), get("@mine-17"), "@"},
		{"unix socket with a path", ByAddress(), get("/tmp/mine-17"), "@"},
		{"nothing", ByAddress(), get(""), "@"},
		{"prefix", ByPrefix(24, 48), get("192.0.2.1:80"), "192.0.2.0/24"},
		{"prefix of IPv6", ByPrefix(24, 48), get("[2001:db8:1:2::9]:81"), "2001:db8:1::/48"},
		{"whole IPv6", ByPrefix(32, 128), get("[2001:db8:1:2::9]:81"), "2001:db8:1:2::9"},
		{"everyone", Everyone(), get("192.0.2.1:80"), "all"},
		{"header", ByHeader("x-key"), get("192.0.2.1:80", "X-Key", "k"), "=k"},
		{"no header", ByHeader("x-key"), get("192.0.2.1:80"), "192.0.2.1"},
		{"empty header", ByHeader("x-key"), get("192.0.2.1:80", "X-Key", ""), "192.0.2.1"},
		{"header like an address", ByHeader("x-key"), get("192.0.2.1:80", "X-Key", "192.0.2.2"), "=192.0.2.2"},
		{"request", ByRequest(func(dst []byte, c *filter.Call) []byte { return append(dst, c.Path()...) }), get(""), "=/a"},
		{"request without", ByRequest(func(dst []byte, _ *filter.Call) []byte { return dst }), get("192.0.2.1:80"), "192.0.2.1"},
		{"func", ByFunc(func(r *http.Request) string { return r.URL.RawQuery }), get(""), "=b"},
		{"func without", ByFunc(func(r *http.Request) string { return "" }), get("192.0.2.1:80"), "192.0.2.1"},
		{"route", ByRoute(), &http.Request{Pattern: "GET /{x}", RemoteAddr: "@"}, "=GET /{x}"},
		{"no route", ByRoute(), get("192.0.2.1:80"), "192.0.2.1"},
		{"IPv4 in IPv6 with a zone", ByAddress(), get("[::ffff:192.0.2.1%eth0]:80"), "192.0.2.1"},
		{"IPv4 in IPv6, a prefix", ByPrefix(24, 48), get("[::ffff:192.0.2.1]:80"), "192.0.2.0/24"},
		{"a long header", ByHeader("x-key"), get("192.0.2.1:80", "X-Key", strings.Repeat("k", 1<<20)), "=" + strings.Repeat("k", 1<<20)},
	} {
		var c filter.Call
		c.Wire().View(httptest.NewRecorder(), tt.r)
		got, secret := tt.key.append(slices.Clone(one), &c)
		// Keys from a client or a function are not readable; names of routes
		// are the server's.
		if string(got) != "one"+tt.want || secret != (got[3] == '=' && tt.name != "route") {
			t.Errorf("%s: got %.99q, %v", tt.name, got, secret)
		}
	}
}

// around wraps next with New.
func around(next http.Handler, o *Options) (http.Handler, error) {
	limit, err := New(o)
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func TestHandlerErrors(t *testing.T) {
	t.Parallel()
	good := Rate{1, time.Second, 1}
	rules := func(all ...Rule) *Options { return &Options{Rules: all} }
	keyed := func(k Key) *Options { return rules(Rule{Name: "a", Rate: good, Key: k}) }
	for want, o := range map[string]*Options{
		"Rules: there are none":                                   nil,
		"Rules: there":                                            {},
		`name ""`:                                                 rules(Rule{Rate: good}),
		"name ":                                                   rules(Rule{Name: `"`, Rate: good}),
		"a: rate ":                                                rules(Rule{Name: "a"}),
		`Rules: two have the name "a"`:                            rules(Rule{Name: "a", Rate: good}, Rule{Name: "a", Rate: good}),
		"Rules: a: Key: ByPrefix(-1, 64): ":                       keyed(ByPrefix(-1, 64)),
		"Rules: a: Key: ByPrefix(33, 64): ":                       keyed(ByPrefix(33, 64)),
		"Rules: a: Key: ByPrefix(32, -1): ":                       keyed(ByPrefix(32, -1)),
		"Rules: a: Key: ByPrefix(32, 129): ":                      keyed(ByPrefix(32, 129)),
		"Rules: a: Key: ByFunc: no function":                      keyed(ByFunc(nil)),
		"Rules: a: Key: ByRequest: no function":                   keyed(ByRequest(nil)),
		`Rules: a: Key: ByHeader: no request has a field ""`:      keyed(ByHeader("")),
		`Rules: a: Key: ByHeader: no request has a field "host"`:  keyed(ByHeader("host")),
		`Rules: a: Key: ByHeader: no request has a field "X Key"`: keyed(ByHeader("X Key")),
	} {
		mw, err := New(o)
		if mw != nil || err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+want) {
			t.Errorf("got %v, want an error %q", err, "ratelimit: "+want)
		}
		func() {
			defer func() {
				if said, _ := recover().(error); said == nil || said.Error() != err.Error() {
					t.Errorf("Must panics with %v, want %v", said, err)
				}
			}()
			Must(New(o))
		}()
	}
	for name, r := range map[string]Rule{"func": {Key: ByFunc(nil2)}, "route": {Key: ByRoute()}} {
		r.Name, r.Rate = "a", good
		h, err := around(hello, &Options{Rules: []Rule{r}})
		if _, is := h.(direct.Handler); is != (name == "route") || err != nil {
			t.Errorf("%s: direct is %v, %v", name, is, err)
		}
	}
}

func nil2(*http.Request) string { return "" }

// maybe declines every other request on the fast path.
type maybe struct{ n atomic.Int64 }

func (m *maybe) ServeDirect(x *direct.Exchange) bool {
	if m.n.Add(1)%2 == 0 {
		return false
	}
	hello(x)
	return true
}

func (m *maybe) ServeHTTP(w http.ResponseWriter, r *http.Request) { hello.ServeHTTP(w, r) }

// A request that is left to the ordinary path is charged once.
func TestDeclinedIsChargedOnce(t *testing.T) {
	t.Parallel()
	var c clock
	h, err := around(&maybe{}, &Options{Store: NewMemory(&MemoryOptions{Clock: c.now}), Rules: []Rule{{Name: "a", Rate: Rate{1, time.Hour, 10}}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		var x direct.Exchange
		r := get("192.0.2.1:1")
		x.Wire().Reset(request(r))
		status := 0
		if h.(direct.Handler).ServeDirect(&x) {
			status = x.Wire().Finish().Status
		} else {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			status = rec.Code
		}
		if want := map[bool]int{true: 200, false: 429}[i < 10]; status != want {
			t.Errorf("%d: %d, want %d", i, status, want)
		}
	}
}

// failing is a store whose policy has decided.
type failing struct {
	Memory
	d Decision
}

func (f *failing) Take(_ context.Context, claims []Claim) error {
	for i := range claims {
		claims[i].Decision = f.d
	}
	return errors.New("away")
}

func (f *failing) Blocking() bool { return true }

func TestStoreFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		d      Decision
		status int
		after  string
	}{
		{"open", Decision{Allowed: true, Failed: true, Limit: 5, Remaining: 5}, 200, ""},
		{"closed", Decision{Failed: true, Limit: 5, RetryAfter: time.Second}, 503, "1"},
		{"local", Decision{Failed: true, Limit: 5, Reset: time.Minute, RetryAfter: 2 * time.Second}, 429, "2"},
	} {
		o := func() *Options {
			return &Options{Store: &failing{d: tt.d}, Rules: []Rule{{Name: "a", Rate: Rate{1, time.Hour, 5}}}}
		}
		ways(t, hello, o, func(t *testing.T, do func(r *http.Request) answer) {
			a := do(get("192.0.2.1:1", "Accept", "application/json"))
			if a.status != tt.status || a.header.Get("Retry-After") != tt.after || a.header["Ratelimit"] != nil {
				t.Errorf("%s: got %v", tt.name, a)
			}
		})
	}
}

// On the fast path nothing is allocated, but for the lines of RateLimit when
// they are first made.
func TestHandlerAllocations(t *testing.T) {
	var c clock
	o := &Options{Store: NewMemory(&MemoryOptions{Clock: c.now}), Rules: []Rule{
		{Name: "a", Rate: Rate{1000, time.Second, 1000}},
		{Name: "b", Rate: Rate{1, time.Hour, 2000}, Key: ByHeader("X-Key")},
	}}
	h, err := around(direct.HandlerFunc(func(x *direct.Exchange) {}), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, remote := range []string{"192.0.2.1:1", "[2001:db8::1]:1"} {
		r := get(remote, "X-Key", "sesame")
		var x direct.Exchange
		req := request(r)
		ask := func() {
			x.Wire().Reset(req)
			if !h.(direct.Handler).ServeDirect(&x) {
				t.Error("declined")
			}
		}
		for range 300 {
			ask()
		}
		r.RemoteAddr = strings.Replace(remote, "2", "3", 1)
		r.Header.Set("X-Key", "other")
		req = request(r)
		// Another client sees the same lines.
		if n := testing.AllocsPerRun(200, ask); n > 0 && !race.Enabled {
			t.Errorf("%s: %v allocations", remote, n)
		}
	}
	o.NoFields = true
	if h, err = around(direct.HandlerFunc(func(x *direct.Exchange) {}), o); err != nil {
		t.Fatal(err)
	}
	r := get("[2001:db8::1]:1", "X-Key", "sesame")
	var x direct.Exchange
	req := request(r)
	if n := testing.AllocsPerRun(200, func() { x.Wire().Reset(req); h.(direct.Handler).ServeDirect(&x) }); n != 0 && !race.Enabled {
		t.Errorf("without fields: %v allocations", n)
	}
}

// Two handlers, one inside of the other, both show what is left.
func TestHandlerInHandler(t *testing.T) {
	t.Parallel()
	o := func() *Options { return &Options{Rules: []Rule{{Name: "inner", Rate: Rate{1, time.Hour, 5}}}} }
	for _, plain := range []bool{false, true} {
		inner, err := around(hello, o())
		if err != nil {
			t.Fatal(err)
		}
		if plain {
			inner = http.HandlerFunc(inner.ServeHTTP)
		}
		h, err := around(inner, &Options{Rules: []Rule{{Name: "outer", Rate: Rate{1, time.Hour, 9}}}})
		if err != nil {
			t.Fatal(err)
		}
		var header http.Header
		if d, is := h.(direct.Handler); is {
			var x direct.Exchange
			x.Wire().Reset(request(get("192.0.2.1:1")))
			d.ServeDirect(&x)
			header = http.Header{}
			for _, f := range x.Wire().Finish().Fields {
				header.Add(f.Name, f.Value)
			}
		} else {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, get("192.0.2.1:1"))
			header = rec.Header()
		}
		if got := header["Ratelimit"]; !slices.Equal(got, []string{`"outer";r=8;t=3600`, `"inner";r=4;t=3600`}) {
			t.Errorf("plain %v: %q", plain, got)
		}
		if got := header["Ratelimit-Policy"]; !slices.Equal(got, []string{`"outer";q=9;w=32400`, `"inner";q=5;w=18000`}) {
			t.Errorf("plain %v: %q", plain, got)
		}
	}
}

// request returns r as a server of the fast path would have read it.
func request(r *http.Request) wire.Request {
	return wire.Request{
		Method: r.Method, Target: view.Bytes(r.RequestURI), Path: view.Bytes(r.URL.Path), RawQuery: view.Bytes(r.URL.RawQuery),
		Host: view.Bytes(r.Host), RemoteAddr: r.RemoteAddr, Fields: wire.FieldsOf(r.Header),
	}
}

// Handlers that one middleware wraps share its buckets, and stay direct.
func TestNewShared(t *testing.T) {
	t.Parallel()
	limit := Must(New(&Options{
		Store: NewMemory(&MemoryOptions{Clock: func() time.Duration { return time.Hour }}),
		Rules: []Rule{{Name: "all", Rate: Rate{Count: 2, Per: time.Hour}}},
	}))
	hello := direct.NewResponse(200, nil, []byte("hello"))
	a, b := limit(hello), limit(hello)
	if _, ok := a.(direct.Handler); !ok {
		t.Error("it is not direct")
	}
	ask := func(h http.Handler) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
		if rec.Code == 429 && rec.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		return rec.Code
	}
	for i, h := range []http.Handler{a, b, a, b} {
		if got, want := ask(h), []int{200, 200, 429, 429}[i]; got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
}
