package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
)

type key struct{}

// odd is a name that is not canonical.
var odd = "x-odd"

// Fields that middleware keeps are in every response, and the same on both
// ways.
func TestKeptFields(t *testing.T) {
	sent := NewResponse(200, http.Header{"X-Own": {"response"}, "Vary": {"Accept"}}, []byte("sent"))
	keep := func(x *Exchange) {
		x.Keep(NewName("x-kept"), "kept")
		x.Keep(NewName("X-Own"), "kept")
		x.Keep(NewName("Vary"), "Origin")
	}
	for _, tt := range []struct {
		name   string
		f      func(x *Exchange)
		fields string
	}{
		{"handler sets nothing", func(x *Exchange) {}, "Content-Length: 0\nVary: Origin\nX-Kept: kept\nX-Own: kept\n"},
		{"handler replaces", func(x *Exchange) { x.SetHeader("X-Own", "handler"); x.SetHeader("Vary", "A") }, "Content-Length: 0\nVary: A\nX-Kept: kept\nX-Own: handler\n"},
		{"handler adds", func(x *Exchange) { x.AddHeader("X-Own", "handler"); x.AddHeader("Vary", "A") }, "Content-Length: 0\nVary: Origin\nVary: A\nX-Kept: kept\nX-Own: kept\nX-Own: handler\n"},
		{"handler removes", func(x *Exchange) { x.DelHeader("x-own"); x.DelHeader("x-none") }, "Content-Length: 0\nVary: Origin\nX-Kept: kept\n"},
		{"Send keeps", func(x *Exchange) { x.SetHeader("Lost", "1"); x.Send(sent) }, "Content-Length: 4\nContent-Type: text/plain; charset=utf-8\nVary: Origin\nVary: Accept\nX-Kept: kept\nX-Own: response\n"},
		{"Discard keeps", func(x *Exchange) { x.SetStatus(500); x.SetHeader("Lost", "1"); x.WriteString("lost"); x.Discard() }, "Content-Length: 0\nVary: Origin\nX-Kept: kept\nX-Own: kept\n"},
	} {
		a := answer("GET", func(x *Exchange) { keep(x); tt.f(x) })
		if lines(a.Fields) != tt.fields || a.Status != 200 || a.Ready != nil {
			t.Errorf("%s: direct: %d\n%s", tt.name, a.Status, lines(a.Fields))
		}
		rec := httptest.NewRecorder()
		for n, v := range map[string]string{"X-Kept": "kept", "X-Own": "kept", "Vary": "Origin"} {
			rec.Header().Set(n, v)
		}
		rec.Header()[odd] = []string{"1"} // spelled as it is
		rec.Header().Set("Connection", "close")
		Respond(rec, httptest.NewRequest("GET", "/", nil), tt.f)
		if rec.Header().Get("Connection") != "close" || rec.Header()[odd] == nil {
			t.Errorf("%s: plain: lost what is the server's: %v", tt.name, rec.Header())
		}
		rec.Header().Del("Connection")
		delete(rec.Header(), odd)
		var fields []Field
		for n, vs := range rec.Header() {
			for _, v := range vs {
				fields = append(fields, Field{n, v})
			}
		}
		sortFields(fields)
		if lines(fields) != tt.fields {
			t.Errorf("%s: plain:\n%s", tt.name, lines(fields))
		}
	}
	// A Response without kept fields is sent with its cached head.
	if a := answer("GET", func(x *Exchange) { x.Send(sent) }); a.Ready != sent {
		t.Error("the Response's own head is not used")
	}
	// A plain response made from a Response is the same.
	rec := httptest.NewRecorder()
	rec.Header().Set("X-Own", "outer")
	rec.Header().Set("Vary", "Origin")
	sent.ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	if h := rec.Header(); len(h["X-Own"]) != 1 || h.Get("X-Own") != "response" || len(h["Vary"]) != 2 {
		t.Errorf("got %v", h)
	}
}

