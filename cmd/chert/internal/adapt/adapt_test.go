package adapt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/pelletier/go-toml/v2"
)

// anything accepts what only a running system could refuse.
func anything() config.Checks {
	none := func(string) error { return nil }
	pair := func(string, string) error { return nil }
	return config.Checks{Listen: func([]string, string) error { return nil }, Log: none, Folder: none, Certificate: pair, ClientCA: none,
		RateStore: none, RateFailure: none}
}

// problems returns what chert says about a translation, but for files that are not there.
func problems(t *testing.T, text string) (all []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chert.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := config.Load(file, anything())
	if err == nil {
		return nil
	}
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); !strings.Contains(line, "no such file") && !strings.Contains(line, "not a regular file") {
			all = append(all, line)
		}
	}
	return all
}

// implicit is what nginx does without client_max_body_size.
const implicit = "limits.body = \"1MiB\"\n"

func TestNginx(t *testing.T) {
	t.Parallel()
	const site = "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\n"
	wrap := func(s string) string { return "server { listen 80; server_name a.example; root /w; " + s + " }" }
	for _, tt := range []struct{ in, out, note string }{
		{"", "", ""},
		{"events {}\nhttp { include mime.types; gzip on; server { server_name a.example; root /w; } }", site, ""},
		{wrap("autoindex on; index index.html; # a comment; }"), "", "line 1: a { has no }"},
		{wrap("autoindex on;"), site + "listing = true\n", ""},
		{wrap("expires 1h;"), site + "[[site.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nset = { \"Cache-Control\" = \"max-age=3600\" }\n", ""},
		{wrap(`add_header X "a;b\"c" always;`), site + `headers = { "X" = "a;b\"c" }` + "\n", ""},
		{wrap("add_header X $host;"), site, "1: add_header X is left out"},
		{wrap("allow 10.0.0.0/8; deny all;"), site + "allow = [\"10.0.0.0/8\"]\n", ""},
		{wrap("deny 10.0.0.1; deny 10.0.0.2; allow all;"), site + "deny = [\"10.0.0.1\", \"10.0.0.2\"]\n", ""},
		{wrap("allow 10.0.0.0/8; deny 192.0.2.1;"), site + "deny = [\"192.0.2.1\"]\n", ""},
		{wrap("deny all; allow 10.0.0.1;"), site + "deny = [\"all\"]\n", "deny all comes before other rules"},
		{wrap("auth_request /x;"), site + "deny = [\"all\"]\n", "1: auth_request is left out"},
		{wrap("client_max_body_size 10m;"), site + "limits.body = \"10MiB\"\n", ""},
		{wrap("location /api/ { proxy_pass http://b; proxy_redirect off; }"), site + "[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"b:80\"\nproxy_host = \"b\"\n" + implicit, ""},
		{wrap("location ~ \\.php$ { fastcgi_pass b; }"), strings.Replace(site, "root", "root", 1) + "hidden = [\"*.php\"]\n", "1: fastcgi_pass is left out"},
		{wrap("location ~* \\.(png|jpg)$ { expires 30d; }"), site + "[[site.rules]]\nmatch = [\"*.png\", \"*.jpg\"]\nheaders = { \"Cache-Control\" = \"max-age=2592000\" }\n", ""},
		{wrap("location ~ /\\. { deny all; }"), site + "hidden = [\".*\"]\n", ""},
		{wrap("location ~ ^/[0-9]{4}/ { expires 1d; }"), site, "location ~ ^/[0-9]{4}/ is left out"},
		{wrap("location /p { root /q; }"), site + "[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/q/p\"\n", "location /p is for all that begins with it"},
		{wrap("error_page 500 502 /50x.html; error_page 404 /404.html;"), site + "[site.errors]\n500 = \"/w/50x.html\"\n502 = \"/w/50x.html\"\n404 = \"/w/404.html\"\n", ""},
		{wrap("add_header A b always; location /x/ { add_header C d; }"), site + "headers = { \"A\" = \"b\" }\n[[site.rules]]\nmatch = [\"x/**\"]\nheaders = { \"C\" = \"d\" }\n",
			"1: add_header of a location replaces those of the server"},
		{wrap("location / { auth_basic a; auth_basic_user_file u; } location = /h { return 200 ok; }"), strings.Replace(site, "root = \"/w\"\n", "", 1) +
			"[[site.route]]\npath = \"/{path...}\"\nroot = \"/w\"\nbasic_auth.realm = \"a\"\nbasic_auth.htpasswd = \"u\"\n[[site.route]]\npath = \"/h\"\nrespond = 200\nbody = \"ok\"\n", ""},
		{wrap("location / { allow 10.0.0.1; deny all; } deny 192.0.2.1;"), site + "allow = [\"10.0.0.1\"]\n", ""},
		{wrap("deny 192.0.2.1; location /x/ { allow 10.0.0.1; deny all; } location /y/ { allow all; } location /z/ { alias /q/; }"), site +
			"deny = [\"192.0.2.1\"]\n[[site.route]]\npath = \"/x/{path...}\"\nroot = \"/w/x\"\nallow = [\"10.0.0.1\"]\ndeny = []\n" +
			"[[site.route]]\npath = \"/y/{path...}\"\nroot = \"/w/y\"\ndeny = []\n[[site.route]]\npath = \"/z/{path...}\"\nroot = \"/q\"\n", ""},
		{wrap("try_files $uri /i; location /x/ { alias /q/; } location = /y { return 200; }"), site +
			"try = [\"{path}\", \"/i\"]\n[[site.route]]\npath = \"/x/{path...}\"\nroot = \"/q\"\ntry = []\n[[site.route]]\npath = \"/y\"\nrespond = 200\n", ""},
		{wrap("auth_request /a; location / { allow 10.0.0.1; deny all; }"), site + "deny = [\"all\"]\nallow = [\"10.0.0.1\"]\n", "1: auth_request is left out"},
		{wrap("satisfy any; location /x/ { allow 10.0.0.1; deny all; }"), site + "deny = [\"all\"]\n[[site.route]]\npath = \"/x/{path...}\"\nroot = \"/w/x\"\nallow = [\"10.0.0.1\"]\n",
			"1: satisfy is left out"},
		{wrap("try_files $uri @app;"), site, "1: try_files @app is left out: files are not looked for before"},
		{wrap("magic on;"), site, "1: magic is left out"},
		{wrap("include snippets/x.conf;"), site, "1: include snippets/x.conf is left out"},
		{"server { listen 443 ssl; listen 443 quic reuseport; http3 on; server_name a.example; ssl_certificate c; ssl_certificate_key k; " +
			"root /w; add_header Alt-Svc 'h3=\":443\"; ma=86400'; }",
			"listen = [\":443\"]\nhttp3 = true\n\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\ntls_cert = \"c\"\ntls_key = \"k\"\n", ""},
		{wrap("location = /o { return 301 $scheme://$host/n; } location = /p { return 302 $scheme://b.example$request_uri; }"), site +
			"[[site.route]]\npath = \"/o\"\nredirect = \"/n\"\nstatus = 301\n[[site.route]]\npath = \"/p\"\nredirect = \"http://b.example{uri}\"\nstatus = 302\n", ""},
		// The names of some variables begin with that of another.
		{wrap("location = /o { return 301 http://$hostname/; } location = /p { return 301 /n$request_uri_x; }"), site, "return is left out"},
		{wrap("rewrite ^/a/(.*)$ /b/$1 last; rewrite ^/c /d redirect;"), site + "[[site.rewrite]]\nfrom = \"^/a/(.*)$\"\nto = \"/b/{1}\"\n", "1: rewrite is left out"},
		{"server { listen 443 ssl; server_name .a.example; ssl_certificate c; ssl_certificate_key k; root /w; }\nserver { listen 80; return 301 https://$host$request_uri; }",
			"listen = [\":443\"]\nhttp_redirect = \":80\"\n\n[[site]]\nhosts = [\"a.example\", \"*.a.example\"]\nroot = \"/w\"\ntls_cert = \"c\"\ntls_key = \"k\"\n", ""},
		{"keepalive_timeout 30s;\nserver { listen 443 ssl; server_name a.example; ssl_certificate c; ssl_certificate_key k; root /w; }\nserver { listen 80; server_name b.example; root /v; }",
			"idle_timeout = \"30s\"\n[[listen]]\naddress = \":443\"\n[[listen]]\naddress = \":80\"\ntls = false\n\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\ntls_cert = \"c\"\ntls_key = \"k\"\n\n" +
				"[[site]]\nhosts = [\"b.example\"]\nroot = \"/v\"\n", "3: b.example has no TLS, which other servers have"},
		{"server { server_name a.example; root /w; }\nserver { server_name a.example; root /v; }", site, "2: host a.example has a server already"},
		{"}", "", "line 1: a } without a {"}, {"server { listen 80 }", "", `line 1: "listen" has no semicolon`}, {"a 'b", "", "line 1: a quotation has no end"},
		{"\nserver {\n\n location / {\n }\n", "", "line 2: a { has no }"}, {"server\n\n{", "", "line 3: a { has no }"},
		{"server { server_name ~^a; root /w; }", strings.Replace(site, "a.example", "*", 1), "1: server_name has no other host, so that the site is for all"},
		{strings.Repeat("a {", 40), "", "blocks are more than 32 deep"}, {"{ }", "", "a block without a name"},
	} {
		out, notes, err := Nginx(tt.in)
		said := ""
		if err != nil {
			said = err.Error()
		}
		for _, n := range notes {
			said += " " + strings.TrimSpace(strings.Join([]string{itoa(n.Line), n.Text}, ": "))
		}
		if tt.note == "" && said != "" || !strings.Contains(said, tt.note) || strings.TrimSpace(out) != strings.TrimSpace(tt.out) {
			t.Errorf("%s:\n%s\nsaid %s\nwant\n%s\nand %s", tt.in, out, said, tt.out, tt.note)
		}
	}
}

