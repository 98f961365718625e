package basicauth

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/user"
	"github.com/chert-http/chert/middleware/internal/wrap"
	"golang.org/x/crypto/bcrypt"
)

func hash(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

var who = direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("user " + user.Of(x)) })

func ask(h http.Handler, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	for _, f := range fields {
		r.Header.Add("Authorization", f)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

func directly(t *testing.T, h http.Handler, fields ...string) (status int, ok bool) {
	t.Helper()
	f := http.Header{}
	for _, v := range fields {
		f.Add("Authorization", v)
	}
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", Fields: wire.FieldsOf(f)})
	ok = h.(direct.Handler).ServeDirect(&x)
	return x.Wire().Finish().Status, ok
}

func TestAuth(t *testing.T) {
	long := strings.Repeat("x", 72)
	a, err := newAuth(Options{Users: map[string]string{"ann": hash(t, "secret"), "bob": hash(t, "a:b"), "long": hash(t, long), "": hash(t, "nameless"), "zoë": hash(t, "ö")}})
	if err != nil {
		t.Fatal(err)
	}
	h := a.wrap(who)
	for _, tt := range []struct {
		name   string
		fields []string
		status int
		body   string
	}{
		{"good", []string{basic("ann:secret")}, 200, "user ann"},
		{"scheme in any case", []string{"bAsIc  " + basic("ann:secret")[6:]}, 200, "user ann"},
		{"a colon", []string{basic("bob:a:b")}, 200, "user bob"},
		{"no name", []string{basic(":nameless")}, 200, "user "},
		{"UTF-8", []string{basic("zoë:ö")}, 200, "user zoë"},
		{"as long as may be", []string{basic("long:" + long)}, 200, "user long"},
		{"longer", []string{basic("long:" + long + "y")}, 401, ""},
		{"none", nil, 401, ""},
		{"wrong", []string{basic("ann:Secret")}, 401, ""},
		{"of another", []string{basic("bob:secret")}, 401, ""},
		{"unknown", []string{basic("eve:secret")}, 401, ""},
		{"empty", []string{basic("ann:")}, 401, ""},
		{"no colon", []string{basic("ann")}, 401, ""},
		{"not base64", []string{"Basic ***"}, 401, ""},
		{"no padding", []string{strings.TrimRight(basic("ann:secre"), "=")}, 401, ""},
		{"another scheme", []string{"Bearer " + basic("ann:secret")[6:]}, 401, ""},
		{"scheme alone", []string{"Basic"}, 401, ""},
		{"NUL", []string{basic("ann:secret\x00")}, 401, ""},
		{"line break in the name", []string{basic("a\nnn:secret")}, 401, ""},
		{"huge", []string{basic("ann:" + strings.Repeat("x", 5000))}, 401, ""},
		{"two", []string{basic("ann:secret"), basic("ann:secret")}, 400, ""},
	} {
		for range 2 { // the second time from the cache
			rec := ask(h, tt.fields...)
			if rec.Code != tt.status || tt.body != "" && rec.Body.String() != tt.body {
				t.Errorf("%s: got %d %q", tt.name, rec.Code, rec.Body)
			}
			if got := rec.Header().Get("Www-Authenticate"); (got == `Basic realm="restricted", charset="UTF-8"`) != (tt.status != 200) {
				t.Errorf("%s: challenge %q", tt.name, got)
			}
			status, ok := directly(t, h, tt.fields...)
			if ok && status != tt.status {
				t.Errorf("%s: direct: %d", tt.name, status)
			}
			if tt.status == 200 && !ok {
				t.Errorf("%s: not remembered", tt.name)
			}
		}
	}
	if rec := ask(h, basic("ann:secret")); rec.Code != 200 {
		t.Errorf("got %d", rec.Code)
	}
	if _, err := newAuth(Options{Users: map[string]string{"ann": "secret"}}); err == nil {
		t.Error("a hash that is none is taken")
	}
}

// bcrypt is done once for good credentials, each time for wrong ones, and for
// unknown names with the same cost.
func TestCache(t *testing.T) {
	a, err := newAuth(Options{Users: map[string]string{"ann": hash(t, "secret")}, CacheSize: 2, CacheFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	a.cache.now = func() time.Time { return now }
	var done int
	a.compare = func(h, p []byte) error {
		done++
		if c, err := bcrypt.Cost(h); err != nil || c != bcrypt.MinCost {
			t.Errorf("cost %d, %v", c, err)
		}
		return bcrypt.CompareHashAndPassword(h, p)
	}
	h := a.wrap(who)
	for _, tt := range []struct {
		credentials string
		after       time.Duration
		status      int
		done        int
	}{
		{"ann:secret", 0, 200, 1}, {"ann:secret", 59 * time.Second, 200, 0}, {"ann:secret", time.Second, 200, 1},
		{"ann:wrong", 0, 401, 1}, {"ann:wrong", 0, 401, 1}, {"eve:secret", 0, 401, 1}, {"eve:secret", 0, 401, 1},
		{"ann:secret", 0, 200, 0},
	} {
		done, now = 0, now.Add(tt.after)
		if rec := ask(h, basic(tt.credentials)); rec.Code != tt.status || done != tt.done {
			t.Errorf("%s: got %d, %d hashes", tt.credentials, rec.Code, done)
		}
	}
	// It is bounded.
	for i := range 10 {
		a.cache.add(cacheKey{byte(i)}, "x")
		if n := len(a.cache.m); n > 2 {
			t.Fatalf("%d in the cache", n)
		}
	}
	now = now.Add(time.Hour)
	a.cache.add(cacheKey{99}, "x")
	if n := len(a.cache.m); n != 1 {
		t.Errorf("%d in the cache, and all but one are over", n)
	}
	off, err := newAuth(Options{Users: a.o.Users, CacheSize: -1})
	if err != nil {
		t.Fatal(err)
	}
	if ask(off.wrap(who), basic("ann:secret")); len(off.cache.m) != 0 {
		t.Error("remembered")
	}
}

// For options that could never work New returns an error: it does not panic, nor
// leave the error to the first request.
func TestOptionsRefused(t *testing.T) {
	ann := map[string]string{"ann": hash(t, "secret")}
	tests := []struct {
		o    Options
		want string
	}{
		{Options{Users: ann, Cost: -1}, "Cost: "},
		{Options{Users: ann, Cost: bcrypt.MaxCost + 1}, "Cost: crypto/bcrypt: cost 32 is outside"},
		{Options{Cost: bcrypt.MaxCost + 1, Lookup: func(string) (string, bool) { return "", false }}, "Cost: crypto/bcrypt: cost 32 is outside"},
		{Options{Users: map[string]string{"ann": "secret"}}, `Users: the hash of "ann"`},
		{Options{Users: map[string]string{"ann": "secret"}}, "basicauth.Hash"},
		{Options{Users: map[string]string{"ann": "secret"}}, "htpasswd -nB"},
		{Options{}, "neither Users nor Lookup"},
		{Options{Users: map[string]string{}}, "neither Users nor Lookup"},
		{Options{Users: map[string]string{"a:b": hash(t, "secret")}}, `Users: the name "a:b" could never be sent`},
		{Options{Users: ann, Realm: "a\r\nb"}, "Realm: "},
		{Options{Users: ann, Realm: "caf\u00e9"}, "is not printable ASCII"},
	}
	for _, tt := range tests {
		if mw, err := New(&tt.o); mw != nil || err == nil || !strings.HasPrefix(err.Error(), "basicauth: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q in it", err, tt.want)
		}
	}
	if _, err := New(nil); err == nil || !strings.Contains(err.Error(), "neither Users nor Lookup") {
		t.Errorf("no options: got %v", err)
	}
}

// New accepts the hashes of Hash and htpasswd.
// Guessing at many routes takes no more processors than at one.
func TestSharedSlots(t *testing.T) {
	t.Parallel()
	made := func(parallel, queue int) *wrap.Slots {
		a, err := newAuth(Options{Users: map[string]string{"ann": string(dummyHash(bcrypt.MinCost))}, Parallel: parallel, Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		return a.slots
	}
	first, second := made(0, 0), made(0, 0)
	if first == nil || first != second {
		t.Error("the default is not shared")
	}
	own, other := made(2, 0), made(2, 0)
	if own == first || own == other || made(0, 2) == first {
		t.Error("one's own is shared")
	}
	if made(-1, 0) != nil {
		t.Error("a limit that was switched off")
	}
}

// A hash of any cost is there at once, and is one that bcrypt compares.
func TestDummyHash(t *testing.T) {
	t.Parallel()
	if err := bcrypt.CompareHashAndPassword(dummyHash(bcrypt.MinCost), []byte("p")); err != bcrypt.ErrMismatchedHashAndPassword {
		t.Error(err)
	}
	if c, err := bcrypt.Cost(dummyHash(bcrypt.MaxCost)); c != bcrypt.MaxCost || err != nil {
		t.Error(c, err)
	}
	if _, err := New(&Options{Users: map[string]string{"ann": string(dummyHash(bcrypt.MaxCost))}}); err != nil {
		t.Error(err)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	made, err := Hash("sesame, öffne dich")
	if err != nil {
		t.Fatal(err)
	}
	// htpasswd -nbB -C 4 ann sesame
	a, err := newAuth(Options{Users: map[string]string{"ann": made, "htpasswd": "$2y$04$96iqhk5.DeHKXFRcCHNCleEVwOpglFuHzhDqRXRNf6.t1waRFiHne"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		credentials string
		status      int
	}{{"ann:sesame, öffne dich", 200}, {"ann:sesame", 401}, {"htpasswd:sesame", 200}, {"htpasswd:other", 401}} {
		if rec := ask(a.wrap(who), basic(tt.credentials)); rec.Code != tt.status {
			t.Errorf("%s: got %d", tt.credentials, rec.Code)
		}
	}
	for _, tt := range []struct{ password, want string }{
		{"", "is empty"}, {strings.Repeat("a", 73), "73 bytes"}, {"a\nb", "control characters"}, {"a\x7f", "control characters"},
	} {
		if h, err := Hash(tt.password); err == nil || h != "" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %q, %v", tt.password, h, err)
		}
	}
	if _, err := Hash(strings.Repeat("a", 72)); err != nil {
		t.Error(err)
	}
}

// Guessing passwords uses no more than its share of the processors.
func TestParallel(t *testing.T) {
	t.Run("no limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, err := newAuth(Options{Lookup: func(name string) (string, bool) { return hashes[name], name == "ann" }, Cost: bcrypt.MinCost, Parallel: -1, Queue: -1})
			if err != nil {
				t.Fatal(err)
			}
			enter := make(chan struct{})
			a.compare = func(h, p []byte) error { <-enter; return bcrypt.ErrMismatchedHashAndPassword }
			codes := make(chan int, 100)
			for i := range cap(codes) {
				go func() { codes <- ask(a.wrap(who), basic(fmt.Sprintf("eve:%d", i))).Code }()
			}
			synctest.Wait()
			close(enter)
			for range cap(codes) {
				if c := <-codes; c != 401 {
					t.Errorf("got %d", c)
				}
			}
		})
	})
	synctest.Test(t, func(t *testing.T) {
		a, err := newAuth(Options{Lookup: func(name string) (string, bool) { return hashes[name], name == "ann" }, Cost: bcrypt.MinCost, Parallel: 2, Queue: 3})
		if err != nil {
			t.Fatal(err)
		}
		var running, most atomic.Int64
		enter := make(chan struct{})
		a.compare = func(h, p []byte) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-enter
			return bcrypt.ErrMismatchedHashAndPassword
		}
		codes := make(chan int, 20)
		for i := range 7 {
			go func() { codes <- ask(a.wrap(who), basic(fmt.Sprintf("eve:%d", i))).Code }()
		}
		synctest.Wait()
		if n := len(codes); n != 2 || <-codes != 503 || <-codes != 503 {
			t.Errorf("%d were refused", n)
		}
		close(enter)
		for range 5 {
			if c := <-codes; c != 401 {
				t.Errorf("got %d", c)
			}
		}
		if most.Load() != 2 {
			t.Errorf("%d at a time", most.Load())
		}
	})
}

var hashes = map[string]string{"ann": "not bcrypt"}

func TestServers(t *testing.T) {
	a, err := newAuth(Options{Users: map[string]string{"ann": hash(t, "secret")}})
	if err != nil {
		t.Fatal(err)
	}
	h := a.wrap(who)
	std := httptest.NewServer(h)
	defer std.Close()
	ours := chertest.NewServer(h)
	defer ours.Close()
	for name, s := range map[string]struct {
		url    string
		client *http.Client
	}{"net/http": {std.URL, std.Client()}, "chert": {ours.URL, ours.Client()}} {
		for password, want := range map[string]int{"secret": 200, "wrong": 401} {
			for range 3 {
				req, _ := http.NewRequest("GET", s.url, nil)
				req.SetBasicAuth("ann", password)
				res, err := s.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s, %s: got %d", name, password, res.StatusCode)
				}
			}
		}
	}
}

func BenchmarkCached(b *testing.B) {
	h, _ := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	a, err := newAuth(Options{Users: map[string]string{"ann": string(h)}})
	if err != nil {
		b.Fatal(err)
	}
	d := a.wrap(who)
	ask(d, basic("ann:secret"))
	r := wire.Request{Method: "GET", Fields: wire.FieldsOf(http.Header{"Authorization": {basic("ann:secret")}})}
	var x direct.Exchange
	b.ReportAllocs()
	for b.Loop() {
		x.Wire().Reset(r)
		d.(direct.Handler).ServeDirect(&x)
	}
}