func TestKeptDate(t *testing.T) {
	sent := NewResponse(200, nil, nil)
	if a := answer("GET", func(x *Exchange) { x.Keep(NewName("Date"), "now"); x.Send(sent) }); !a.HasDate {
		t.Error("the date is not seen")
	}
}

func TestValues(t *testing.T) {
	var x Exchange
	x.Reset(Request{})
	if x.Value(key{}) != nil {
		t.Error("a value from nowhere")
	}
	x.SetValue(key{}, "1")
	x.SetValue(key{}, "2")
	if x.Value(key{}) != "2" {
		t.Errorf("got %v", x.Value(key{}))
	}
	x.Keep(NewName("A"), "1")
	x.Reset(Request{})
	if x.Value(key{}) != nil || x.GetHeader("A") != "" {
		t.Error("left behind")
	}
	r := httptest.NewRequest("GET", "/", nil)
	r = r.WithContext(context.WithValue(r.Context(), key{}, "ctx"))
	Respond(httptest.NewRecorder(), r, func(x *Exchange) {
		if x.Value(key{}) != "ctx" {
			t.Errorf("got %v", x.Value(key{}))
		}
	})
}

func TestContent(t *testing.T) {
	sent := NewResponse(201, http.Header{"A": {"1"}}, []byte("sent"))
	a := answer("GET", func(x *Exchange) {
		x.WriteString("body")
		if string(x.ResponseBody()) != "body" || x.Ready() != nil || x.HasFile() {
			t.Error("body is not seen")
		}
		x.SetResponseBody([]byte("other"))
		if string(x.ResponseBody()) != "other" {
			t.Error("body is not changed")
		}
		x.Keep(NewName("B"), "2")
		x.Send(sent)
		for f := range x.ResponseFields {
			if f.Name == "A" && f.Value != "1" || f.Name == "B" && f.Value != "2" {
				t.Errorf("got %v", f)
			}
			if f.Name == "B" {
				break
			}
		}
		if string(x.ResponseBody()) != "sent" || x.Ready() != sent || x.GetHeader("A") != "1" {
			t.Error("the Response is not seen")
		}
	})
	if a.Status != 201 || string(a.Body) != "sent" {
		t.Errorf("got %v", a)
	}
}

func TestDerive(t *testing.T) {
	r := NewResponse(200, http.Header{"A": {"1"}}, []byte("x"))
	made := 0
	derive := func() *Response {
		return r.Derive("k", func(r *Response) *Response {
			made++
			return NewResponse(r.Status(), r.Header(), append([]byte("y"), r.Body()...))
		})
	}
	if d := derive(); d != derive() || made != 1 || string(d.Body()) != "yx" || d.Header().Get("A") != "1" {
		t.Errorf("made %d times", made)
	}
	if r.Derive("none", func(*Response) *Response { return nil }) != nil {
		t.Error("not nil")
	}
}

// Middleware that is made again and again derives under ever new keys.
func TestDeriveIsBounded(t *testing.T) {
	t.Parallel()
	r := NewResponse(200, nil, []byte("x"))
	for i := range 10_000 {
		made := 0
		for range 2 {
			r.Derive(strconv.Itoa(i), func(r *Response) *Response { made++; return r })
		}
		if made != 1 || len(r.derived.m) > maxDerived {
			t.Fatalf("%d: made %d times, %d are kept", i, made, len(r.derived.m))
		}
	}
}

func TestKeptAllocations(t *testing.T) {
	sent := NewResponse(200, http.Header{"X-Own": {"response"}}, []byte("sent"))
	var x Exchange
	if n := testing.AllocsPerRun(100, func() {
		x.Reset(Request{Method: "GET"})
		x.Keep(NewName("X-Kept"), "kept")
		x.SetValue(key{}, sent)
		x.Send(sent)
		x.Finish()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
