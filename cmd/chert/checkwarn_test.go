package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckDoubts(t *testing.T) {
	t.Parallel()
	const site = "[[site]]\nhosts = 'a.example'\nroot = 'www'\n"
	redirect := func(host, to string) string {
		return site + "[[redirect]]\nhosts = '" + host + "'\nto = '" + to + "'\n"
	}
	conditional := func(when string) string {
		return "[[site.route]]\npath = '/x'\nrespond = 200\n" + when + "\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"a wide proxy", "trusted_proxies = ['11.0.0.0/8', '10.0.0.0/8', '104.16.0.0/13', 'fc00::/7']\n" + site, "trusted_proxies has 11.0.0.0/8, with many"},
		{"a wide proxy of IPv6", "trusted_proxies = ['2000::/3', '2a06:98c0::/29']\n" + site, "trusted_proxies has 2000::/3, with many"},
		{"dotfiles in a list", "listen = ':80'\n" + site + "listing = true\ndotfiles = true\n", `the site for "a.example" lists names that begin with a dot`},
		{"of a route", "listen = ':80'\n" + site + "[[site.route]]\npath = '/x/{p...}'\nroot = 'www'\nlisting = true\ndotfiles = true\n",
			`the route "/x/{p...}" of the site for "a.example" lists names`},
		{"for this machine", "listen = ['80', '[::1]:80', 'unix:s', 'localhost:81']\n" + site + "listing = true\ndotfiles = true\n", ""},
		{"nobody", site + "allow = ['10.1.0.0/16', '::1']\ndeny = ['10.0.0.0/8', '::/8']\n", `the site for "a.example" admits nobody`},
		{"somebody", site + "allow = ['10.0.0.0/8', '::1']\ndeny = ['10.1.0.0/16', '::/8']\n", ""},
		{"peers of sockets", site + "allow = ['10.1.0.0/16', 'unix']\ndeny = ['10.0.0.0/8']\n", ""},
		{"nobody on purpose", site + "deny = 'all'\n", ""},
		{"a shadowed route", site + conditional("cookie = { a = '*' }") + conditional("cookie = { a = '1' }\nquery = { b = '2' }") + conditional(""),
			`the route "/x" in line 8 is never used: the one in line 4 has all its requests`},
		{"a shadowed route by address", site + conditional("from = '10.0.0.0/8'") + conditional("from = ['10.1.0.0/16']") + conditional(""),
			`the route "/x" in line 8 is never used`},
		{"fields in any case", site + conditional("header = { X-A = '1' }") + conditional("header = { x-a = '1' }") + conditional(""),
			`the route "/x" in line 8 is never used`},
		{"another cookie", site + conditional("cookie = { a = '1' }") + conditional("cookie = { A = '1' }") + conditional(""), ""},
		{"a wider address", site + conditional("from = '10.1.0.0/16'") + conditional("from = ['10.0.0.0/8']") + conditional(""), ""},
		{"a socket", site + conditional("from = '10.0.0.0/8'") + conditional("from = ['10.1.0.0/16', 'unix']") + conditional(""), ""},
		{"a narrower one first", site + conditional("cookie = { a = '1' }") + conditional("cookie = { a = '*' }") + conditional(""), ""},
		{"a token", "listen = ':80'\n" + site + "jwt = { jwks = 'https://a.example/', issuer = 'i', any_audience = true }\n", `jwt of the site for "a.example" is without TLS, so tokens`},
		{"an upstream that is chert", "listen = ':81'\n[[site]]\nhosts = '*'\nproxy = '127.0.0.1:81'\n",
			"chert itself listens on 127.0.0.1:81, which is a server of an upstream in line 4"},
		{"by default", "[[site]]\nhosts = '*'\nproxy = 'localhost:8080'\n", "chert itself listens on localhost:8080"},
		{"early data", "[[site]]\nhosts = 'a.example'\nproxy = '127.0.0.1:9000'\nearly_data = true\n", `the site for "a.example" has early_data, which needs http3_early_data`},
		{"early data of a route", "[[site]]\nhosts = 'a.example'\n[[site.route]]\npath = '/x'\nproxy = '127.0.0.1:9000'\nearly_data = true\n",
			`the route "/x" of the site for "a.example" has early_data, which needs`},
		{"another port", "listen = ':81'\n[[site]]\nhosts = '*'\nproxy = '127.0.0.1:8080'\n", ""},
		{"another address", "listen = '127.0.0.2:81'\n[[site]]\nhosts = '*'\nproxy = '127.0.0.1:81'\n", ""},
		{"a socket of an upstream", "[[site]]\nhosts = '*'\nproxy = 'unix:app.sock'\n", ""},
		{"a loop", redirect("b.example", "http://B.example/x{uri}"), `the redirect for "b.example" leads to itself`},
		{"a loop by the host", redirect("*.b.example", "http://{host}{uri}"), `the redirect for "*.b.example" leads to itself`},
		{"a loop below a wildcard", redirect("*", "http://b.example{uri}"), `the redirect for "*" leads to itself`},
		{"to a site", redirect("*", "http://a.example{uri}"), ""},
		{"to another port", redirect("b.example", "http://b.example:8080{uri}"), ""},
		{"to the TLS of a proxy", redirect("*", "https://{host}{uri}"), ""},
	} {
		file := filepath.Join(folder(t, map[string]string{"www/f": ""}), "c.toml")
		write(t, file, tt.text)
		code, _, stderr := inProcess(t, "check", file)
		if tt.want == "" {
			if code != exitOK || stderr != "" {
				t.Errorf("%s: %d %q", tt.name, code, stderr)
			}
			continue
		}
		if code != exitOK || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, file+": warning: "+tt.want) {
			t.Errorf("%s: %d %q, want %q", tt.name, code, stderr, tt.want)
		}
	}
}
