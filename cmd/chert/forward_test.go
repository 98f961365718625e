package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

// echo is an upstream that answers with what it has received: a line of name, method, target and Host, and
// the fields that names has.
func echo(t *testing.T, name string, names ...string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.Error(w, "none of "+name, http.StatusNotFound)
			return
		case "/away", "/api/away":
			w.Header().Set("Location", "/there")
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprintf(w, "%s %s %s %s", name, r.Method, r.RequestURI, r.Host)
		for _, field := range names {
			fmt.Fprintf(w, "|%s", strings.Join(r.Header.Values(field), "+"))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// addrOfServer returns the host and port of a server.
func addrOfServer(s *httptest.Server) string { return s.Listener.Addr().String() }

func TestProxyActions(t *testing.T) {
	t.Parallel()
	app, other := echo(t, "app", "X-Own", "Cookie", "X-Forwarded-For", "X-Forwarded-Prefix"), echo(t, "other")
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	local := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "local "+r.URL.Path)
	})}
	go local.Serve(l)
	t.Cleanup(func() { local.Close() })
	p, _ := startConfig(t, `
[upstream.app]
servers = ["`+addrOfServer(app)+`"]
[[site]]
hosts = ["a.example"]
proxy = "app"
request_headers = { X-Own = "o", Cookie = "" }
headers = { X-Site = "s" }
[[site]]
hosts = ["b.example"]
[site.errors]
404 = "404.html"
502 = "502.html"
[[site.route]]
path = "/api/{rest...}"
proxy = "app"
strip = true
proxy_host = "inner.example"
[[site.route]]
path = "/keep/{rest...}"
proxy = "http://`+addrOfServer(other)+`"
proxy_host = "upstream"
[[site.route.rewrite]]
from = "^/keep/old/(.*)$"
to = "/keep/new/{1}?from=old"
[[site.route]]
path = "/local/{rest...}"
proxy = "unix:`+socket+`"
[[site.route]]
path = "/gone"
proxy = "127.0.0.1:1"
[[site.route]]
path = "/missing"
proxy = "app"
[[site.route]]
path = "/denied/{rest...}"
proxy = "app"
deny = "all"
[[site]]
hosts = ["c.example"]
proxy = "app"
[[site.route]]
path = "/admin/{rest...}"
proxy = "app"
deny = "all"
[[site.route]]
path = "/open/{rest...}"
proxy = "app"
[[site.route]]
path = "/one/{name}"
proxy = "app"
`, map[string]string{"404.html": "own 404", "502.html": "own 502"})
	c := newClient(t, "")
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, tt := range []struct {
		name, host, path string
		status           int
		body             string
		header           [2]string
	}{
		{"a site", "a.example", "/x%2fy?q=%zz;", 200, "app GET /x%2fy?q=%zz; a.example|o||127.0.0.1|", [2]string{"X-Site", "s"}},
		{"the prefix is cut off", "b.example", "/api/x?y", 200, "app GET /x?y inner.example|||127.0.0.1|/api", [2]string{}},
		{"Location gets it back", "b.example", "/api/away", 302, "", [2]string{"Location", "/api/there"}},
		{"an address", "b.example", "/keep/x", 200, "other GET /keep/x " + addrOfServer(other), [2]string{}},
		{"rewritten", "b.example", "/keep/old/x", 200, "other GET /keep/new/x?from=old " + addrOfServer(other), [2]string{}},
		{"a socket", "b.example", "/local/x", 200, "local /local/x", [2]string{}},
		{"chert's own error has a page", "b.example", "/gone", 502, "own 502", [2]string{"Proxy-Status", "chert; error=connection_refused"}},
		{"the upstream's stays", "b.example", "/missing", 404, "none of app\n", [2]string{}},
		{"no route", "b.example", "/none", 404, "own 404", [2]string{}},
		{"access first", "b.example", "/denied/x", 403, "Forbidden\n", [2]string{}},
		{"a guarded path", "c.example", "/admin/x", 403, "Forbidden\n", [2]string{}},
		{"not by another name", "c.example", "/x%2f..%2fadmin/x", 404, "404 page not found\n", [2]string{}},
		{"nor that", "c.example", "/admin%2fx", 404, "404 page not found\n", [2]string{}},
		{"nor from another route", "c.example", "/open/..%2fadmin/x", 404, "404 page not found\n", [2]string{}},
		{"nor by dots", "c.example", "/open/%2e%2e/admin/x", 404, "404 page not found\n", [2]string{}},
		{"nor out of a folder", "c.example", "/open/a%2f%2e%2e%2f..%2fadmin/x", 404, "404 page not found\n", [2]string{}},
		{"nor by a backslash", "c.example", "/open/..%5cadmin%5cx", 404, "404 page not found\n", [2]string{}},
		{"nor out of a name", "c.example", "/one/..%2fadmin", 404, "404 page not found\n", [2]string{}},
		{"a name is one segment", "c.example", "/one/x%2fy", 404, "404 page not found\n", [2]string{}},
		{"nor what has no route", "b.example", "/local/%2e%2e/none", 404, "own 404", [2]string{}},
		{"a slash stays encoded", "c.example", "/open/x%2fy", 200, "app GET /open/x%2fy c.example|||127.0.0.1|", [2]string{}},
		{"dots within a route", "c.example", "/open/x/%2e%2e/y", 200, "app GET /open/x/%2e%2e/y c.example|||127.0.0.1|", [2]string{}},
		{"others are served", "c.example", "/x%20y", 200, "app GET /x%20y c.example|||127.0.0.1|", [2]string{}},
	} {
		got := send(t, c, strings.TrimSuffix(p.urls[0], "/"), tt.path, tt.host, http.Header{"Cookie": {""}, "X-Own": {"client"}})
		if tt.host != "a.example" {
			got.body = strings.Replace(got.body, "|client|", "||", 1)
		}
		if got.status != tt.status || got.body != tt.body {
			t.Errorf("%s: %d %q, want %d %q", tt.name, got.status, got.body, tt.status, tt.body)
		}
		if h := tt.header; h[0] != "" && got.header.Get(h[0]) != h[1] {
			t.Errorf("%s: %s is %q, want %q", tt.name, h[0], got.header.Get(h[0]), h[1])
		}
	}
	until(t, func() bool { return p.stderr.String() != "" })
	if said := p.stderr.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said,
		"upstream 127.0.0.1_1 127.0.0.1:1: connection refused") {
		t.Errorf("stderr: %q", said)
	}
}

