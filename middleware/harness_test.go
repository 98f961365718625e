package middleware

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// request makes a request; fields are pairs of name and value.
func request(method, target, body string, fields ...string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, r)
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	return req
}

// An answer is the response to a request. Header is canonical.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

// plain calls ServeHTTP, without a server.
func plain(h http.Handler, r *http.Request) answer {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return answer{rec.Code, rec.Header(), rec.Body.String()}
}

// exchange returns r as an exchange.
func exchange(x *direct.Exchange, r *http.Request) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	x.Wire().Reset(wire.Request{
		Method: r.Method, Target: []byte(r.RequestURI), Path: []byte(r.URL.Path), RawQuery: []byte(r.URL.RawQuery),
		Host: []byte(r.Host), Body: body, RemoteAddr: r.RemoteAddr, Fields: wire.FieldsOf(r.Header), TLS: r.TLS != nil,
	})
}

// sent notifies the watcher of a as a server does.
func sent(a wire.Answer) {
	if a.Watcher != nil {
		a.Watcher.Sent(wire.Delivery{Status: a.Status, Body: a.Length(), Complete: true})
	}
}

// directly calls ServeDirect. ok is false if that declined.
func directly(t testing.TB, h http.Handler, r *http.Request) (a answer, ok bool) {
	t.Helper()
	d, is := h.(direct.Handler)
	if !is {
		t.Fatal("no direct.Handler")
	}
	var x direct.Exchange
	exchange(&x, r)
	defer x.Wire().Drop() // after a panic
	if !d.ServeDirect(&x) {
		return a, false
	}
	f := x.Wire().Finish()
	sent(f)
	a = answer{f.Status, http.Header{}, string(f.Body)}
	for _, field := range f.Fields {
		a.Header.Add(field.Name, field.Value)
	}
	return a, true
}

// hello is direct.
var hello = direct.HandlerFunc(func(x *direct.Exchange) {
	x.SetHeader("Content-Type", "text/plain")
	x.WriteString("hello")
})

type hf = http.HandlerFunc

// plainHello is the same as a plain handler.
var plainHello = hf(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain")
	io.WriteString(w, "hello")
})

// ways runs f with a function that sends requests, for each way and each kind
// of handler: h is wrapped by mw, and must be direct.
func ways(t *testing.T, mw func(http.Handler) http.Handler, h direct.Handler, f func(t *testing.T, do func(r *http.Request) answer)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) { f(t, func(r *http.Request) answer { return plain(mw(h), r) }) })
	t.Run("plain only", func(t *testing.T) { f(t, func(r *http.Request) answer { return plain(mw(hf(h.ServeHTTP)), r) }) })
	t.Run("direct", func(t *testing.T) {
		f(t, func(r *http.Request) answer {
			a, ok := directly(t, mw(h), r)
			if !ok {
				t.Error("declined")
			}
			return a
		})
	})
}

// servers runs f on net/http and on chert, with loops.
func servers(t *testing.T, h http.Handler, f func(t *testing.T, url string, c *http.Client)) {
	t.Helper()
	t.Run("net/http", func(t *testing.T) {
		s := httptest.NewServer(h)
		defer s.Close()
		f(t, s.URL, s.Client())
	})
	t.Run("chert", func(t *testing.T) {
		s := chertest.NewServer(h)
		defer s.Close()
		f(t, s.URL, s.Client())
	})
}

// refused checks that a constructor has returned nothing but an error that begins with
// the package, itself and the field.
func refused(t *testing.T, mw func(http.Handler) http.Handler, err error, prefix string) {
	t.Helper()
	if mw != nil || err == nil || !strings.HasPrefix(err.Error(), prefix) {
		t.Errorf("got middleware %v and %v, want an error %q", mw != nil, err, prefix+"...")
	}
}

// panics reports whether f panics.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
