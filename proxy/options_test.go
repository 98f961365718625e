package proxy

import (
	"crypto/tls"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestParseBalance(t *testing.T) {
	for _, s := range []string{"least", "round-robin", "hash client", "hash uri", "hash path", "hash header:X-User",
		"hash cookie:u", "hash query:a b", "sticky", "sticky name"} {
		b, err := ParseBalance(s)
		if s == "hash query:a b" {
			if err == nil {
				t.Errorf("%q is accepted", s)
			}
			continue
		}
		if err != nil || b.String() != s {
			t.Errorf("%q: %q, %v", s, b, err)
		}
	}
	for _, s := range []string{"x", "least x", "hash", "hash x", "hash header", "hash header:", "hash header:a@", "hash client:x",
		"hash query:", "hash cookie:a;b", "sticky a b", "sticky a;b", "sticky a=b"} {
		if b, err := ParseBalance(s); err == nil {
			t.Errorf("%q is accepted as %q", s, b)
		}
	}
	for b, want := range map[Balance]float64{
		{}: 0, {Policy: PolicyHash}: 0, {Policy: PolicyHash, Key: ByPath()}: 1.5, {Policy: PolicySticky}: 0,
		{Policy: PolicyHash, Key: ByPath(), Bound: -1}: 0, {Policy: PolicySticky, Bound: 2}: 2,
	} {
		if got := b.bound(); got != want {
			t.Errorf("%v: bound %v, want %v", b, got, want)
		}
	}
}

func TestUpstreamOptions(t *testing.T) {
	p := NewPool(nil)
	defer p.Close()
	server := []Server{{Addr: "127.0.0.1:80"}}
	for _, c := range []struct {
		o    UpstreamOptions
		want string // a part of the error
	}{
		{UpstreamOptions{Servers: server}, "Name is not a token"},
		{UpstreamOptions{Name: "a b", Servers: server}, "Name is not a token"},
		{UpstreamOptions{Name: "a"}, "either Servers or SRV"},
		{UpstreamOptions{Name: "a", Servers: server, SRV: "x"}, "either Servers or SRV"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "127.0.0.1"}}}, "Servers[0]: \"127.0.0.1\" is no address"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "127.0.0.1:0"}}}, "no port from 1 to 65535"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "127.0.0.1:http"}}}, "no port from 1 to 65535"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: ":80"}}}, "has no host"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "a/b:80"}}}, "has no valid host"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "unix:"}}}, "needs a path"},
		{UpstreamOptions{Name: "a", Servers: []Server{{Addr: "unix:/x"}}, TLS: &tls.Config{}}, "needs TLS.ServerName"},
		{UpstreamOptions{Name: "a", Servers: server, Check: &Check{Path: "x"}}, "Check: Path"},
		{UpstreamOptions{Name: "a", Servers: server, Check: &Check{Path: "/x\r\ny"}}, "Check: Path"},
		{UpstreamOptions{Name: "a", Servers: server, Check: &Check{Path: "/x", Interval: -1}}, "Check: Interval"},
		{UpstreamOptions{Name: "a", Servers: server, Check: &Check{Path: "/x", Rise: -1}}, "Check: Interval"},
		{UpstreamOptions{Name: "a", Servers: server, Check: &Check{Path: "/x", Status: 100}}, "Check: Status"},
		{UpstreamOptions{Name: "a", Servers: server, Health: Health{Ejection: -1}}, "Health: Within"},
		{UpstreamOptions{Name: "a", Servers: server, Health: Health{Consecutive: 17}}, "Health: Consecutive"},
		{UpstreamOptions{Name: "a", Servers: server, Health: Health{Percent: 101}}, "Health: Consecutive"},
		{UpstreamOptions{Name: "a", Servers: server, SlowStart: 2 * time.Hour}, "SlowStart"},
		{UpstreamOptions{Name: "a", Servers: server, Balance: Balance{Bound: 0.5}}, "Balance: Bound: 0.5"},
		{UpstreamOptions{Name: "a", Servers: server, Protocol: 9}, "Protocol"},
		{UpstreamOptions{Name: "a", Servers: server}, ""},
	} {
		u, err := p.Upstream(&c.o)
		if c.want == "" && err == nil {
			u.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.want == "" {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if u, err := p.Upstream(&UpstreamOptions{Name: "a", Servers: server}); err != nil || u.Drain("127.0.0.1:81", true) == nil {
		t.Error("an unknown server drains")
	}
	if len(p.Status()) != 1 {
		t.Errorf("%+v", p.Status())
	}
	p.Close()
	if _, err := p.Upstream(&UpstreamOptions{Name: "a", Servers: server}); err == nil {
		t.Error("a closed Pool made an Upstream")
	}
}

func TestOptions(t *testing.T) {
	p := NewPool(nil)
	defer p.Close()
	u, err := p.Upstream(&UpstreamOptions{Name: "a", Servers: []Server{{Addr: "127.0.0.1:80"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "Upstream: nil"},
		{Options{Upstream: u, Via: "a b"}, "Via"},
		{Options{Upstream: u, Host: "a b"}, "Host"},
		{Options{Upstream: u, StripPrefix: "api"}, "StripPrefix"},
		{Options{Upstream: u, StripPrefix: "/api/"}, "StripPrefix"},
		{Options{Upstream: u, StripPrefix: "/%61"}, "StripPrefix"},
		{Options{Upstream: u, Trusted: []netip.Prefix{{}}}, "Trusted"},
		{Options{Upstream: u, Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:0.0.0.0/90")}}, "Trusted"},
		{Options{Upstream: u, Trusted: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}}, ""},
	} {
		_, err := New(&c.o)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("nil is accepted")
	}
}

func TestStrip(t *testing.T) {
	for _, c := range [][3]string{
		{"/api", "/api", "/"}, {"/api/", "/api", "/"}, {"/api?x", "/api", "/?x"}, {"/api/x%2f?/..", "/api", "/x%2f?/.."},
		{"/%61pi/x", "/api", "/x"}, {"/API/x", "/api", "404"}, {"/apix", "/api", "404"}, {"/", "/api", "404"}, {"*", "/api", "404"},
		{"/api//x", "/api", "//x"}, {"/api/..", "/api", "400"}, {"/api/../x", "/api", "400"}, {"/api/%2e./x", "/api", "400"},
		{"/api/a/%2E%2e%2fx", "/api", "400"}, {"/api/..;a/x", "/api", "400"}, {"/api/..%5cx", "/api", "400"},
		{"/api/...", "/api", "/..."}, {"/api/.a", "/api", "/.a"}, {"/api/a..b", "/api", "/a..b"}, {"/api%2fx", "/api", "404"},
		{"http://h:80/api/x?y", "/api", "/x?y"}, {"http://h/x", "/api", "404"}, {"http://h", "/api", "404"}, {"http://h/api/../x", "/api", "400"},
	} {
		got, e := strip(c[0], c[1])
		if e != nil {
			got = map[int]string{400: "400", 404: "404"}[e.Status]
		}
		if got != c[2] {
			t.Errorf("%s without %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
