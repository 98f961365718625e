package middleware

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

func TestChoose(t *testing.T) {
	t.Parallel()
	is := func(status int) http.Handler { return direct.NewResponse(status, nil, nil) }
	h, err := Choose(is(200),
		Choice{Condition{Header: map[string]string{"X-Mobile": "*"}, From: prefixes("192.0.2.0/24")}, is(201)},
		Choice{Condition{Header: map[string]string{"x-version": "2"}}, is(202)},
		Choice{Condition{Cookie: map[string]string{"beta": "yes"}}, is(203)},
		Choice{Condition{Query: map[string]string{"a b": "c&d"}}, is(206)},
		Choice{Condition{FromLocal: true}, is(207)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, target string
		fields       []string
		status       int
	}{
		{"198.51.100.1:1", "/", nil, 200},
		{"192.0.2.1:1", "/", []string{"x-mobile", ""}, 201},
		{"192.0.2.1:1", "/", nil, 200},
		{"198.51.100.1:1", "/", []string{"X-Mobile", "1"}, 200},
		{"192.0.2.1:1", "/", []string{"X-Mobile", "1", "X-Version", "2"}, 201}, // the first
		{"198.51.100.1:1", "/", []string{"X-Version", "2"}, 202},
		{"198.51.100.1:1", "/", []string{"X-Version", "1", "X-Version", "2"}, 202},
		{"198.51.100.1:1", "/", []string{"X_Version", "2"}, 200},
		{"198.51.100.1:1", "/", []string{"X-Version", "2, 1"}, 200},
		{"198.51.100.1:1", "/", []string{"Cookie", "a=b; beta=yes"}, 203},
		{"198.51.100.1:1", "/", []string{"Cookie", "a=b", "Cookie", "beta=yes"}, 203},
		{"198.51.100.1:1", "/", []string{"Cookie", "beta=no; beta=yes"}, 203},
		{"198.51.100.1:1", "/", []string{"Cookie", "xbeta=yes; beta; beta=yess; Beta=yes"}, 200},
		{"198.51.100.1:1", "/?a+b=c%26d", nil, 206},
		{"198.51.100.1:1", "/?a%20b=x&a+b=c%26d", nil, 200}, // the first counts
		{"@", "/", nil, 207},
		{"nonsense", "/", nil, 200},
	} {
		r := request("GET", tt.target, "", tt.fields...)
		r.RemoteAddr = tt.from
		if a := plain(h, r); a.Status != tt.status {
			t.Errorf("%+v: %d", tt, a.Status)
		}
		if a, ok := directly(t, h, r); !ok || a.Status != tt.status {
			t.Errorf("%+v: direct: %d", tt, a.Status)
		}
	}
	// One that is not direct takes the fast path from all.
	h, err = Choose(is(200), Choice{Condition{FromLocal: true}, http.NotFoundHandler()})
	if _, ok := h.(direct.Handler); ok || err != nil {
		t.Error("direct", err)
	}
}

func TestChooseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []Condition{
		{}, {Header: map[string]string{"a b": "*"}}, {Header: map[string]string{"": "*"}}, {Header: map[string]string{"HOST": "*"}},
		{Cookie: map[string]string{"a=b": "*"}}, {From: []netip.Prefix{{}}},
	} {
		if h, err := Choose(http.NotFoundHandler(), Choice{c, http.NotFoundHandler()}); h != nil || err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	if h, err := Choose(nil); h != nil || err == nil || !strings.Contains(err.Error(), "otherwise is nil") {
		t.Error("otherwise:", h, err)
	}
	to := func(h http.Handler) Choice { return Choice{Condition{FromLocal: true}, h} }
	h, err := Choose(http.NotFoundHandler(), to(http.NotFoundHandler()), to(nil))
	if h != nil || err == nil || !strings.Contains(err.Error(), "choice 1: Handler is nil") {
		t.Error("handler:", h, err)
	}
}

func TestChooseAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	ok := direct.NewResponse(200, nil, nil)
	h := Must(Choose(ok, Choice{Condition{Header: map[string]string{"X": "1"}, Cookie: map[string]string{"c": "v"}, Query: map[string]string{"q": "v"},
		From: prefixes("192.0.2.0/24")}, ok})).(direct.Handler)
	var x direct.Exchange
	r := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), RawQuery: []byte("q=v"), RemoteAddr: "192.0.2.1:1234",
		Fields: wire.FieldsOf(http.Header{"X": {"1"}, "Cookie": {"a=b; c=v"}})}
	if n := testing.AllocsPerRun(100, func() {
		x.Wire().Reset(r)
		h.ServeDirect(&x)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Over HTTP/2, where a client may send a cookie in each field, conditions hold too.
func TestChooseHTTP2(t *testing.T) {
	t.Parallel()
	chosen := direct.NewResponse(200, nil, []byte("chosen"))
	h, err := Choose(direct.NewResponse(200, nil, []byte("otherwise")), Choice{Handler: chosen, When: Condition{
		Header: map[string]string{"x-version": "2"}, Cookie: map[string]string{"beta": "yes"}, Query: map[string]string{"v": "a b"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := chertest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, tt := range []struct {
		query, want string
		h           http.Header
	}{
		{"?v=a+b", "chosen", http.Header{"Cookie": {"a=b; beta=yes; c=d"}, "X-Version": {"1", "2"}}},
		{"?v=a%20b&v=x", "chosen", http.Header{"Cookie": {"a=b", "beta=yes"}, "X-Version": {"2"}}},
		{"?v=x&v=a+b", "otherwise", http.Header{"Cookie": {"beta=yes"}, "X-Version": {"2"}}},
		{"?v=a+b", "otherwise", http.Header{"Cookie": {"beta=yes"}, "X-Version": {"1, 2"}}},
		{"?v=a+b", "otherwise", http.Header{"Cookie": {"beta=no"}, "X-Version": {"2"}}},
	} {
		req := request("GET", s.URL+"/"+tt.query, "")
		req.RequestURI, req.Header = "", tt.h
		res, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.ProtoMajor != 2 || string(body) != tt.want {
			t.Errorf("%s %v: %s %q, %v", tt.query, tt.h, res.Proto, body, err)
		}
	}
}
