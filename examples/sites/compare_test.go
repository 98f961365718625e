package sites

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert/internal/testing/freeport"
	"golang.org/x/crypto/bcrypt"
)

// both serves a folder with files by chert and by nginx. ADDR in their configurations is the address of each.
func both(t *testing.T, chertText, nginxText string, files map[string]string) (chert, nginx *server) {
	t.Helper()
	nginxBinary, err := exec.LookPath("nginx")
	if err != nil {
		if os.Getenv("CHERT_REQUIRE_ALL") == "1" {
			t.Fatal("nginx is not installed; want the package nginx")
		}
		t.Skip("the package nginx is not installed")
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	chert, nginx = &server{plain: freeport.Addr(t)}, &server{plain: freeport.Addr(t)}
	dir := t.TempDir()
	all := map[string]string{
		"chert.toml":  strings.ReplaceAll(chertText, "ADDR", chert.plain),
		"server.conf": strings.ReplaceAll(nginxText, "ADDR", nginx.plain),
		"main.conf":   nginxMain,
	}
	maps.Copy(all, files)
	for name, content := range all {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chert.start(t, exec.Command(binary, "serve", "--config", filepath.Join(dir, "chert.toml")))
	nginx.start(t, exec.Command(nginxBinary, "-p", dir+"/", "-c", filepath.Join(dir, "main.conf"), "-e", "stderr"))
	return chert, nginx
}

// forward_auth admits and refuses as nginx's auth_request does. What an answer that is neither 2xx, 401 nor 403
// becomes differs: nginx has 500 for all of them, chert 502, and a redirect is sent to the client.
func TestAuthRequest(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var saw []*http.Request
	auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		saw = append(saw, r)
		mu.Unlock()
		w.Header().Set("Set-Cookie", "a=1")
		var status int
		switch fmt.Sscan(r.Header.Get("X-Want"), &status); status {
		case 0:
			panic(http.ErrAbortHandler)
		case 401:
			w.Header().Set("Www-Authenticate", `Bearer realm="x"`)
		case 302:
			w.Header().Set("Location", "https://login.example/")
		}
		w.WriteHeader(status)
	}))
	defer auth.Close()
	chert, nginx := both(t, fmt.Sprintf(`
listen = "ADDR"
[[site]]
hosts = "*"
root = "www"
[site.forward_auth]
url = "%s/verify"
response_headers = "Set-Cookie"
[[site.route]]
path = "/open/{path...}"
root = "www"
forward_auth = false
`, auth.URL), fmt.Sprintf(`
server {
	listen ADDR;
	root www;
	location / {
		auth_request /verify;
		auth_request_set $cookie $upstream_http_set_cookie;
		add_header Set-Cookie $cookie;
	}
	location /open/ {
		alias www/;
	}
	location = /verify {
		internal;
		proxy_pass %s/verify;
		proxy_pass_request_body off;
		proxy_set_header Content-Length "";
	}
}
`, auth.URL), map[string]string{"www/f.txt": "file", "www/index.html": "front"})
	for _, tt := range []struct {
		method, target string
		answer         int
		status, nginx  int // that of nginx, if it is another
		asked          bool
	}{
		{"GET", "/f.txt", 200, 200, 0, true}, {"GET", "/", 200, 200, 0, true}, {"GET", "/none", 200, 404, 0, true}, {"HEAD", "/f.txt", 204, 200, 0, true},
		{"GET", "/f.txt", 201, 200, 0, true}, {"POST", "/f.txt", 200, 405, 0, true},
		{"GET", "/f.txt", 401, 401, 0, true}, {"HEAD", "/f.txt", 401, 401, 0, true}, {"POST", "/f.txt", 401, 401, 0, true}, {"GET", "/none", 401, 401, 0, true},
		{"GET", "/f.txt", 403, 403, 0, true}, {"GET", "/", 403, 403, 0, true}, {"GET", "/f.txt", 302, 302, 500, true},
		{"GET", "/f.txt", 404, 502, 500, true}, {"GET", "/f.txt", 500, 502, 500, true}, {"GET", "/f.txt", 429, 502, 500, true},
		{"GET", "/f.txt", 0, 502, 500, true}, {"GET", "/open/f.txt", 403, 200, 0, false}, {"GET", "/open/none", 403, 404, 0, false},
	} {
		r := request{host: "example.com", target: tt.target, method: tt.method,
			fields: []string{fmt.Sprintf("X-Want: %d", tt.answer), "Cookie: s=1; t=2"}}
		for who, s := range map[string]*server{"chert": chert, "nginx": nginx} {
			mu.Lock()
			saw = nil
			mu.Unlock()
			got := r.send(t, s)
			want := tt.status
			if who == "nginx" && tt.nginx != 0 {
				want = tt.nginx
			}
			// nginx's add_header is for some statuses only, and not for what refuses.
			cookie := tt.asked && want < 500 && (who == "chert" || want < 400)
			if got.StatusCode != want || (got.Header.Get("Set-Cookie") != "") != cookie ||
				(got.Header.Get("Www-Authenticate") != "") != (want == 401) || (got.Header.Get("Location") != "") != (want == 302) ||
				want == 200 && tt.method == "GET" && got.body == "" {
				t.Errorf("%s: %s %s, answer %d: %d %q %v", who, tt.method, tt.target, tt.answer, got.StatusCode, got.body, got.Header)
			}
			mu.Lock()
			asked := slices.Clone(saw)
			mu.Unlock()
			if (len(asked) > 0) != tt.asked {
				t.Errorf("%s: %s %s: asked %d times", who, tt.method, tt.target, len(asked))
			}
			for _, a := range asked {
				if a.Method != "GET" || a.RequestURI != "/verify" || a.Header.Get("Cookie") != "s=1; t=2" || a.ContentLength > 0 {
					t.Errorf("%s: %s %s: the server got %s %s %v", who, tt.method, tt.target, a.Method, a.RequestURI, a.Header)
				}
			}
		}
	}
}