// A server that only redirects to TLS, or is the plain one of a host, does not stand in for the encrypted one.
func TestNginxToTLS(t *testing.T) {
	t.Parallel()
	const (
		secure   = "server { listen 443 ssl; server_name a.example; ssl_certificate c; ssl_certificate_key k; root /w; }\n"
		site     = "\n\n[[site]]\nhosts = [\"a.example\"]\nroot = \"/w\"\ntls_cert = \"c\"\ntls_key = \"k\""
		redirect = "listen = [\":443\"]\nhttp_redirect = \":80\"" + site
		alone    = "listen = [\":443\"]" + site
		acme     = "location /.well-known/acme-challenge/ { root /v; } "
		alone443 = "listen = [\":443\"]\n\n[[site]]\nhosts = [\"b.example\"]\nroot = \"/w\"\ntls_cert = \"c\"\ntls_key = \"k\""
		c        = "\n\n[[site]]\nhosts = [\"c.example\"]\nroot = \"/v\"\ntls_cert = \"c\"\ntls_key = \"k\"\n"
		other    = "\n\n[[redirect]]\nhosts = [\"a.example\"]\nto = \"https://b.example{uri}\"\nstatus = 301"
	)
	for _, tt := range []struct{ plain, out, note string }{
		{"server_name a.example; return 301 https://$host$request_uri;", redirect, ""},
		{"server_name a.example; return 301 https://$http_host$request_uri;", redirect, ""},
		{"server_name a.example; return 301 https://$host:443$request_uri;", redirect, ""},
		{"server_name a.example; return 301 https://a.example$request_uri;", redirect, ""},
		{"return 301 https://a.example:443$request_uri; server_name a.example;", redirect, ""},
		{"server_name www.a.example a.example; return 301 https://a.example$request_uri;", redirect,
			"all is redirected to a.example here; http_redirect leaves the host as it is"},
		{"server_name _; return 301 https://a.example$request_uri;", redirect, "all is redirected to a.example here"},
		{"listen 80 default_server; return 301 https://A.example$request_uri;", redirect, "all is redirected to A.example here"},
		{"listen 80 default_server; return 444;", alone, ""},
		{"server_name _; deny all; access_log off;", alone, ""},
		{"server_name _; return 301 https://$host$request_uri; } server { listen 443 ssl default_server; server_name _; ssl_reject_handshake on;", redirect, ""},
		{"server_name .a.example; return 301 https://a.example$request_uri;", redirect, "all is redirected to a.example here"},
		{"server_name a.example; location / { return 301 https://$host$request_uri; }", redirect, ""},
		{"server_name a.example; location / { return 301 https://a.example$request_uri; } " + acme, redirect,
			"location /.well-known/acme-challenge/ is left out: http_redirect redirects all"},
		{"server_name a.example; rewrite ^ https://$server_name$request_uri? permanent;", redirect, ""},
		{"server_name a.example; rewrite ^/(.*)$ https://$host/$1 permanent;", redirect, ""},
		{"server_name a.example; rewrite ^/b/(.*)$ https://$host/$1 permanent; root /v;", alone, "host a.example has a server with TLS"},
		{"server_name a.example; if ($scheme != \"https\") { return 301 https://$host$request_uri; } root /w;", redirect, ""},
		{"server_name a.example; return 404; location / { return 301 https://$host$request_uri; }", alone, "host a.example has a server with TLS"},
		{"server_name a.example; return 301 https://b.example$request_uri;", alone, "host a.example has a server with TLS"},
		{"server_name a.example; return 301 https://a.example/b$request_uri;", alone, "host a.example has a server with TLS"},
		{"if ($host = a.example) { return 301 https://$host$request_uri; } server_name a.example; return 404;", redirect,
			"return of other hosts is left out"},
		{"if ($host = a.example) { return 301 https://$host$request_uri; } if ($host = b.example) " +
			"{ return 301 https://b.example$request_uri; } server_name a.example b.example;", redirect, ""},
		{"if ($host = b.example) { return 301 https://$host$request_uri; } server_name a.example; root /v;", alone, "host a.example has a server with TLS"},
		{"if ($host = a.example) { return 301 https://$host/new; } server_name a.example; root /v;", alone, "host a.example has a server with TLS"},
		{"if ($host != a.example) { return 301 https://$host$request_uri; } server_name a.example; root /v;", alone, "host a.example has a server with TLS"},
		{"server_name a.example; root /v;", alone, "host a.example has a server with TLS"},
		{"server_name a.example b.example; root /v;", alone + "\n\n[[site]]\nhosts = [\"b.example\"]\nroot = \"/v\"",
			"b.example has no TLS, which other servers have"},
	} {
		plain := "server { listen 80; " + tt.plain + " }\n"
		for _, in := range []string{secure + plain, plain + secure} {
			out, notes, err := Nginx(in)
			said := ""
			for _, n := range notes {
				said += n.Text
			}
			if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || !alike(out, tt.out) {
				t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", in, out, said, err, tt.out, tt.note)
			}
		}
	}
	for _, tt := range []struct{ other, out, note string }{
		// A server with both has its redirect in an if; where others are redirected, nobody is served.
		{"listen 80; if ($scheme = http) { return 301 https://$host$request_uri; }", strings.Replace(redirect, "a.example", "b.example", 1), ""},
		{"listen 80; location / { if ($https != on) { return 301 https://$host/x; } }", strings.Replace(redirect, "a.example", "b.example", 1), "if is left out"},
		{"listen 80; if ($slow) { return 503; }", "[[listen]]\naddress = \":443\"\n[[listen]]\naddress = \":80\"\ntls = false" + strings.Replace(site, "a.example", "b.example", 1), "if is left out"},
		{"listen 80; } server { listen 80; server_name c.example; return 301 https://$host$request_uri;", strings.Replace(redirect, "a.example", "b.example", 1),
			"b.example is not served on :80, where others are with TLS only"},
		// An address with TLS for one server has it for all.
		{"} server { listen 443; server_name c.example; root /v;", alone443 + strings.ReplaceAll(c, "tls_cert = \"c\"\ntls_key = \"k\"\n", ""),
			":443 is with TLS, as of another server"},
		{"} server { listen *:443; server_name c.example; root /v; ssl_certificate c; ssl_certificate_key k;", alone443 + c, ""},
	} {
		in := strings.Replace(strings.Replace(secure, "a.example", "b.example", 1), "root /w;", "root /w; "+tt.other, 1)
		out, notes, err := Nginx(in)
		said := ""
		for _, n := range notes {
			said += n.Text
		}
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || !alike(out, tt.out) {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", in, out, said, err, tt.out, tt.note)
		}
	}
	// Without an encrypted server it is a redirect like another.
	for _, in := range []string{"b.example", "a.example"} {
		out, notes, err := Nginx("server { listen 80; server_name a.example; return 301 https://" + in + "$request_uri; }")
		if want := "listen = [\":80\"]" + strings.Replace(other, "b.example", in, 1); err != nil || notes != nil || strings.TrimSpace(out) != want {
			t.Errorf("%s:\n%s\nsaid %v, %v\nwant\n%s", in, out, notes, err, want)
		}
	}
}

