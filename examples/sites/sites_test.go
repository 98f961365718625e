package sites

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// request is one request, and what both servers answer.
type request struct {
	host, target string
	method       string   // GET if ""
	fields       []string // whole lines
	tls          bool     // to the address of TLS

	status int
	nginx  int    // its status, if it answers in a way of its own
	body   string // "" for any
	want   string // further fields, whole lines; PLAIN and TLS stand for the ports
}

// The fields that both servers must set to the same values, or not at all.
var compared = []string{"Content-Type", "Location", "Cache-Control", "Access-Control-Allow-Origin", "Retry-After",
	"Content-Range", "Strict-Transport-Security", "Content-Encoding"}

const (
	front   = "<!doctype html>\n<title>Example</title>\n<p>front page\n"
	missing = "<!doctype html>\n<title>Not found</title>\n<p>no such page\n"
	style   = "body { color: black }\n"
	text    = "plain text\n"
	about   = "<!doctype html>\n<title>About</title>\n<p>about us\n"
	page    = "<!doctype html>\n<title>Maintenance</title>\n<p>back in an hour\n"
)

var ann = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("ann:secret"))

var sites = []struct {
	name     string
	requests []request
}{
	{"static", []request{
		{host: "example.com", target: "/", status: 200, body: front},
		{host: "EXAMPLE.com:8080", target: "/index.html", method: "HEAD", status: 200},
		{host: "example.com", target: "/docs", status: 301},
		{host: "example.com", target: "/none", status: 404, body: missing},
		{host: "example.com", target: "/docs/readme.txt", fields: []string{"Range: bytes=6-"}, status: 206, body: "text\n",
			want: "Content-Range: bytes 6-10/11"},
		{host: "example.com", target: "/assets/app-5f3a9c.css", status: 200, body: style,
			want: "Cache-Control: public, max-age=31536000, immutable"},
		{host: "example.com", target: "/..%2f..%2fetc/passwd", status: 404, nginx: 400},
		{host: "example.com", target: "/%64ocs//readme.txt", status: 200},
	}},
	{"hosts", []request{
		{host: "example.com", target: "/", status: 200, body: front},
		{host: "a.preview.example.com", target: "/readme.txt", status: 200, body: text},
		{host: "a.b.preview.example.com", target: "/readme.txt", status: 200, body: text},
		{host: "preview.example.com", target: "/readme.txt", status: 404},
		{host: "192.0.2.1", target: "/app-5f3a9c.css", status: 200, body: style},
		{host: "elsewhere.example", target: "/readme.txt", status: 404},
	}},
	{"www-redirect", []request{
		{host: "example.com", target: "/docs/readme.txt", status: 200, body: text},
		{host: "www.example.com", target: "/a%20b?c=d%26e", status: 301, want: "Location: http://example.com/a%20b?c=d%26e"},
		{host: "www.example.com", target: "/", method: "POST", status: 301, want: "Location: http://example.com/"},
	}},
	{"https", []request{
		{host: "example.com", target: "/", tls: true, status: 200, body: front, want: "Strict-Transport-Security: max-age=31536000"},
		{host: "example.com", target: "/none", tls: true, status: 404, want: "Strict-Transport-Security: max-age=31536000"},
		{host: "example.com", target: "/a?b", status: 301, want: "Location: https://example.com/a?b"},
	}},
	{"cdn", []request{
		{host: "origin.example.com", target: "/", status: 200, body: front, want: "Cache-Control: public, max-age=60"},
		{host: "origin.example.com", target: "/", fields: []string{"X-Forwarded-For: 203.0.113.5, 198.51.100.7"}, status: 403,
			want: "Cache-Control: public, max-age=60"},
		{host: "origin.example.com", target: "/none", fields: []string{"X-Forwarded-For: 198.51.100.7, 203.0.113.5"}, status: 404},
	}},
	{"fonts", []request{
		{host: "static.example.com", target: "/fonts/text.woff2", fields: []string{"Origin: https://a.example"}, status: 200,
			want: "Access-Control-Allow-Origin: *"},
		{host: "static.example.com", target: "/docs/readme.txt", fields: []string{"Origin: https://a.example"}, status: 200},
		{host: "static.example.com", target: "/fonts/none.woff2", status: 404},
	}},
	{"maintenance", []request{
		{host: "example.com", target: "/", status: 503, body: page, want: "Retry-After: 3600"},
		{host: "example.com", target: "/any/path?q", status: 503, body: page, want: "Retry-After: 3600"},
		{host: "example.com", target: "/healthz", status: 200, body: "ok\n"},
	}},
	{"internal", []request{
		{host: "tool.example.com", target: "/", status: 401},
		{host: "tool.example.com", target: "/", fields: []string{ann}, status: 200, body: front},
		{host: "tool.example.com", target: "/", fields: []string{strings.Replace(ann, "Basic ", "Basic eA", 1)}, status: 401},
		{host: "tool.example.com", target: "/healthz", status: 200, body: "ok\n"},
		{host: "tool.example.com", target: "/docs/readme.txt", fields: []string{ann}, status: 403},
	}},
	{"downloads", []request{
		{host: "downloads.example.com", target: "/large.bin", status: 200, body: strings.Repeat("x", 20000)},
		{host: "downloads.example.com", target: "/large.bin", fields: []string{"Range: bytes=19990-"}, status: 206, body: "xxxxxxxxxx"},
		{host: "downloads.example.com", target: "/large.bin", fields: []string{"Range: bytes=20000-"}, status: 416},
		{host: "downloads.example.com", target: "/", status: 200},
		{host: "downloads.example.com", target: "/large.bin", status: 429},
	}},
	{"spa", []request{
		{host: "app.example.com", target: "/", status: 200, body: front},
		{host: "app.example.com", target: "/users/7?tab=a", fields: []string{"Accept: text/html"}, status: 200, body: front},
		{host: "app.example.com", target: "/assets/app-5f3a9c.css", status: 200, body: style},
		{host: "app.example.com", target: "/assets/none.css", status: 404},
	}},
	{"moved", []request{
		{host: "example.com", target: "/old.html", status: 301},
		{host: "example.com", target: "/manual/a/b", status: 308, want: "Location: https://docs.example.com/a/b"},
		{host: "example.com", target: "/files/readme.txt", status: 200, body: text},
		{host: "example.com", target: "/files/../docs/readme.txt", status: 307, nginx: 200},
		{host: "example.com", target: "/", status: 200, body: front},
	}},
	{"clean", []request{
		{host: "example.com", target: "/about?q", status: 200, body: about},
		{host: "example.com", target: "/about.html", status: 200, body: about},
		{host: "example.com", target: "/", status: 200, body: front},
		{host: "example.com", target: "/v2/readme.txt?q", status: 200, body: text},
		{host: "example.com", target: "/docs", status: 301},
		{host: "example.com", target: "/none", status: 404},
		{host: "example.com", target: "/v2/../../about", status: 200, body: about, nginx: 400},
		{host: "example.com", target: "/v1/..%2fabout", status: 200, body: about},
	}},
	{"errors", []request{
		{host: "example.com", target: "/none?q", status: 404, body: missing},
		{host: "example.com", target: "/none", method: "HEAD", status: 404},
		{host: "example.com", target: "/docs/draft.bak", status: 404, body: missing},
		{host: "example.com", target: "/docs/data.foo", status: 200, body: "custom\n", want: "Content-Type: application/x-foo"},
		{host: "example.com", target: "/old/a/b", status: 410, body: page},
		{host: "example.com", target: "/docs/readme.txt", status: 200, body: text},
	}},
	{"auth", []request{
		{host: "wiki.example.com", target: "/docs/readme.txt", status: 401},
		{host: "wiki.example.com", target: "/docs/readme.txt", fields: []string{"Cookie: a=b; session=good"}, status: 200, body: text},
		{host: "wiki.example.com", target: "/", fields: []string{"Cookie: session=bad"}, status: 401},
		{host: "wiki.example.com", target: "/healthz", status: 200, body: "ok\n"},
	}},
	{"proxy", []request{
		{host: "example.com", target: "/a%20b?c=d%26e", status: 200, body: "first: GET /a%20b?c=d%26e example.com|127.0.0.1|http|\n"},
		{host: "example.com", target: "/", method: "POST", status: 200, body: "first: POST / example.com|127.0.0.1|http|\n"},
		{host: "example.com", target: "/", fields: []string{"X-Forwarded-For: 192.0.2.1"}, status: 200, body: "first: GET / example.com|127.0.0.1|http|\n"},
		{host: "example.com", target: "/api/users?q", status: 200, body: "second: GET /users?q example.com|127.0.0.1|http|v1\n"},
		{host: "example.com", target: "/assets/app-5f3a9c.css", status: 200, body: style},
		{host: "example.com", target: "/missing", status: 404, body: "none of the first\n"},
		{host: "example.com", target: "/beta/x", status: 502, body: page},
	}},
	{"websocket", []request{
		{host: "chat.example.com", target: "/", status: 200, body: front},
		{host: "chat.example.com", target: "/ws/x", status: 200, body: "first: GET /ws/x chat.example.com|127.0.0.1|http|\n", nginx: 200},
	}},
	{"hash", []request{
		{host: "example.com", target: "/missing", fields: []string{"Cookie: session=a"}, status: 404},
	}},
}

