package config

import (
	"testing"
	"time"
)

// A route has the site's server, another or none.
func TestForwardAuth(t *testing.T) {
	t.Parallel()
	_, cfg, err := load(t, `
[[site]]
hosts = "*"
forward_auth = { url = "https://auth.example/x", headers = ["Remote-User"], user_header = "remote-user", timeout = "1s", max_conns = 3, max_body = 0 }
[[site.route]]
path = "/a"
respond = 200
[[site.route]]
path = "/b"
respond = 200
forward_auth = false
[[site.route]]
path = "/c"
respond = 200
forward_auth = { url = "http://auth", socket = "auth.sock", scheme = "https" }
`)
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Sites[0]
	if o := s.Forward; o == nil || o.Timeout != time.Second || o.MaxConns != 3 || o.MaxBody != -1 || o.User != "remote-user" {
		t.Errorf("%+v", o)
	}
	if s.Routes[0].Forward != s.Forward || s.Routes[1].Forward != nil || s.Routes[2].Forward.Scheme != "https" {
		t.Errorf("%+v", s.Routes)
	}
}

func TestForwardAuthProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{`forward_auth = true`, "4:16: forward_auth wants a table with url, or false"},
		{`forward_auth = "http://a"`, "4:16: forward_auth wants a table, not a string"},
		{`forward_auth = {}`, `4:1: [site.forward_auth] has no url; want url = "http://127.0.0.1:9091/api/authz/forward-auth"`},
		{`forward_auth = { url = "auth/x" }`, `4:24: url: want a whole URL, such as "http://127.0.0.1:9091/verify"`},
		{`forward_auth = { url = "http://u:p@a" }`, "4:24: url: want no user and no fragment"},
		{`forward_auth = { url = "http://a", headers = ["A b"] }`, `4:47: headers: the field "A b" cannot be set`},
		{`forward_auth = { url = "http://a", response_headers = "Connection" }`, `4:55: response_headers: the field "Connection" cannot be set`},
		{`forward_auth = { url = "http://a", user_header = "A" }`, "4:50: user_header wants one of the fields of headers"},
		{`forward_auth = { url = "http://a", scheme = "ftp" }`, `4:45: scheme wants "http" or "https"`},
		{`forward_auth = { url = "http://a", socket = "" }`, "4:45: socket wants the path of a unix socket"},
		{`forward_auth = { url = "http://a", timeout = "0s" }`, "4:46: timeout wants more than 0"},
		{`forward_auth = { url = "http://a", max_conns = 0 }`, "4:48: max_conns wants a number from 1 to 65536"},
		{`forward_auth = { url = "http://a", max_body = "2MiB" }`, "4:47: max_body wants at most 1 MiB"},
		{`forward_auth = { url = "https://a", ca = "gone.pem" }`, `4:42: ca: "gone.pem": no such file`},
		{`forward_auth = { url = "http://a", socet = "/x" }`, `4:36: unknown key "socet" in [site.forward_auth]; did you mean "socket"?`},
	} {
		got := problemsOf(t, "[[site]]\nhosts = '*'\nroot = 'www'\n"+tt.text+"\n")
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
}