// alike reports whether two translations have the same sites, in any order.
func alike(a, b string) bool {
	sites := func(s string) []string {
		all := strings.Split(strings.TrimSpace(s), "\n\n")
		slices.Sort(all)
		return all
	}
	return slices.Equal(sites(a), sites(b))
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestCaddy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, out, note string }{
		{"a.example {\n\troot * /w\n\tfile_server browse\n\tencode gzip\n}\n",
			"listen = [\":443\"]\nhttp_redirect = \":80\"\n\n[[site]]\nhosts = [\"a.example\"]\ntls_auto = true\nroot = \"/w\"\nlisting = true\n", ""},
		{":8080 {\n\troot * /w\n\ttry_files {path} /index.html\n\tfile_server\n}\n",
			"listen = [\":8080\"]\n\n[[site]]\nhosts = [\"*\"]\nroot = \"/w\"\ntry = [\"{path}\", \"/index.html\"]\n", ""},
		{"http://a.example, http://b.example {\n\troot * \"/w x\" # comment\n\theader X-A `b`\n}\n",
			"listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\", \"b.example\"]\nroot = \"/w x\"\n[[site.response_headers]]\nset = { \"X-A\" = \"b\" }\n", ""},
		{"http://www.a.example {\n\tredir https://a.example{uri} permanent\n}\n",
			"listen = [\":80\"]\n\n[[redirect]]\nhosts = [\"www.a.example\"]\nto = \"https://a.example{uri}\"\nstatus = 301\n", ""},
		{":80 {\n\trespond /healthz ok 200\n\treverse_proxy localhost:9000\n}\n",
			"listen = [\":80\"]\n\n[[site]]\nhosts = [\"*\"]\nproxy = \"localhost:9000\"\n[[site.route]]\npath = \"/healthz\"\nrespond = 200\nbody = \"ok\"\n", ""},
		{"{\n\temail a@b\n}\na.example {\n\ttls internal\n\troot * /w\n}\n",
			"listen = [\":443\"]\nhttp_redirect = \":80\"\n\n[[site]]\nhosts = [\"a.example\"]\ntls_self = true\nroot = \"/w\"\n", "2: email is left out"},
		{"{\n\temail a@b.example\n}\na.example {\n\troot * /w\n\tlog {\n\t\toutput stderr\n\t}\n}\n",
			"listen = [\":443\"]\nhttp_redirect = \":80\"\ntls_email = \"a@b.example\"\n\n[[site]]\nhosts = [\"a.example\"]\ntls_auto = true\nroot = \"/w\"\nlog = \"json\"\n", ""},
		{"{\n\tservers {\n\t\ttrusted_proxies static 192.0.2.1 private_ranges\n\t\tstrict_sni_host\n\t}\n}\nhttp://a.example {\n\treverse_proxy :9\n\t@x remote_ip 10.0.0.1\n\tabort @x\n}\n",
			"listen = [\":80\"]\ntrusted_proxies = [\"192.0.2.1\", \"192.168.0.0/16\", \"172.16.0.0/12\", \"10.0.0.0/8\", \"127.0.0.0/8\", \"fd00::/8\", \"::1\"]\n\n" +
				"[[site]]\nhosts = [\"a.example\"]\nproxy = \"127.0.0.1:9\"\ndeny = [\"10.0.0.1\"]\n", "4: strict_sni_host is left out 9: remote_ip is the address of the proxy"},
		{"{\n\tservers {\n\t\ttrusted_proxies static 192.0.2.1\n\t\tclient_ip_headers X-Client\n\t}\n}\nhttp://a.example {\n\treverse_proxy :9\n}\n",
			"listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\nproxy = \"127.0.0.1:9\"\n", "3: trusted_proxies is left out 4: client_ip_headers is left out"},
		{"{\n\tservers :8080 {\n\t\ttrusted_proxies static 192.0.2.1\n\t}\n}\nhttp://a.example {\n\treverse_proxy :9\n}\n",
			"listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\nproxy = \"127.0.0.1:9\"\n", "3: trusted_proxies is left out"},
		{"a {\n", "", "a { has no }"},
		{":80 {\n\troot * /w\n\tbasic_auth /x/* {\n\t\ta b\n\t}\n}\n", "listen = [\":80\"]\n\n[[site]]\nhosts = [\"*\"]\nroot = \"/w\"\n" +
			"[[site.route]]\npath = \"/x/{path...}\"\nroot = \"/w/x\"\n[site.route.basic_auth]\nusers = { \"a\" = \"b\" }\n", ""},
		{":80 {\n\troot * /w\n\trespond @out 403\n}\n", "listen = [\":80\"]\n\n[[site]]\nhosts = [\"*\"]\nroot = \"/w\"\ndeny = [\"all\"]\n",
			"3: respond says who may have it, so nobody may"},
		{":80 {\n\tabort @out\n\tredir https://b.example{uri}\n}\n", "listen = [\":80\"]\n\n[[redirect]]\nhosts = [\"*\"]\nto = \"https://b.example{uri}\"\nstatus = 302\n",
			"2: abort is left out"},
	} {
		out, notes, err := Caddy(tt.in)
		said := ""
		if err != nil {
			said = err.Error()
		}
		for _, n := range notes {
			said += " " + itoa(n.Line) + ": " + n.Text
		}
		if tt.note == "" && said != "" || !strings.Contains(said, tt.note) || strings.TrimSpace(out) != strings.TrimSpace(tt.out) {
			t.Errorf("%s:\n%s\nsaid %s\nwant\n%s\nand %s", tt.in, out, said, tt.out, tt.note)
		}
	}
}

