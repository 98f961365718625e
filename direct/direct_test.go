package direct_test

import (
	"errors"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// answer returns the response of a handler, as a server sees it.
func answer(method string, f func(x *direct.Exchange)) wire.Answer {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: method})
	f(&x)
	return x.Wire().Finish()
}

func TestHealth(t *testing.T) {
	var ill error
	h := direct.Health(func() error { return ill })
	for _, tt := range []struct {
		method string
		ill    error
		status int
		body   string
	}{
		{"GET", nil, 200, "ok\n"}, {"HEAD", nil, 200, ""},
		{"GET", errors.New("secret"), 503, "unavailable\n"}, {"HEAD", errors.New("secret"), 503, ""},
		{"POST", nil, 405, "method not allowed\n"}, {"DELETE", errors.New("secret"), 405, "method not allowed\n"},
	} {
		ill = tt.ill
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(tt.method, "/", nil))
		if rec.Code != tt.status || rec.Body.String() != tt.body || rec.Header().Get("Cache-Control") != "no-store" || (tt.status == 405) != (rec.Header().Get("Allow") == "GET, HEAD") {
			t.Errorf("%s: got %d %v %q", tt.method, rec.Code, rec.Header(), rec.Body)
		}
		a := answer(tt.method, func(x *direct.Exchange) {
			if !h.ServeDirect(x) {
				t.Error("declined")
			}
		})
		if a.Status != tt.status || string(a.Body) != tt.body {
			t.Errorf("%s: got %d %q", tt.method, a.Status, a.Body)
		}
	}
}

// QueryValue agrees with net/url.
func FuzzQueryValue(f *testing.F) {
	for _, query := range []string{
		"", "a", "a=", "a=1", "a=1&a=2", "b=1&a=2", "a=1;b=2&a=3", "&&a=1", "%61=1", "a=%", "a=%&a=2", "a=1+2%203", "%=1&a=2", "=1", "a=b=c", "a%3d=1", "A=1", "+=1",
	} {
		f.Add(query, "a")
		f.Add(query, "")
		f.Add(query, " ")
	}
	f.Fuzz(func(t *testing.T, query, name string) {
		var x direct.Exchange
		x.Wire().Reset(wire.Request{RawQuery: []byte(query)})
		got := x.QueryValue(name)
		values, _ := url.ParseQuery(query)
		if want := values.Get(name); string(got) != want || (got != nil) != values.Has(name) {
			t.Errorf("%q of %q: got %q, want %q", name, query, got, want)
		}
	})
}

func TestQueryValueAllocations(t *testing.T) {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{RawQuery: []byte("page=2&q=stone&sort=asc")})
	if n := testing.AllocsPerRun(100, func() { x.QueryValue("sort") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestJSON(t *testing.T) {
	hello := struct {
		Name string `json:"name"`
	}{"<stone>"}
	for _, method := range []string{"GET", "HEAD"} {
		a := answer(method, func(x *direct.Exchange) {
			x.SetStatus(201)
			x.WriteString("not this")
			if err := x.JSON(hello); err != nil {
				t.Error(err)
			}
		})
		body := "{\"name\":\"\\u003cstone\\u003e\"}\n"
		if method == "HEAD" {
			body = ""
		}
		if a.Status != 201 || string(a.Body) != body || len(a.Fields) != 2 || a.Fields[0].Value != "29" || a.Fields[1].Value != "application/json" {
			t.Errorf("%s: got %d %v %q", method, a.Status, a.Fields, a.Body)
		}
	}
	a := answer("GET", func(x *direct.Exchange) {
		x.WriteString("this")
		if x.JSON(func() {}) == nil {
			t.Error("a function was encoded")
		}
	})
	if string(a.Body) != "this" {
		t.Errorf("got %q", a.Body)
	}
}
