package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chert-http/chert/internal/testing/freeport"
	"golang.org/x/crypto/bcrypt"
)

const explainedFile = `trusted_proxies = "10.0.0.1"
listen = [":80", { address = ":81", trusted_proxies = "10.0.0.2" }, { address = "unix:s", trusted_proxies = "unix" }]
[[site]]
hosts = ["a.example", "*.a.example"]
root = "www"
allow = ["192.0.2.0/24", "127.0.0.1"]
headers = { X-Site = "s" }
[[site.route]]
path = "/team/{path...}"
root = "team"
[site.route.basic_auth]
users = { bob = "HASH" }
[[site.route]]
path = "/old/{name}"
redirect = "/new/{name}"
headers = { X-Route = "old" }
[[site.route]]
path = "/healthz"
methods = ["GET"]
respond = 204
[[site]]
hosts = "plain.example"
root = "www"
[[redirect]]
hosts = "b.example"
to = "https://a.example{uri}"
`

// explained makes the folders of explainedFile and returns the file.
func explained(t testing.TB) string {
	dir := t.TempDir()
	for _, name := range []string{"www/index.html", "www/f", "www/team/f", "team/f"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), name)
	}
	file := filepath.Join(dir, "c.toml")
	hash, err := bcrypt.GenerateFromPassword([]byte("pw"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.ReplaceAll(explainedFile, "HASH", string(hash)))
	return file
}

func TestExplain(t *testing.T) {
	t.Parallel()
	file := explained(t)
	const site, from = "|site a.example, *.a.example in line 3", " from 127.0.0.1"
	for _, tt := range []struct {
		args []string
		want string // lines, without the fields of the response; DIR stands for the folder
	}{
		{[]string{"http://a.example/f"}, "request GET http://a.example/f" + from + site +
			"|route none|headers passed|allow, deny passed|root DIR/www|path /f|response 200 OK, 5 bytes"},
		{[]string{"http://x.a.example/team/f?q", "--from", "192.0.2.7"}, "request GET http://x.a.example/team/f?q from 192.0.2.7" + site +
			"|route /team/{path...} in line 8|headers passed|allow, deny passed|basic_auth answered|response 401 Unauthorized, 13 bytes"},
		{[]string{"http://a.example/team/f", "--header", "Authorization: Basic Ym9iOnB3"}, "request GET http://a.example/team/f" + from + site +
			"|route /team/{path...} in line 8|headers passed|allow, deny passed|basic_auth passed|root DIR/team|path /f|response 200 OK, 6 bytes"},
		{[]string{"http://a.example/team/f", "--from", "198.51.100.1"}, "request GET http://a.example/team/f from 198.51.100.1" + site +
			"|route /team/{path...} in line 8|headers passed|allow, deny answered|response 403 Forbidden, 10 bytes"},
		{[]string{"http://a.example/f", "--from", "10.0.0.1", "--header", "X-Forwarded-For: 192.0.2.9"},
			"request GET http://a.example/f from 10.0.0.1|trusted_proxies the client is 192.0.2.9" + site +
				"|route none|headers passed|allow, deny passed|root DIR/www|path /f|response 200 OK, 5 bytes"},
		{[]string{"http://a.example/f", "--at", ":81", "--from", "10.0.0.2", "--header", "X-Forwarded-For: 192.0.2.9"},
			"request GET http://a.example/f from 10.0.0.2|trusted_proxies the client is 192.0.2.9" + site +
				"|route none|headers passed|allow, deny passed|root DIR/www|path /f|response 200 OK, 5 bytes"},
		{[]string{"http://a.example/f", "--at", ":80", "--from", "10.0.0.2", "--header", "X-Forwarded-For: 192.0.2.9"},
			"request GET http://a.example/f from 10.0.0.2" + site +
				"|route none|headers passed|allow, deny answered|response 403 Forbidden, 10 bytes"},
		{[]string{"http://a.example/f", "--at", "unix:" + filepath.Dir(file) + "/./s", "--from", "unix",
			"--header", "X-Forwarded-For: 192.0.2.9"},
			"request GET http://a.example/f from a unix socket|trusted_proxies the client is 192.0.2.9" + site +
				"|route none|headers passed|allow, deny passed|root DIR/www|path /f|response 200 OK, 5 bytes"},
		{[]string{"http://a.example/f", "--from", "unix"}, "request GET http://a.example/f from a unix socket" + site +
			"|route none|headers passed|allow, deny answered|response 403 Forbidden, 10 bytes"},
		{[]string{"http://a.example/old/x%2fy"}, "request GET http://a.example/old/x%2fy" + from + site +
			"|route /old/{name} in line 13|headers passed|allow, deny passed|redirect /new/{name}|response 301 Moved Permanently, 0 bytes"},
		{[]string{"http://a.example/healthz", "--method", "HEAD"}, "request HEAD http://a.example/healthz" + from + site +
			"|route /healthz in line 17|headers passed|allow, deny passed|respond 204|response 204 No Content, 0 bytes"},
		{[]string{"http://a.example/team/../f"}, "request GET http://a.example/team/../f" + from + site +
			"|route none|headers passed|allow, deny passed|response 307 Temporary Redirect, 38 bytes"},
		{[]string{"http://10.0.0.9/", "--header", "Host: PLAIN.example:80"}, "request GET http://10.0.0.9/" + from +
			"|site plain.example in line 21|root DIR/www|path /|response 200 OK, 14 bytes"},
		{[]string{"https://b.example/x?y"}, "request GET https://b.example/x?y" + from +
			"|redirect b.example in line 24|response 301 Moved Permanently, 0 bytes"},
		{[]string{"http://c.example"}, "request GET http://c.example" + from + "|response 421 Misdirected Request, 40 bytes"},
	} {
		code, stdout, stderr := inProcess(t, append([]string{"check", file, "--explain"}, tt.args...)...)
		var got []string
		for line := range strings.Lines(strings.ReplaceAll(stdout, filepath.Dir(file)+string(filepath.Separator), "DIR/")) {
			if line[0] != ' ' {
				name, result, _ := strings.Cut(line, "  ")
				got = append(got, name+" "+strings.TrimSpace(result))
			}
		}
		if text := strings.Join(got, "|"); code != exitOK || text != tt.want {
			t.Errorf("%q: %d %s\ngot  %s\nwant %s", tt.args, code, stderr, text, tt.want)
		}
	}
}