// Translations of the examples are configurations without a mistake.
func TestExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../examples/sites/*/nginx.conf")
	if err != nil || len(files) < 14 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, _, err := Nginx(string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q\n%s", file, all, out)
		}
	}
}

// Whatever the text is, a translation is TOML.
func FuzzAdapt(f *testing.F) {
	files, _ := filepath.Glob("../../../../examples/sites/*/nginx.conf")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text))
		}
	}
	for _, s := range []string{
		"a.example {\n\troot * /w\n\tfile_server browse\n}", ":80 {\n\trespond /x \"a${b}\"\n}", "server { root '${a}\"\\n'; add_header A \"\x01\"; location = /{ { } }",
		"server { listen 443 ssl; location ~ ^/[^/]*\\.x$ { expires 1y; } auth_basic a; auth_basic off; }", "x.example {\n\tbasic_auth {\n\t\ta b\n\t}\n}",
		"limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\nserver { limit_req zone=a burst=1; deny all; }",
	} {
		f.Add(s)
	}
	for _, s := range []string{
		"upstream a { hash $arg_x; server b:1 weight=2; queue 3; }\nserver { location /x/ { proxy_pass https://a/y/; proxy_set_header A '\"'; proxy_read_timeout 1m; proxy_ssl_name x; } }",
		"server { location ~ ^/(a|b)/ { internal; types { a/b c; } if ($x) { return 403; } location ~ \\.(x|y)(/|$) { x_pass; } } listen 127.0.0.1:1; }\nserver { return 301 x; }",
		"a.example/x* {\n\tabort /y\n}\na.example {\n\ttls a b {\n\t\tclient_auth {\n\t\t\tmode x\n\t\t}\n\t}\n\t@x not remote_ip 1\n\terror @x\n\tfile_server /x/* {\n\t\thide a/b\n\t}\n}",
		"a.example {\n\thandle_path /x/* {\n\t\treverse_proxy b:1 c:2 {\n\t\t\tlb_policy header X\n\t\t\theader_up A `b`\n\t\t\ttransport http {\n\t\t\t\ttls_server_name x\n\t\t\t}\n\t\t}\n\t}\n}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, translate := range []func(string) (string, []Note, error){Nginx, Caddy} {
			out, notes, err := translate(text)
			if err != nil {
				if out != "" || notes != nil {
					t.Errorf("%q, %v with %v", out, notes, err)
				}
				continue
			}
			var m map[string]any
			if err := toml.Unmarshal([]byte(out), &m); err != nil {
				t.Errorf("%q: %v\n%s", text, err, out)
			}
		}
	})
}
