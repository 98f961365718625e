package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func corsFields(h http.Header) string {
	var all []string
	for n, v := range h {
		if strings.HasPrefix(n, "Access-Control-") || n == "Vary" {
			all = append(all, strings.TrimPrefix(n, "Access-Control-")+": "+strings.Join(v, " | "))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

func TestCORS(t *testing.T) {
	some := CORSOptions{
		Origins: []string{"https://a.example", "https://*.b.example:8443", "null"}, Methods: []string{"PUT", "DELETE"},
		Headers: []string{"Authorization", "X-A"}, Expose: []string{"X-B"}, Credentials: true, MaxAge: 90 * time.Second,
	}
	const (
		yes  = "Allow-Credentials: true; Allow-Origin: %s; Expose-Headers: X-B; Vary: Origin"
		no   = "Vary: Origin"
		pre  = "Allow-Credentials: true; Allow-Headers: Authorization, X-A; Allow-Methods: PUT, DELETE; Allow-Origin: %s; Max-Age: 90; Vary: " + preflightVary
		nope = "Vary: " + preflightVary
	)
	for _, tt := range []struct {
		name, method string
		o            CORSOptions
		fields       []string
		status       int
		want         string
	}{
		{"exact", "GET", some, []string{"Origin", "https://a.example"}, 200, fmt.Sprintf(yes, "https://a.example")},
		{"below", "GET", some, []string{"Origin", "https://x.y.b.example:8443"}, 200, fmt.Sprintf(yes, "https://x.y.b.example:8443")},
		{"null", "GET", some, []string{"Origin", "null"}, 200, fmt.Sprintf(yes, "null")},
		{"no origin", "GET", some, nil, 200, no},
		{"another", "GET", some, []string{"Origin", "https://c.example"}, 200, no},
		{"another scheme", "GET", some, []string{"Origin", "http://a.example"}, 200, no},
		{"another port", "GET", some, []string{"Origin", "https://a.example:8443"}, 200, no},
		{"longer", "GET", some, []string{"Origin", "https://a.example.evil.example"}, 200, no},
		{"not below itself", "GET", some, []string{"Origin", "https://b.example:8443"}, 200, no},
		{"not the dot alone", "GET", some, []string{"Origin", "https://.b.example:8443"}, 200, no},
		{"not beside", "GET", some, []string{"Origin", "https://xb.example:8443"}, 200, no},
		{"hidden in a path", "GET", some, []string{"Origin", "https://evil.example/.b.example:8443"}, 200, no},
		{"hidden in a user", "GET", some, []string{"Origin", "https://evil@x.b.example:8443"}, 200, no},
		{"hidden in a port", "GET", some, []string{"Origin", "https://evil.example:80.b.example:8443"}, 200, no},
		{"two", "GET", some, []string{"Origin", "https://a.example", "Origin", "https://a.example"}, 200, no},
		{"preflight", "OPTIONS", some, []string{"Origin", "https://a.example", "Access-Control-Request-Method", "PUT"}, 204, fmt.Sprintf(pre, "https://a.example")},
		{"preflight of another", "OPTIONS", some, []string{"Origin", "https://c.example", "Access-Control-Request-Method", "PUT"}, 204, nope},
		{"OPTIONS", "OPTIONS", some, []string{"Origin", "https://a.example"}, 200, fmt.Sprintf(yes, "https://a.example")},
		{"all", "GET", CORSOptions{Origins: []string{"*"}}, []string{"Origin", "https://a.example"}, 200, "Allow-Origin: *"},
		{"all, no origin", "GET", CORSOptions{Origins: []string{"*"}, Expose: []string{"X-B"}}, nil, 200, "Allow-Origin: *; Expose-Headers: X-B"},
		{"all, preflight", "OPTIONS", CORSOptions{Origins: []string{"*"}, Headers: []string{"*"}}, []string{"Origin", "x://y", "Access-Control-Request-Method", "GET"}, 204,
			"Allow-Headers: *; Allow-Origin: *; Vary: " + preflightVary},
		{"none", "GET", CORSOptions{}, []string{"Origin", "https://a.example"}, 200, no},
	} {
		ways(t, Must(CORS(&tt.o)), hello, func(t *testing.T, do func(r *http.Request) answer) {
			a := do(request(tt.method, "/", "", tt.fields...))
			if got := corsFields(a.Header); a.Status != tt.status || got != tt.want || (a.Body == "") != (tt.status == 204) {
				t.Errorf("%s: %d %q\ngot  %s\nwant %s", tt.name, a.Status, a.Body, got, tt.want)
			}
		})
	}
	for _, o := range []CORSOptions{
		{Origins: []string{"*"}, Credentials: true}, {Credentials: true, Headers: []string{"*"}}, {Credentials: true, Methods: []string{"*"}}, {Credentials: true, Expose: []string{"*"}},
		{Origins: []string{"*", "https://a.example"}}, {Origins: []string{"a.example"}}, {Origins: []string{"https://a.example/"}}, {Origins: []string{"https://A.example"}},
		{Origins: []string{"https://a.example:443"}}, {Origins: []string{"https://*.a.example:443"}}, {Origins: []string{"http://a.example:80"}},
		{Origins: []string{"https://a.*.example"}}, {Origins: []string{"https://*"}}, {Origins: []string{"https://*."}}, {Origins: []string{"https://*a.example"}}, {Origins: []string{""}},
	} {
		mw, err := CORS(&o)
		want := "middleware: CORS: Origins: "
		if o.Credentials {
			want = "middleware: CORS: Credentials "
		}
		refused(t, mw, err, want)
	}
	// Default: nothing is said of how long; negative: not at all.
	for age, want := range map[time.Duration]string{0: "", -1: "0", 90 * time.Second: "90"} {
		h := Must(CORS(&CORSOptions{Origins: []string{"*"}, MaxAge: age}))(hello)
		a := plain(h, request("OPTIONS", "/", "", "Origin", "https://a.example", "Access-Control-Request-Method", "PUT"))
		if got := a.Header.Get("Access-Control-Max-Age"); got != want {
			t.Errorf("MaxAge %v: got %q, want %q", age, got, want)
		}
	}
	if a := plain(Must(CORS(nil))(hello), request("GET", "/", "", "Origin", "https://a.example")); corsFields(a.Header) != corsFields(http.Header{"Vary": {"Origin"}}) {
		t.Errorf("without options: got %v", a.Header)
	}
}

func TestSecurityHeaders(t *testing.T) {
	ways(t, SecurityHeaders(nil), hello, func(t *testing.T, do func(r *http.Request) answer) {
		a := do(request("GET", "/", ""))
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "strict-origin-when-cross-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Content-Security-Policy": "", "Strict-Transport-Security": "",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: got %q", name, got)
			}
		}
	})
	o := &SecurityHeadersOptions{FrameOptions: "SAMEORIGIN", ReferrerPolicy: "-", ContentSecurityPolicy: "default-src 'none'", HSTS: time.Hour, HSTSSubdomains: true}
	ways(t, SecurityHeaders(o), hello, func(t *testing.T, do func(r *http.Request) answer) {
		a := do(request("GET", "/", ""))
		if h := a.Header; h.Get("X-Frame-Options") != "SAMEORIGIN" || h.Get("Referrer-Policy") != "" || h.Get("Content-Security-Policy") != "default-src 'none'" || h.Get("Strict-Transport-Security") != "max-age=3600; includeSubDomains" {
			t.Errorf("got %v", h)
		}
	})
}
