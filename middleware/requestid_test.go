package middleware

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

func TestRequestID(t *testing.T) {
	echo := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString(RequestIDOf(x)) })
	made := regexp.MustCompile(`^[0-9a-f]{32}$`)
	for _, tt := range []struct {
		name   string
		o      *RequestIDOptions
		fields []string
		want   string // "" for one that is made
	}{
		{"made", nil, nil, ""},
		{"not accepted", nil, []string{"X-Request-Id", "abc"}, ""},
		{"accepted", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", "aZ9-._~+/=:@"}, "aZ9-._~+/=:@"},
		{"none came", &RequestIDOptions{Accept: true}, nil, ""},
		{"empty", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", ""}, ""},
		{"two", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", "a", "X-Request-Id", "b"}, ""},
		{"space", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", "a b"}, ""},
		{"quote", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", `a"`}, ""},
		{"not ASCII", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", "\xc3\xa4"}, ""},
		{"longest", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", strings.Repeat("a", 128)}, strings.Repeat("a", 128)},
		{"too long", &RequestIDOptions{Accept: true}, []string{"X-Request-Id", strings.Repeat("a", 129)}, ""},
		{"own", &RequestIDOptions{New: func() string { return "own" }}, nil, "own"},
	} {
		ways(t, RequestID(tt.o), echo, func(t *testing.T, do func(r *http.Request) answer) {
			a, b := do(request("GET", "/", "", tt.fields...)), do(request("GET", "/", "", tt.fields...))
			id := a.Header.Get("X-Request-Id")
			if id != a.Body && a.Body != "" || tt.want != "" && id != tt.want || tt.want == "" && (!made.MatchString(id) || id == b.Header.Get("X-Request-Id")) {
				t.Errorf("%s: got %q %q", tt.name, id, a.Body)
			}
		})
	}
	if RequestIDOf(request("GET", "/", "").Context()) != "" {
		t.Error("an id from nowhere")
	}
	if race.Enabled {
		return
	}
	h := RequestID(nil)(direct.HandlerFunc(func(x *direct.Exchange) {})).(direct.Handler)
	x, r := benchmarkRequest()
	if n := testing.AllocsPerRun(100, func() { x.Wire().Reset(r); h.ServeDirect(x) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
	h = RequestID(&RequestIDOptions{Accept: true})(h).(direct.Handler)
	r.Fields = wire.FieldsOf(http.Header{"X-Request-Id": {"accepted"}})
	if n := testing.AllocsPerRun(100, func() { x.Wire().Reset(r); h.ServeDirect(x) }); n != 3 { // the one inside makes its own
		t.Errorf("%v allocations", n)
	}
}