func TestSites(t *testing.T) {
	t.Parallel()
	tested := make(map[string]bool)
	for _, site := range sites {
		tested[site.name] = true
		t.Run(site.name, func(t *testing.T) {
			t.Parallel()
			chert := startChert(t, site.name)
			nginx := startNginx(t, site.name)
			for _, r := range site.requests {
				got := r.send(t, chert)
				r.check(t, "chert", got, chert)
				if nginx == nil {
					continue
				}
				other := r.send(t, nginx)
				if r.nginx != 0 {
					if other.StatusCode != r.nginx {
						t.Errorf("nginx: %s %s: %d", r.host, r.target, other.StatusCode)
					}
					continue
				}
				r.check(t, "nginx", other, nginx)
				for _, name := range compared {
					a, b := chert.named(got.Header.Get(name)), nginx.named(other.Header.Get(name))
					if a != b && !r.unlike(name, a, b) {
						t.Errorf("%s %s: %s is %q with chert, %q with nginx", r.host, r.target, name, a, b)
					}
				}
			}
			if nginx == nil {
				t.Skip("answered as expected; nothing was compared, since the package nginx is not installed")
			}
		})
	}
	folders, err := filepath.Glob("*/chert.toml")
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !tested[filepath.Dir(f)] {
			t.Errorf("%s is not tested", f)
		}
	}
}