// Fields of a trusted proxy are passed on, and those of others replaced. The client that it names is the one
// of logs, access and hash.
func TestProxyTrusted(t *testing.T) {
	t.Parallel()
	app := echo(t, "app", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded")
	fields := http.Header{"X-Forwarded-For": {"192.0.2.7"}, "X-Forwarded-Proto": {"https"}, "X-Real-Ip": {"192.0.2.7"}}
	for proxies, want := range map[string]string{
		`["127.0.0.1"]`: "app GET / a.example|192.0.2.7, 127.0.0.1|https|192.0.2.7|",
		`["10.0.0.1"]`:  "app GET / a.example|127.0.0.1|http|127.0.0.1|",
		`[]`:            "app GET / a.example|127.0.0.1|http|127.0.0.1|",
	} {
		p, _ := startConfig(t, `
trusted_proxies = `+proxies+`
log = "json"
[upstream.app]
servers = ["`+addrOfServer(app)+`"]
balance = "hash client"
[[site]]
hosts = ["a.example"]
proxy = "app"
`, nil)
		if got := send(t, newClient(t, ""), p.urls[0], "", "a.example", fields); got.body != want {
			t.Errorf("%s: %q, want %q", proxies, got.body, want)
		}
		var line struct {
			Remote, Upstream, Server string
			Status, Tries            int
		}
		until(t, func() bool { return strings.Contains(p.stderr.String(), `"msg":"request"`) })
		for text := range strings.Lines(p.stderr.String()) {
			if strings.Contains(text, `"msg":"request"`) {
				if err := json.Unmarshal([]byte(text), &line); err != nil {
					t.Fatal(err)
				}
			}
		}
		remote := "127.0.0.1"
		if proxies == `["127.0.0.1"]` {
			remote = "192.0.2.7"
		}
		if line.Remote != remote || line.Upstream != "app" || line.Server != addrOfServer(app) || line.Tries != 1 {
			t.Errorf("%s: the log has %+v", proxies, line)
		}
	}
}

// What request_headers sets or removes is not sent by a client either under a name that CGI, WSGI, PHP and Rack have as
// the same variable.
func TestProxyRequestHeaders(t *testing.T) {
	t.Parallel()
	names := []string{"X-User", "X_User", "x_user", "X-Key_Id", "X-Key-Id", "X_key_id", "X-Other", "X_other"}
	app := echo(t, "app", names...)
	p, _ := startConfig(t, `
[[site]]
hosts = ["*"]
proxy = "`+addrOfServer(app)+`"
request_headers = { X-User = "", X-Key_Id = "chert" }
`, nil)
	sent := make(http.Header)
	for _, name := range names {
		sent[name] = []string{"client"}
	}
	got := send(t, newClient(t, ""), strings.TrimSuffix(p.urls[0], "/"), "/", "a.example", sent)
	if want := "app GET / a.example||||chert|||client|client"; got.body != want {
		t.Errorf("%d %q, want %q", got.status, got.body, want)
	}
}

func TestProxySplit(t *testing.T) {
	t.Parallel()
	old, beta, some := echo(t, "old"), echo(t, "beta"), echo(t, "some")
	p, _ := startConfig(t, `
trusted_proxies = ["127.0.0.1"]
[upstream.old]
servers = "`+addrOfServer(old)+`"
[upstream.beta]
servers = "`+addrOfServer(beta)+`"
[upstream.some]
servers = "`+addrOfServer(some)+`"
[[site]]
hosts = "*"
proxy = "old"
split = [
  { upstream = "some", percent = 30 },
  { upstream = "beta", header = { X-Canary = "1" } },
  { upstream = "beta", cookie = { beta = "*" } },
]
`, nil)
	c := newClient(t, "")
	ask := func(h http.Header) string {
		name, _, _ := strings.Cut(send(t, c, p.urls[0], "", "a.example", h).body, " ")
		return name
	}
	if got := ask(http.Header{"X-Canary": {"1"}}); got != "beta" {
		t.Errorf("by a field: %q", got)
	}
	if got := ask(http.Header{"Cookie": {"beta=x"}}); got != "beta" {
		t.Errorf("by a cookie: %q", got)
	}
	n := 0
	for i := range 200 {
		client := http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.2.%d", i)}}
		first := ask(client)
		if first == "some" {
			n++
		}
		if again := ask(client); again != first {
			t.Errorf("client %d: %q, then %q", i, first, again)
		}
	}
	if n < 30 || n > 90 {
		t.Errorf("%d of 200 clients, want about 60", n)
	}
}

// Tunnels belong to no generation: reloads do not end them.
func TestProxyTunnelsOverReloads(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "lines" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		open.Add(1)
		defer open.Add(-1)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
		io.Copy(c, rw)
	}))
	defer app.Close()
	tunnels, reloads := 100, 10
	if race.Enabled {
		tunnels = 30
	}
	config := `
[upstream.app]
servers = ["` + addrOfServer(app) + `"]
[[site]]
hosts = ["*"]
proxy = "app"
`
	p, file := startConfig(t, config, nil)
	type tunnel struct {
		net.Conn
		*bufio.Reader
	}
	all := make([]tunnel, tunnels)
	for i := range all {
		c := dial(t, p.urls[0])
		fmt.Fprint(c, "GET /lines HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: lines\r\n\r\n")
		all[i] = tunnel{c, bufio.NewReader(c)}
		res, err := http.ReadResponse(all[i].Reader, nil)
		if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("tunnel %d: %v %v", i, res, err)
		}
	}
	for n := range reloads {
		write(t, file, config+strings.Repeat("#", n))
		p.reload()
		for i, c := range all {
			want := fmt.Sprintf("%d of %d\n", n, i)
			if _, err := io.WriteString(c.Conn, want); err != nil {
				t.Fatalf("tunnel %d, reload %d: %v", i, n, err)
			}
			if got, err := c.ReadString('\n'); got != want {
				t.Fatalf("tunnel %d, reload %d: %q, %v", i, n, got, err)
			}
		}
	}
	if n := open.Load(); n != int64(tunnels) {
		t.Errorf("%d tunnels at the upstream, want %d", n, tunnels)
	}
	for _, c := range all {
		c.Conn.Close()
	}
	until(t, func() bool { return open.Load() == 0 })
}

