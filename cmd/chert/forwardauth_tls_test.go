package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An authentication server that is a site of chert, over its own TLS, decides about requests
// over TLS, of HTTP/1.1 and HTTP/2.
func TestForwardAuthTLS(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	authCert, authKey := ca.server(dir, "auth", "127.0.0.1")
	cert, key := ca.server(dir, "site", "a.example")
	authority := filepath.Join(dir, "ca.pem")
	replace(t, authority, string(ca.pair.Cert))
	auth, _ := startConfig(t, fmt.Sprintf(`
[[site]]
hosts = "*"
tls_cert = %q
tls_key = %q
[[site.route]]
path = "/verify"
cookie = { session = "1" }
header = { X-Forwarded-Proto = "https", X-Forwarded-Host = "a.example", X-Forwarded-Uri = "/f?q=1" }
respond = 204
headers = { Remote-User = "ann", Set-Cookie = "session=2" }
[[site.route]]
path = "/verify"
cookie = { session = "0" }
respond = 403
[[site.route]]
path = "/verify"
respond = 401
body = "log in"
headers = { WWW-Authenticate = 'Bearer realm="x"' }
`, authCert, authKey), nil)
	config := `
log = "combined"
[errors]
default = "page.txt"
[[site]]
hosts = "a.example"
root = "www"
tls_cert = %q
tls_key = %q
hsts = "1d"
[site.forward_auth]
url = "%sverify"
headers = "Remote-User"
response_headers = "Set-Cookie"
user_header = "Remote-User"
`
	files := map[string]string{"www/f": "file", "page.txt": "page"}
	p, _ := startConfig(t, fmt.Sprintf(config+"ca = %q\n", cert, key, auth.urls[0], authority), files)
	untrusting, _ := startConfig(t, fmt.Sprintf(config, cert, key, auth.urls[0]), files)
	for _, two := range []bool{true, false} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool, ServerName: "a.example"}, Protocols: new(http.Protocols)}
		defer tr.CloseIdleConnections()
		tr.Protocols.SetHTTP2(two)
		tr.Protocols.SetHTTP1(!two)
		c := &http.Client{Transport: tr, Timeout: patience}
		for _, tt := range []struct {
			p                    *proc
			method, cookie, body string
			status               int
			want                 string // a field and its value
		}{
			{p, "GET", "a=b; session=1; c=d", "", 200, "Set-Cookie: session=2"},
			{p, "HEAD", "a=b; session=1", "", 200, "Set-Cookie: session=2"},
			{p, "GET", "a=b", "", 401, `Www-Authenticate: Bearer realm="x"`},
			{p, "HEAD", "", "", 401, `Www-Authenticate: Bearer realm="x"`},
			{p, "POST", "", strings.Repeat("x", 300_000), 401, `Www-Authenticate: Bearer realm="x"`},
			{p, "POST", "session=1", strings.Repeat("x", 300_000), 405, "Set-Cookie: session=2"},
			{p, "GET", "session=0", "", 403, ""},
			{untrusting, "GET", "session=1", "", 502, ""}, // an unknown authority
		} {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, tt.p.urls[0]+"f?q=1", strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "a.example"
			req.Header.Set("Cookie", tt.cookie)
			req.Header.Set("Remote_User", "eve")
			res, err := c.Do(req)
			if err != nil {
				t.Fatalf("HTTP/2: %v, %+v: %v", two, tt.method, err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			want := map[int]string{200: "file", 401: "log in", 403: "page", 405: "page", 502: "page"}[tt.status]
			if tt.method == "HEAD" {
				want = ""
			}
			name, value, _ := strings.Cut(tt.want, ": ")
			if err != nil || res.StatusCode != tt.status || res.ProtoMajor == 2 != two || string(body) != want ||
				res.Header.Get(name) != value || res.Header.Get("Strict-Transport-Security") != "max-age=86400" {
				t.Errorf("HTTP/2: %v, %s %s: %d %q %v, %v", two, tt.method, tt.cookie, res.StatusCode, body, res.Header, err)
			}
		}
	}
	until(t, func() bool { return strings.Contains(p.stderr.String(), "127.0.0.1 - ann [") })
	if said := p.stderr.String(); strings.Contains(said, "eve") {
		t.Errorf("a forged name is logged:\n%s", said)
	}
	until(t, func() bool { return strings.Contains(untrusting.stderr.String(), "unknown authority") })
}

// A reload asks the new server. What the old one has been asked about it decides.
func TestForwardAuthReload(t *testing.T) {
	needSignals(t)
	t.Parallel()
	asked, decide := make(chan struct{}), make(chan struct{})
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") != "" {
			asked <- struct{}{}
			<-decide
		}
	}))
	defer old.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer other.Close()
	const text = `
[[site]]
hosts = "*"
root = "www"
[site.forward_auth]
url = "%s/"
`
	p, file := startConfig(t, fmt.Sprintf(text, old.URL), map[string]string{"www/f": "file"})
	want := func(status int) {
		t.Helper()
		if r := request(t, p.urls[0], "GET", "/f"); r.status != status {
			t.Errorf("%d %q, want %d", r.status, r.body, status)
		}
	}
	want(200)
	waiting := make(chan reply)
	go func() { waiting <- request(t, p.urls[0], "GET", "/f", "X-Wait: 1") }()
	<-asked
	write(t, file, fmt.Sprintf(text, other.URL))
	p.reload()
	want(403)
	decide <- struct{}{}
	if r := <-waiting; r.status != 200 || r.body != "file" {
		t.Errorf("a request from before: %d %q", r.status, r.body)
	}
	write(t, file, fmt.Sprintf(text, "ftp://x"))
	p.refuse()
	want(403)
	write(t, file, "[[site]]\nhosts = \"*\"\nroot = \"www\"\n")
	p.reload()
	want(200)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.refuse()
	want(200)
}

// The rules of a [[redirect]] are for its statuses, over TLS and not.
func TestRedirectResponseHeaders(t *testing.T) {
	t.Parallel()
	p, _ := startConfig(t, `
log = { format = "combined", request_id = true }
[[redirect]]
hosts = "*"
to = "https://b.example{uri}"
status = 308
headers = { X-One = "one", Cache-Control = "max-age=1", X-Request-Id = "" }
[[redirect.response_headers]]
status = ["3xx"]
set = { Cache-Control = "max-age=60" }
add = { X-One = ["two", "three"], Link = "<a>" }
[[redirect.response_headers]]
status = [200, 301, "4xx"]
set = { X-Not = "1" }
[[redirect.response_headers]]
remove = "Link"
[[redirect.response_headers]]
add = { X-Request-Id = "added" }
`, nil)
	for _, method := range []string{"GET", "HEAD", "POST", "GET"} {
		for _, target := range []string{"/a%20b?c", "//x/../y"} {
			r := request(t, p.urls[0], method, target)
			h := r.header
			if r.status != 308 || h.Get("Location") != "https://b.example"+target || fmt.Sprint(h["X-One"]) != "[one two three]" ||
				h.Get("Cache-Control") != "max-age=60" || h["Link"] != nil || h["X-Not"] != nil || fmt.Sprint(h["X-Request-Id"]) != "[added]" {
				t.Errorf("%s %s: %d %v", method, target, r.status, h)
			}
		}
	}
}