// answer is a response whose body has been read.
type answer struct {
	*http.Response
	body string
}

func (r *request) send(t *testing.T, s *server) answer {
	t.Helper()
	c, err := net.Dial("tcp", s.plain)
	if r.tls {
		c, err = tls.Dial("tcp", s.tls, &tls.Config{ServerName: r.host, RootCAs: s.roots})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	method := r.method
	if method == "" {
		method = "GET"
	}
	fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, r.target, r.host)
	for _, f := range r.fields {
		fmt.Fprintf(c, "%s\r\n", f)
	}
	if method == "POST" {
		fmt.Fprint(c, "Content-Length: 0\r\n")
	}
	fmt.Fprint(c, "\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", r.host, r.target, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", r.host, r.target, err)
	}
	return answer{res, string(body)}
}

// check compares an answer with what the table wants.
func (r *request) check(t *testing.T, who string, a answer, s *server) {
	t.Helper()
	if a.StatusCode != r.status || r.body != "" && a.body != r.body {
		t.Errorf("%s: %s %s: %d %q", who, r.host, r.target, a.StatusCode, a.body[:min(len(a.body), 200)])
	}
	if r.want == "" {
		return
	}
	name, value, _ := strings.Cut(r.want, ": ")
	if got := s.named(a.Header.Get(name)); got != value {
		t.Errorf("%s: %s %s: %s is %q, not %q", who, r.host, r.target, name, got, value)
	}
}

// unlike reports whether two values differ as they may.
func (r *request) unlike(name, chert, nginx string) bool {
	switch name {
	case "Location":
		// RFC 9110 section 10.2.2: a reference may be relative; nginx makes a whole URL.
		base, err := url.Parse("http://" + r.host + r.target)
		if err != nil {
			return false
		}
		to, err := base.Parse(chert)
		return err == nil && to.String() == nginx
	case "Content-Type":
		// nginx describes its own errors, redirects and listings in HTML.
		return r.body == "" && (r.status != 200 || strings.HasSuffix(r.target, "/"))
	case "Cache-Control":
		// chert: no-store for what is refused, no-cache for a listing.
		return nginx == "" && (chert == "no-store" && r.status >= 400 || chert == "no-cache" && strings.HasSuffix(r.target, "/"))
	case "Access-Control-Allow-Origin":
		return r.status == 404 && nginx == "" // chert: also on errors, which pages of the origin then can read
	case "Retry-After":
		return r.status == 429 // chert tells when
	}
	return false
}

// copyTo copies the configurations to a folder for a test, with other addresses.
func copyTo(t *testing.T, dir string, replace *strings.Replacer) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*/chert.toml", "*/nginx.conf"} {
		all, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(replace.Replace(string(b))), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