// Servers that speak TLS are verified, and their connections outlive a reload.
func TestProxyTLS(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Proto+" "+r.TLS.ServerName)
	}))
	app.EnableHTTP2 = true
	app.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			dials.Add(1)
		}
	}
	app.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	app.StartTLS()
	defer app.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: app.Certificate().Raw})
	config := `
[upstream.app]
servers = ["` + addrOfServer(app) + `"]
tls = true
tls_name = "example.com"
ca = "ca.pem"
[upstream.h2]
servers = ["` + addrOfServer(app) + `"]
tls = true
tls_name = "example.com"
ca = "ca.pem"
protocol = "h2"
[[site]]
hosts = ["a.example"]
proxy = "app"
[[site.route]]
path = "/h2"
proxy = "h2"
[[site]]
hosts = ["b.example"]
proxy = "https://` + addrOfServer(app) + `"
`
	p, file := startConfig(t, config, map[string]string{"ca.pem": string(ca)})
	c := newClient(t, "")
	for n := range 3 {
		if r := send(t, c, p.urls[0], "", "a.example", nil); r.status != 200 || r.body != "HTTP/1.1 example.com" {
			t.Errorf("verified: %d %q", r.status, r.body)
		}
		// A busy machine has requests go to goroutines, which have connections of their own.
		if n == 0 && dials.Load() != 1 || dials.Load() > 2 {
			t.Errorf("%d connections after %d reloads", dials.Load(), n)
		}
		write(t, file, config+strings.Repeat("#", n))
		p.reload()
	}
	if r := send(t, c, p.urls[0], "h2", "a.example", nil); r.status != 200 || r.body != "HTTP/2.0 example.com" {
		t.Errorf("HTTP/2: %d %q", r.status, r.body)
	}
	if r := send(t, c, p.urls[0], "", "b.example", nil); r.status != http.StatusBadGateway || !strings.Contains(r.header.Get("Proxy-Status"), "tls_certificate_error") {
		t.Errorf("an unknown authority: %d %q", r.status, r.header)
	}
}