// Error pages replace bodies as nginx's error_page does: the status stays, and so does what belongs to it.
func TestErrorPage(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	chert, nginx := both(t, `
listen = "ADDR"
[[site]]
hosts = "*"
root = "www"
[site.errors]
404 = "pages/404.html"
403 = "pages/4xx.html"
405 = "pages/4xx.html"
401 = "pages/4xx.html"
416 = "pages/4xx.html"
"5xx" = "pages/5xx.txt"
[[site.route]]
path = "/denied/{path...}"
root = "www"
deny = "all"
[[site.route]]
path = "/password/{path...}"
root = "www"
basic_auth = { realm = "r", htpasswd = "users" }
[[site.route]]
path = "/down"
respond = 503
headers = { Retry-After = "9" }
[[site.route]]
path = "/gone"
respond = 410
[[site.route]]
path = "/own/{path...}"
root = "www"
[site.route.errors]
404 = "pages/own.html"
`, `
server {
	listen ADDR;
	root www;
	error_page 404 /pages/404.html;
	error_page 401 403 405 416 /pages/4xx.html;
	error_page 500 501 502 503 504 /pages/5xx.txt;
	location /pages/ {
		internal;
		root .;
	}
	location /denied/ {
		deny all;
	}
	location /password/ {
		auth_basic r;
		auth_basic_user_file users;
	}
	location = /down {
		add_header Retry-After 9 always;
		return 503;
	}
	location = /gone {
		return 410;
	}
	location /own/ {
		alias www/;
		error_page 404 /pages/own.html;
	}
}
`, map[string]string{"www/f.txt": "file", "www/password/f.txt": "file", "users": "ann:" + string(hash) + "\n", "pages/404.html": "<p>404", "pages/4xx.html": "<p>4xx",
		"pages/5xx.txt": "5xx", "pages/own.html": "<p>own"})
	for _, tt := range []request{
		{target: "/f.txt", status: 200, body: "file"},
		{target: "/none", status: 404, body: "<p>404"},
		{target: "/none", method: "HEAD", status: 404, want: "Content-Length: 6"},
		{target: "/none", method: "POST", status: 405, nginx: 404}, // nginx looks for the file first
		{target: "/none", fields: []string{"If-None-Match: *", "If-Modified-Since: Fri, 17 May 2099 10:20:30 GMT"}, status: 404, body: "<p>404"},
		{target: "/none", fields: []string{"Range: bytes=0-1"}, status: 404, body: "<p>404"},
		{target: "/none", fields: []string{"Accept-Encoding: gzip, br"}, status: 404, body: "<p>404"},
		{target: "/f.txt", method: "POST", status: 405, body: "<p>4xx"},
		{target: "/f.txt", fields: []string{"Range: bytes=9-"}, status: 416, body: "<p>4xx"},
		{target: "/denied/f.txt", status: 403, body: "<p>4xx"},
		{target: "/password/f.txt", status: 401, body: "<p>4xx"},
		{target: "/password/f.txt", method: "HEAD", status: 401, want: "Content-Length: 6"},
		{target: "/down", status: 503, body: "5xx"},
		{target: "/gone", status: 410},
		{target: "/own/none", status: 404, body: "<p>own"},
		{target: "/pages/404.html", status: 404, body: "<p>404"},
	} {
		tt.host = "example.com"
		got, other := tt.send(t, chert), tt.send(t, nginx)
		tt.check(t, "chert", got, chert)
		if tt.nginx == 0 {
			tt.check(t, "nginx", other, nginx)
		} else if other.StatusCode != tt.nginx {
			t.Errorf("nginx: %s: %d", tt.target, other.StatusCode)
		}
		for who, a := range map[string]answer{"chert": got, "nginx": other} {
			if scheme, _, _ := strings.Cut(a.Header.Get("Www-Authenticate"), ","); (a.StatusCode == 401) != (scheme == `Basic realm="r"`) {
				t.Errorf("%s: %s: WWW-Authenticate is %q", who, tt.target, a.Header["Www-Authenticate"])
			}
		}
		if tt.nginx != 0 {
			continue
		}
		for _, name := range []string{"Content-Type", "Content-Range", "Content-Encoding", "Content-Length"} {
			a, b := got.Header.Get(name), other.Header.Get(name)
			if a != b && (tt.body != "" || tt.method == "HEAD") {
				t.Errorf("%s %s %v: %s is %q with chert, %q with nginx", tt.method, tt.target, tt.fields, name, a, b)
			}
		}
	}
}
