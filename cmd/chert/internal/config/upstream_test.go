package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/proxy"
)

func TestUpstreams(t *testing.T) {
	t.Parallel()
	dir, cfg, problems := load(t, `
[upstream.app]
servers = ["10.0.0.1:8080", { addr = "app.internal:80", weight = 3, max_requests = 5 }, { addr = "unix:a.sock", backup = true, weight = 0 }]
balance = "hash header:X-User"
bound = 2
slow_start = "0s"
protocol = "h2"
tls = true
tls_name = "app.internal"
max_requests = 0
queue = 7
queue_timeout = "2s"
connect_timeout = "0s"
response_timeout = "5m"
stall_timeout = "30s"
idle_timeout = "4s"
max_idle = 0
retry = ["timeouts", "statuses", "keys"]
[upstream.app.check]
path = "/healthz"
proxy_host = "x"
interval = "1s"
timeout = "500ms"
fall = 3
rise = 1
status = 204
[upstream.app.health]
consecutive = 0
within = "1s"
percent = 20
least = 5
ejection = "1s"
max_ejection = "9s"
[upstream.plain]
srv = "_http._tcp.app"
check = "/h"
health = false
retry = false
[[site]]
hosts = "*"
proxy = "app"
proxy_host = "upstream"
request_headers = { X-A = "1", Cookie = "" }
forwarded = true
early_data = true
compression = true
hidden = ["*.bak", ".git"]
dotfiles = false
split = [{ upstream = "plain", percent = 5 }, { upstream = "127.0.0.1:1", header = { X = "1" } }]
[[site.rewrite]]
from = "^/a"
to = "/b"
[[site.route]]
path = "/x/{rest...}"
proxy = "https://api.example.com/"
strip = true
[[site.route]]
path = "/y/"
proxy = "http://api.example.com"
strip = true
hidden = "*.sql"
[[site.route]]
path = "/z"
proxy = "127.0.0.1:1"
`)
	if problems != nil {
		t.Fatal(problems)
	}
	unix := "unix:" + filepath.Join(dir, "a.sock")
	want := []proxy.UpstreamOptions{
		{Name: "app", Servers: []proxy.Server{{Addr: "10.0.0.1:8080"}, {Addr: "app.internal:80", Weight: 3, MaxRequests: 5}, {Addr: unix, Weight: -1, Backup: true}},
			Balance:   proxy.Balance{Policy: proxy.PolicyHash, Key: proxy.ByHeader("X-User"), Bound: 2},
			Check:     &proxy.Check{Path: "/healthz", Host: "x", Interval: time.Second, Timeout: 500 * time.Millisecond, Fall: 3, Rise: 1, Status: 204},
			Health:    proxy.Health{Consecutive: -1, Within: time.Second, Percent: 20, Least: 5, Ejection: time.Second, MaxEjection: 9 * time.Second},
			SlowStart: -1, Protocol: proxy.ProtocolHTTP2, MaxRequests: -1, Queue: 7, QueueTimeout: 2 * time.Second, ConnectTimeout: -1,
			ResponseTimeout: 5 * time.Minute, StallTimeout: 30 * time.Second, IdleTimeout: 4 * time.Second, MaxIdle: -1,
			Retry: proxy.Retry{Timeouts: true, Statuses: true, Keys: true}},
		{Name: "plain", SRV: "_http._tcp.app", Check: &proxy.Check{Path: "/h"}, Health: proxy.Health{Off: true}, Retry: proxy.Retry{Off: true}},
		{Name: "127.0.0.1_1", Servers: []proxy.Server{{Addr: "127.0.0.1:1"}}},
		{Name: "api.example.com_443", Servers: []proxy.Server{{Addr: "api.example.com:443"}}},
		{Name: "api.example.com_80", Servers: []proxy.Server{{Addr: "api.example.com:80"}}},
	}
	if len(cfg.Upstreams) != len(want) {
		t.Fatalf("%d upstreams", len(cfg.Upstreams))
	}
	for i, u := range cfg.Upstreams {
		if !reflect.DeepEqual(u.Options, want[i]) {
			t.Errorf("upstream %d:\n%+v\nwant\n%+v", i, u.Options, want[i])
		}
	}
	if u := cfg.Upstreams; *u[0].TLS != (UpstreamTLS{ServerName: "app.internal"}) || u[1].TLS != nil || *u[3].TLS != (UpstreamTLS{}) || u[4].TLS != nil {
		t.Error("TLS")
	}
	site := cfg.Sites[0]
	p := site.Proxy
	if p.Upstream != cfg.Upstreams[0] || p.Host != "upstream" || !p.Forwarded || !p.EarlyData || !p.Compress || len(p.Rewrite) != 1 || p.Strip != "" ||
		!reflect.DeepEqual(p.Headers, map[string]string{"X-A": "1", "Cookie": ""}) || len(p.Split) != 2 || p.Split[0] != (Split{Upstream: cfg.Upstreams[1], Percent: 5}) ||
		p.Split[1].Upstream != cfg.Upstreams[2] || !reflect.DeepEqual(p.Split[1].When, &middleware.Condition{Header: map[string]string{"X": "1"}, Cookie: p.Split[1].When.Cookie, Query: p.Split[1].When.Query}) {
		t.Errorf("%+v", p)
	}
	if !slices.Equal(p.Hidden, []string{"*.bak", ".git"}) || !p.NoDotfiles {
		t.Errorf("hidden: %+v", p)
	}
	for i, strip := range []string{"/x", "/y", ""} {
		hidden := [][]string{nil, {"*.sql"}, nil}[i]
		if r := site.Routes[i]; r.Proxy.Strip != strip || len(r.Proxy.Rewrite) != 0 || !slices.Equal(r.Proxy.Hidden, hidden) || r.Proxy.NoDotfiles {
			t.Errorf("route %d: %+v", i, r.Proxy)
		}
	}
	if site.Routes[2].Proxy.Upstream != cfg.Upstreams[2] {
		t.Error("an address is shared")
	}
}