// Responses are compressed where that was asked for, and upgrades pass through that too.
func TestProxyCompression(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			io.Copy(c, rw)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, strings.Repeat("text ", 2000))
	}))
	defer app.Close()
	p, _ := startConfig(t, `
[[site]]
hosts = ["a.example"]
proxy = "`+addrOfServer(app)+`"
compression = true
[[site]]
hosts = ["b.example"]
proxy = "`+addrOfServer(app)+`"
`, nil)
	c := newClient(t, "")
	for host, want := range map[string]string{"a.example": "gzip", "b.example": ""} {
		r := send(t, c, p.urls[0], "", host, http.Header{"Accept-Encoding": {"gzip"}})
		if r.status != 200 || r.header.Get("Content-Encoding") != want || (len(r.body) < 10000) != (want != "") {
			t.Errorf("%s: %d %q, %d bytes", host, r.status, r.header, len(r.body))
		}
	}
	conn := dial(t, p.urls[0])
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: x\r\nAccept-Encoding: gzip\r\n\r\nhello\n")
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res, err)
	}
	if line, err := r.ReadString('\n'); line != "hello\n" {
		t.Errorf("%q %v", line, err)
	}
	p.signal(syscall.SIGTERM) // a tunnel does not keep the process
	p.waitFor(0)
}

// A client cannot choose its server for "hash client" by a field that a trusted proxy would send.
func TestProxyHashClient(t *testing.T) {
	t.Parallel()
	one, other := echo(t, "one"), echo(t, "other")
	for proxies, want := range map[string]int{`["10.0.0.1"]`: 1, `["127.0.0.1"]`: 2} {
		p, _ := startConfig(t, `
trusted_proxies = `+proxies+`
[upstream.app]
servers = ["`+addrOfServer(one)+`", "`+addrOfServer(other)+`"]
balance = "hash client"
[[site]]
hosts = ["*"]
proxy = "app"
`, nil)
		c := newClient(t, "")
		seen := make(map[string]bool)
		for i := range 30 {
			client := fmt.Sprintf("192.0.2.%d", i)
			name, _, _ := strings.Cut(send(t, c, p.urls[0], "", "a.example", http.Header{"X-Real-Ip": {client}, "X-Forwarded-For": {client}}).body, " ")
			seen[name] = true
		}
		if len(seen) != want {
			t.Errorf("%s: %v", proxies, seen)
		}
	}
}

