package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Another server decides about the requests of a site, but not about those of a route
// that has none, and a server that is not there admits nothing.
func TestForwardAuth(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Set-Cookie", "session=2")
		switch r.Header.Get("Cookie") {
		case "session=1":
			w.Header().Set("Remote-User", "ann")
		case "denied":
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, "not you")
		default:
			w.Header().Set("Location", "https://login.example/?rd="+r.Header.Get("X-Forwarded-Proto")+"://"+
				r.Header.Get("X-Forwarded-Host")+r.Header.Get("X-Forwarded-Uri"))
			w.WriteHeader(http.StatusFound)
		}
	}))
	defer auth.Close()
	p, _ := startConfig(t, fmt.Sprintf(`
log = "combined"
[[site]]
hosts = "*"
root = "www"
headers = { X-Site = "s" }
[site.forward_auth]
url = "%s/verify"
headers = ["Remote-User"]
response_headers = "Set-Cookie"
user_header = "Remote-User"
scheme = "https"
[[site.route]]
path = "/login"
respond = 200
forward_auth = false
[[site.route]]
path = "/down/{path...}"
root = "www"
[site.route.forward_auth]
url = "http://auth/verify"
socket = "none.sock"
`, auth.URL), map[string]string{"www/f": "file"})
	for _, tt := range []struct {
		method, target, cookie string
		status                 int
		body, location         string
		asked                  int64
	}{
		{"GET", "/f", "session=1", 200, "file", "", 1},
		{"GET", "/f", "session=1", 200, "file", "", 1}, // not remembered, nor from memory
		{"HEAD", "/f", "session=1", 200, "", "", 1},
		{"GET", "/none", "session=1", 404, "", "", 1},
		{"GET", "/f?a=b", "", 302, "", "https://login.example/?rd=https://a.example/f?a=b", 1},
		{"GET", "/x/../f", "", 302, "", "https://login.example/?rd=https://a.example/x/../f", 1},
		{"OPTIONS", "/f", "denied", 403, "not you", "", 1},
		{"POST", "/f", "denied", 403, "not you", "", 1},
		{"GET", "/login", "", 200, "", "", 0},
		{"GET", "/down/f", "session=1", 502, "", "", 0},
	} {
		before := asked.Load()
		r := request(t, p.urls[0], tt.method, tt.target, "Cookie: "+tt.cookie)
		if r.status != tt.status || r.body != tt.body && tt.body != "" || r.header.Get("Location") != tt.location ||
			r.header.Get("X-Site") != "s" || asked.Load()-before != tt.asked {
			t.Errorf("%+v: %d %q %v, asked %d times", tt, r.status, r.body, r.header, asked.Load()-before)
		}
		if tt.asked > 0 && r.header.Get("Set-Cookie") != "session=2" {
			t.Errorf("%+v: no cookie", tt)
		}
	}
	until(t, func() bool { return strings.Contains(p.stderr.String(), `127.0.0.1 - ann [`) })
	until(t, func() bool { return strings.Contains(p.stderr.String(), "gave no answer") })
}