// What is explained of requests is what a server of the file does with them.
func TestExplainServes(t *testing.T) {
	t.Parallel()
	ca, dir := newCA(t), t.TempDir()
	ca.server(dir, "a", "a.example")
	app := echo(t, "app")
	encrypted, inner, plain := freeport.Addr(t), freeport.Addr(t), freeport.Addr(t)
	file := filepath.Join(dir, "c.toml")
	write(t, file, fmt.Sprintf(`
listen = [{ address = %q, tls = false }, %q]
http_redirect = %q
[[site]]
hosts = ["a.example"]
tls_cert = "a.pem"
tls_key = "a-key.pem"
hsts = "365d"
[[site.route]]
path = "/f"
respond = 200
body = "of a"
[[site.route]]
path = "/api/{rest...}"
proxy = %q
strip = true
[[site.route.rewrite]]
from = "^/old/(.*)$"
to = "/new/{1}?{query}&from=old"
[[site.route]]
path = "/app/{rest...}"
proxy = %[4]q
`, inner, encrypted, plain, addrOfServer(app)))
	start(t, "--config", file)
	_, port, _ := net.SplitHostPort(encrypted)
	_, plainPort, _ := net.SplitHostPort(plain)
	const hsts = "|Strict-Transport-Security: max-age=31536000"
	for _, tt := range []struct{ url, at, want string }{
		{"https://a.example/f", encrypted, "200 OK" + hsts},
		{"https://a.example/none", encrypted, "404 Not Found" + hsts},
		{"http://a.example/f", plain, "301 Moved Permanently|Location: https://a.example/f"},
		{"http://a.example:" + plainPort + "/f?q", plain,
			"301 Moved Permanently|Location: https://a.example:" + port + "/f?q"},
		{"http://b.example/f", plain, "421 Misdirected Request"},
		{"http://a.example/f", inner, "200 OK"},
		{"https://a.example/api/old/x?q", encrypted, "GET /new/x?q&from=old, Host a.example"},
		{"https://a.example/api/x%2fy?q=%zz", encrypted, "GET /x%2fy?q=%zz, Host a.example"},
		{"https://a.example/app/old/x", encrypted, "GET /app/old/x, Host a.example"},
	} {
		if got := servedAt(t, tt.at, ca, tt.url); got != tt.want {
			t.Errorf("%s: served %q, want %q", tt.url, got, tt.want)
		}
		for _, at := range []string{"", tt.at} {
			args := []string{"check", file, "--explain", tt.url}
			if at != "" {
				args = append(args, "--at", at)
			} else if tt.at == inner {
				continue // http_redirect is meant
			}
			_, stdout, stderr := inProcess(t, args...)
			for text := range strings.SplitSeq(tt.want, "|") {
				if !strings.Contains(stdout, text) {
					t.Errorf("%q: %s%s\nwant %s", args, stderr, stdout, text)
				}
			}
			if strings.Contains(stdout, "Strict-Transport-Security") != strings.HasPrefix(tt.url, "https:") &&
				!strings.Contains(stdout, "not asked") {
				t.Errorf("%q: %s", args, stdout)
			}
		}
	}
}

// servedAt asks the server at an address for a URL, and returns what --explain says of it.
func servedAt(t *testing.T, addr string, ca *testCA, url string) string {
	t.Helper()
	c := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		}}
	defer c.CloseIdleConnections()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(string(body)); len(f) == 4 && f[0] == "app" { // by echo
		return f[1] + " " + f[2] + ", Host " + f[3]
	}
	text := fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
	for _, name := range []string{"Location", "Strict-Transport-Security"} {
		if v := res.Header.Get(name); v != "" {
			text += "|" + name + ": " + v
		}
	}
	return text
}

func TestExplainMistakes(t *testing.T) {
	t.Parallel()
	file := explained(t)
	for _, tt := range []struct{ want, args string }{
		{`--explain wants a whole URL`, "--explain /a"},
		{`--explain wants a whole URL`, "--explain ftp://a/"},
		{`--explain: parse`, "--explain http://a/%zz"},
		{`wants no password in the URL`, "--explain http://a:b@c/"},
		{`--from: want an address`, "--explain http://a/ --from 10.0.0.0/8"},
		{`--method: net/http: invalid method`, "--explain http://a/ --method G(T"},
		{`--header wants "NAME: VALUE"`, "--explain http://a/ --header a"},
		{`--header wants "NAME: VALUE"`, "--explain http://a/ --header a(:b"},
		{`--at: the file does not listen on ":82"`, "--explain http://a/ --at :82"},
		{`--from is for a request that --explain describes`, "--from 10.0.0.1"},
	} {
		code, stdout, stderr := inProcess(t, append([]string{"check", file}, strings.Fields(tt.args)...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %d %q %q", tt.args, code, stdout, stderr)
		}
	}
}
