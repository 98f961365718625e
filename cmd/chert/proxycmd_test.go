package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/proxy"
)

// startProxy starts "chert proxy".
func startProxy(t *testing.T, args ...string) *proc {
	t.Helper()
	p := &proc{t: t, cmd: command(t, append([]string{"proxy", "--listen", "127.0.0.1:0"}, args...)...)}
	p.begin()
	return p
}

func TestProxyCommand(t *testing.T) {
	t.Parallel()
	one, other := echo(t, "one"), echo(t, "other")
	p := startProxy(t, addrOfServer(one), addrOfServer(other), "--balance", "hash query:k", "--host", "inner.example", "--log", "combined")
	c := newClient(t, "")
	seen := make(map[string]bool)
	for i := range 20 {
		path := fmt.Sprintf("?k=%d", i)
		first, again := send(t, c, p.urls[0], path, "a.example", nil), send(t, c, p.urls[0], path, "a.example", nil)
		if first.status != 200 || first.body != again.body || !strings.HasSuffix(first.body, " inner.example") {
			t.Fatalf("%s: %d %q, then %q", path, first.status, first.body, again.body)
		}
		seen[first.body[:3]] = true
	}
	if len(seen) != 2 {
		t.Errorf("%v, want both servers", seen)
	}
	until(t, func() bool { return strings.Count(p.stderr.String(), `"GET / HTTP/1.1" 200 `) == 40 })
	p.reload()
	if r := send(t, c, p.urls[0], "?k=1", "a.example", nil); r.status != 200 {
		t.Errorf("after a reload: %d", r.status)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(0)
}

func TestProxyCommandLine(t *testing.T) {
	t.Parallel()
	see := `; see "chert proxy --help"`
	for want, args := range map[string][]string{
		`chert: want an address, as in "chert proxy 127.0.0.1:9000"`:                                                                                 {},
		`chert: "x": want an address such as "10.0.0.1:8080", "app.internal:8080" or "unix:/run/app.sock"`:                                           {"x"},
		`chert: "https://a": either all addresses are https, or none`:                                                                                {"127.0.0.1:1", "https://a"},
		`chert: "9000" is there twice`:                                                                                                               {"127.0.0.1:9000", "9000"},
		`chert: --check wants a path such as "/healthz", without spaces`:                                                                             {"9000", "--check", "x"},
		`chert: --host: wants "upstream", which is the address of the server, or a name such as "app.internal"; without it the host is the client's`: {"9000", "--host", "a b"},
		`chert: "https://a.example/x": want a host and a port; paths are kept, and strip = true removes that of the route`:                           {"https://a.example/x"},
		`chert: 127.0.0.1:9000 is where chert itself listens; choose another address with --listen`:                                                  {":9000", "--listen", ":9000"},
	} {
		oneLine(t, exitUsage, want+see, append([]string{"proxy"}, args...)...)
	}
}

// What is known about servers outlives a reload: their health, counts and connections. The page shows it.
func TestProxyStateOverReload(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	app.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			dials.Add(1)
		}
	}
	app.Start()
	defer app.Close()
	config := `
[upstream.app]
servers = ["` + addrOfServer(app) + `"]
[upstream.bad]
servers = ["` + freeport.Addr(t) + `"]
[upstream.hashed]
servers = ["10.255.0.1:1", "10.255.0.2:1", "10.255.0.3:1"]
balance = "hash client"
[[site]]
hosts = ["*"]
proxy = "app"
[[site.route]]
path = "/bad"
proxy = "bad"
[[site.route]]
path = "/hashed"
proxy = "hashed"
`
	p, file := startConfig(t, config, nil, "--admin", "127.0.0.1:0", "--log", "off")
	admin := strings.TrimSuffix(strings.TrimPrefix(p.line(), "chert: admin page at "), "\n")
	c := newClient(t, "")
	for range 5 {
		send(t, c, p.urls[0], "", "a.example", nil)
		if r := send(t, c, p.urls[0], "bad", "a.example", nil); r.status != http.StatusBadGateway {
			t.Fatalf("a server that does not run: %d", r.status)
		}
	}
	look := func() map[string]proxy.ServerStatus {
		var list struct {
			At        time.Time
			Upstreams []proxy.UpstreamStatus
		}
		text := send(t, c, admin, "upstreams", "", nil).body
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		all := make(map[string]proxy.ServerStatus)
		for _, u := range list.Upstreams {
			all[u.Name] = u.Servers[0]
		}
		if len(list.Upstreams) != 3 || list.At.IsZero() {
			t.Errorf("%s", text)
		}
		return all
	}
	before := look()
	// A busy machine has requests go to goroutines, which have connections of their own.
	if s := before["app"]; s.Requests != 5 || s.Dials > 2 || s.Dials+s.Reused != 5 || s.State != "up" {
		t.Errorf("app: %+v", s)
	}
	if s := before["bad"]; s.State != "ejected" || s.Failures < 5 || !strings.Contains(s.Cause, "refused") || s.Until.IsZero() {
		t.Errorf("bad: %+v", s)
	}
	for n := range 3 { // as often as there are more connections than those two, if a reload loses them
		write(t, file, strings.Replace(config, "10.255.0.3", "10.255.0.4", 1)+strings.Repeat("#", n))
		p.reload()
		send(t, c, p.urls[0], "", "a.example", nil)
	}
	until(t, func() bool {
		return strings.Contains(p.stderr.String(), "chert: reload: upstream hashed: 50.0 % of the keys move to another server\n")
	})
	after := look()
	if s := after["app"]; s.Requests != 8 || s.Dials > 2 || s.Dials+s.Reused != 8 || dials.Load() > 2 {
		t.Errorf("app after the reloads: %+v, %d connections", s, dials.Load())
	}
	if s := after["bad"]; s.State == "unknown" || s.Ejections != before["bad"].Ejections || s.Failures != before["bad"].Failures {
		t.Errorf("bad after the reloads: %+v", s)
	}
	metrics := send(t, c, admin, "metrics", "", nil).body
	if want := `chert_upstream_requests_total{server="` + addrOfServer(app) + `",upstream="app"} 8`; !strings.Contains(metrics, want) {
		t.Errorf("/metrics has no %s", want)
	}
	p.signal(syscall.SIGTERM)
	p.waitFor(0)
}