// The log has what is known of the upstream, however a request ends, on the event loop too.
func TestProxyLog(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "some")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case "/gone":
			io.WriteString(w, "some")
			http.NewResponseController(w).Flush()
			<-hold
		case "/large":
			w.Write(make([]byte, 300_000))
		}
	}))
	app.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer app.Close()
	defer close(hold)
	dir := t.TempDir()
	p, _ := startConfig(t, `
[upstream.app]
servers = "`+addrOfServer(app)+`"
[[site]]
hosts = ["a.example"]
proxy = "app"
log = { file = "`+dir+`/a.log", format = "json" }
[[site.route]]
path = "/refused"
proxy = "127.0.0.1:1"
[[site.route]]
path = "/stripped/{rest...}"
proxy = "app"
strip = true
[[site]]
hosts = ["b.example"]
proxy = "app"
log = { file = "`+dir+`/b.log", format = "json", fields = ["path", "status"] }
`, nil, "--admin", "127.0.0.1:0")
	admin := strings.TrimPrefix(p.line(), "chert: admin page at ")
	c := newClient(t, "")
	get := func(host, path string) {
		req, err := http.NewRequest("GET", p.urls[0]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		if res, err := c.Do(req); err == nil {
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	for _, path := range []string{"ok", "large", "cut", "refused", "stripped/x"} {
		get("a.example", path)
	}
	get("b.example", "ok")
	conn := dial(t, p.urls[0])
	fmt.Fprint(conn, "GET /gone HTTP/1.1\r\nHost: a.example\r\n\r\n")
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.SetLinger(0)
	conn.Close()
	lines := func(name string, n int) (all map[string]map[string]any) {
		until(t, func() bool {
			text, _ := os.ReadFile(filepath.Join(dir, name))
			return strings.Count(string(text), "\n") == n
		})
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all = make(map[string]map[string]any)
		for line := range strings.Lines(string(text)) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			all[m["path"].(string)] = m
		}
		return all
	}
	all := lines("a.log", 6)
	for path, want := range map[string]string{"/ok": "app 200 1 <nil>", "/large": "app 200 1 <nil>", "/cut": "app 200 1 response cut off",
		"/refused": "127.0.0.1_1 502 1 connection refused", "/stripped/x": "app 200 1 <nil>", "/gone": "app 200 1 client gone"} {
		m := all[path]
		if got := fmt.Sprint(m["upstream"], " ", m["status"], " ", m["tries"], " ", m["upstream_error"]); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if m["server"] == nil || path != "/refused" && m["first_byte"] == nil {
			t.Errorf("%s: %v", path, m)
		}
	}
	if m := lines("b.log", 1)["/ok"]; m["upstream"] != nil || m["status"] != 200.0 {
		t.Errorf("without the field: %v", m)
	}
	// Where a few go may depend on which connections are free.
	if text := send(t, c, strings.TrimSuffix(admin, "\n"), "metrics", "", nil).body; !onLoop.MatchString(text) {
		t.Errorf("not on the loop: %s", text[max(strings.Index(text, "chert_requests_total"), 0):][:600])
	}
}

var onLoop = regexp.MustCompile(`http_response_status_class="2xx",network_protocol_version="1.1",way="direct"} [3-9]`)

// A request for a route with proxy is forwarded ahead of its body, as without routes.
func TestRouteTakesAhead(t *testing.T) {
	t.Parallel()
	for _, h := range []ahead{true, false} {
		if want := bool(h); wire.TakesAhead(asDecoded{Handler: h}) != want || wire.TakesAhead(&hiding{Handler: h}) != want {
			t.Errorf("not as its handler: %v", h)
		}
	}
}

type ahead bool

func (ahead) ServeHTTP(http.ResponseWriter, *http.Request) {}
func (ahead) ServeDirect(*direct.Exchange) bool            { return false }
func (a ahead) TakesAhead() bool                           { return bool(a) }