func TestUpstreamProblems(t *testing.T) {
	t.Parallel()
	up := func(s string) string {
		return "[upstream.a]\n" + s + "\n[[site]]\nhosts = '*'\nproxy = 'a'\n"
	}
	site := func(s string) string {
		return "[upstream.a]\nservers = '10.0.0.1:1'\n[[site]]\nhosts = '*'\n" + s
	}
	route := func(s string) string { return site("[[site.route]]\n" + s) }
	for _, tt := range []struct{ name, text, want string }{
		{"no servers", up(""), "1:11: [upstream.a] has no servers"},
		{"servers and srv", up("servers = 'a:1'\nsrv = 'x'"), "1:11: [upstream.a] has servers and srv"},
		{"an empty list", up("servers = []"), "2:1: servers wants from 1 to 256 addresses"},
		{"no port", up("servers = ['a']"), "2:12: servers: \"a\": want an address"},
		{"a URL", up("servers = ['https://a:1']"), "2:12: servers: \"https://a:1\": want \"a:1\", and tls = true"},
		{"a URL without TLS", up("servers = ['http://a:1']"), "2:12: servers: \"http://a:1\": want \"a:1\""},
		{"another protocol", up("servers = ['ftp://a:1']"), "2:12: servers: \"ftp://a:1\": requests are forwarded over HTTP, not ftp"},
		{"twice", up("servers = ['a:1', { addr = 'a:1' }]"), "2:1: servers: \"a:1\" is there twice"},
		{"a key", up("servers = [{ adr = 'a:1' }]"), `2:14: unknown key "adr" in servers of [upstream.a]; did you mean "addr"?`},
		{"a near key", up("server = ['a:1']"), `2:1: unknown key "server" in [upstream.a]; did you mean "servers"?`},
		{"keys of others", up("servers = 'a:1'\nmax_fails = 3\nkeepalive = 5\nlb_policy = 'x'"), `3:1: unknown key "max_fails" in [upstream.a]; want [upstream.NAME.health]|` +
			`4:1: unknown key "keepalive" in [upstream.a]; want max_idle|5:1: unknown key "lb_policy" in [upstream.a]; want balance = `},
		{"a path as health", up("servers = 'a:1'\nhealth = '/x'"), `3:10: health wants a table, or false; want check = "/x" to ask servers for it`},
		{"no name", "[upstream]\nservers = 'a:1'\n[[site]]\nhosts = '*'\nroot = '.'", `2:1: an upstream has a name: want [upstream.app] with servers`},
		{"a list", "[[upstream]]\nname = 'a'\n[[site]]\nhosts = '*'\nroot = '.'", `1:3: an upstream has a name: want [upstream.app] with servers`},
		{"backups", up("servers = [{ addr = 'a:1', backup = true }]"), "2:1: servers are all backups"},
		{"consecutive failures", up("servers = 'a:1'\n[upstream.app.health]\nconsecutive = 17"),
			"4:15: consecutive wants a number from 0 to 16"},
		{"a weight", up("servers = [{ addr = 'a:1', weight = 101 }]"), "2:37: weight wants a number from 0 to 100"},
		{"a balance", up("servers = 'a:1'\nbalance = 'hash foo'"), `3:11: balance: "hash foo" is unknown`},
		{"a bound", up("servers = 'a:1'\nbound = 2"), "3:1: bound is for balance"},
		{"a small bound", up("servers = 'a:1'\nbalance = 'hash uri'\nbound = 1"), "4:9: bound wants a number of more than 1"},
		{"a check", up("servers = 'a:1'\ncheck = 'x'"), "3:9: check wants a path"},
		{"a check's path", up("servers = 'a:1'\n[upstream.a.check]\nfall = 1"), "3:13: [upstream.a.check] has no path"},
		{"retry", up("servers = 'a:1'\nretry = ['all']"), `3:10: retry wants "timeouts", "statuses" and "keys", not "all"`},
		{"TLS", up("servers = 'a:1'\ntls_name = 'b'"), "3:1: tls_name is for servers that speak TLS"},
		{"a key without certificate", up("servers = 'a:1'\ntls = true\ntls_cert = 'x'"), "4:12: tls_cert: \"x\": no such file|1:11: tls_cert and tls_key go together in [upstream.a]"},
		{"TLS to a socket", up("servers = 'unix:a'\ntls = true"), "3:1: tls to a unix socket needs tls_name"},
		{"a queue", up("servers = 'a:1'\nqueue = 1"), "3:1: queue is for servers that have their max_requests"},
		{"a queue's time", up("servers = 'a:1'\nqueue_timeout = '1s'"), "3:1: queue_timeout is for a queue, and there is none"},
		{"the longest ejection", up("servers = 'a:1'\nhealth = { max_ejection = '4s' }"), "3:27: max_ejection wants ejection at least, which is 5s"},
		{"ejections", up("servers = 'a:1'\nhealth = { ejection = '9s', max_ejection = '8s' }"), "3:44: max_ejection wants ejection at least, which is 9s"},
		{"a protocol", up("servers = 'a:1'\nprotocol = 'h3'"), `3:12: protocol wants "h1"`},
		{"a name", "[upstream.'a.b']\nservers = 'a:1'\n[[site]]\nhosts = '*'\nproxy = 'c:1'", "1:11: the name \"a.b\" of an upstream wants letters"},
		{"no upstream", site("proxy = 'b'"), "5:9: proxy: there is no upstream \"b\"; want [upstream.b]"},
		{"a near one", strings.Replace(site("proxy = 'backed'"), "upstream.a", "upstream.backend", 1), `did you mean "backend"?`},
		{"root too", site("root = '.'\nproxy = 'a'"), "3:3: [[site]] has root and proxy"},
		{"no proxy", site("root = '.'\nproxy_host = 'x'"), "6:1: proxy_host is for proxy, and [[site]] has none"},
		{"a path", site("proxy = 'http://a/b'"), "5:9: proxy: \"http://a/b\": want a host and a port"},
		{"Host", site("proxy = 'a'\nrequest_headers = { Host = 'x' }"), `6:21: the field "Host" is set by proxy_host`},
		{"a percentage", site("proxy = 'a'\nsplit = [{ upstream = 'a', percent = 60 }, { upstream = 'a', percent = 60 }]"), "6:1: split has 120 percent"},
		{"neither", site("proxy = 'a'\nsplit = [{ upstream = 'a' }]"), "split wants percent, or a condition"},
		{"both", site("proxy = 'a'\nsplit = [{ upstream = 'a', percent = 1, cookie = { a = 'b' } }]"), "split has percent and a condition"},
		{"a key of files", site("proxy = 'a'\nlisting = true"), "6:1: listing is for files, and neither [[site]] nor a route of it has root"},
		{"a field twice", site("proxy = 'a'\nrequest_headers = { X-A = 'x', x-a = 'y' }"), `6:32: the field "x-a" is there twice`},
		{"strip", route("path = '/x'\nproxy = 'a'\nstrip = true"), "8:1: strip is for a path that ends in a wildcard"},
		{"two wildcards", route("path = '/{a}/{b...}'\nproxy = 'a'\nstrip = true"), "8:1: strip is for a path that ends in a wildcard"},
		{"a file's key", route("path = '/x'\nproxy = 'a'\nlisting = true"), "8:1: listing is for a route with root, and this one has proxy"},
		{"of another action", route("path = '/x'\nrespond = 200\nstrip = true"), "8:1: strip is for a route with proxy, and this one has respond"},
		{"nothing left", site("proxy = 'a'\n[[site.route]]\npath = '/{x...}'\nrespond = 200"), "so root or proxy of the site is never used"},
		{"a log's field", "log = { format = 'json', fields = ['added'] }\n" + site("proxy = 'a'"), `1:36: fields: there is no field "added" in the log`},
	} {
		_, _, problems := load(t, tt.text)
		got := ""
		if problems != nil {
			got = problems.Error()
		}
		for want := range strings.SplitSeq(tt.want, "|") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", tt.name, got, want)
			}
		}
	}
}