func TestCheckUpstreams(t *testing.T) {
	t.Parallel()
	text := `
[upstream.app]
servers = ["10.0.0.1:80", { addr = "10.0.0.2:80", weight = 2 }, "10.0.0.3:80"]
balance = "hash client"
[[site]]
hosts = ["*"]
proxy = "app"
split = [{ upstream = "127.0.0.1:9000", header = { X = "1" } }, { upstream = "127.0.0.1:9001", percent = 5 }]
[[site.route]]
path = "/api/{rest...}"
proxy = "https://localhost:9443"
strip = true
proxy_host = "upstream"
[[site.route]]
path = "/gone"
proxy = "name.invalid:80"
`
	dir := folder(t, map[string]string{"new.toml": text, "old.toml": strings.Replace(text, "10.0.0.3", "10.0.0.4", 1),
		"other.toml": strings.Replace(text, "hash client", "hash uri", 1)})
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"new.toml: ok, 1 site", `warning: upstream name.invalid_80: "name.invalid" cannot be resolved: `}},
		{[]string{"--against", dir + "/old.toml"}, []string{"upstream app: 40.0 % of the keys move to another server"}},
		{[]string{"--against", dir + "/new.toml"}, []string{"no keys move to another server"}},
		{[]string{"--against", dir + "/other.toml"}, []string{"upstream app: its keys are others, as balance has changed from hash uri to hash client"}},
		{[]string{"--explain", "http://a/x?y"}, []string{"split", "127.0.0.1_9001 (127.0.0.1:9001) has 5 % of the clients",
			"app (10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80): GET /x?y, Host a; not asked", "response  that of the upstream"}},
		{[]string{"--explain", "http://a/", "--header", "X: 1"}, []string{"127.0.0.1_9000 (127.0.0.1:9000): GET /, Host a; not asked"}},
		{[]string{"--explain", "http://a/api/v1/x"}, []string{"localhost_9443 (localhost:9443): GET /v1/x, Host that of the server; not asked"}},
	} {
		code, stdout, stderr := inProcess(t, append([]string{"check", dir + "/new.toml"}, tt.args...)...)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(stdout+stderr, want) {
				t.Errorf("%v: %d %s%s, want %q", tt.args, code, stdout, stderr, want)
			}
		}
	}
}
