package adapt

import (
	"strings"
	"testing"
)

// If a directive that refuses some clients is left out, all are refused.
func TestNginxGuards(t *testing.T) {
	t.Parallel()
	const (
		site      = "root = \"/w\"\n"
		nobody    = "deny = [\"all\"]\n"
		auth      = "auth_basic x; auth_basic_user_file u;"
		asked     = "basic_auth.realm = \"x\"\nbasic_auth.htpasswd = \"u\"\n"
		admin     = "[[site.route]]\npath = \"/admin/{path...}\"\nroot = \"/w/admin\"\n"
		refused   = "[[site.route]]\npath = \"/p/{path...}\"\nrespond = 403\ndeny = [\"all\"]\n"
		under     = "[[site.route]]\npath = \"/p/q/{path...}\"\nrespond = 403\ndeny = [\"all\"]\n[[site.route]]\npath = \"/p/q\"\nrespond = 403\ndeny = [\"all\"]\n"
		pass      = "proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; "
		app       = "location / { " + pass + "} "
		proxied   = "proxy = \"127.0.0.1:9\"\n"
		forwarded = "[[site.route]]\npath = \"/p/{path...}\"\n" + proxied
		sql       = `location ~ \.sql$ { return 404; } `
	)
	p := func(keys string) string { return site + "[[site.route]]\npath = \"/p/{path...}\"\n" + keys }
	for _, tt := range []struct{ in, out, note string }{
		{"location /p/ { internal; }", site + "[[site.route]]\npath = \"/p/{path...}\"\nrespond = 404\n", "location /p/ is left out"},
		{"location /p { internal; }", site + "hidden = [\"/p\", \"/p*?\"]\n[[site.route]]\npath = \"/p/{path...}\"\nrespond = 404\n", "location /p is left out"},
		{app + "location = /p { internal; }", proxied + "[[site.route]]\npath = \"/p\"\nrespond = 404\n", ""},
		{"location = /s.txt { deny all; }", site + "[[site.route]]\npath = \"/s.txt\"\nrespond = 403\n" + nobody, ""},
		{"location =/s.txt { deny all; }", site + "[[site.route]]\npath = \"/s.txt\"\nrespond = 403\n" + nobody, ""},
		{"location /p/ { deny all; }", site + refused, ""},
		{"location = /s.txt { " + auth + " }", site + "hidden = [\"/s.txt\"]\n[[site.route]]\npath = \"/s.txt\"\nrespond = 403\n" + nobody, "location /s.txt is left out"},
		{"location = /favicon.ico { log_not_found off; }", site, "location /favicon.ico is left out"},
		{"location /p { allow 10.0.0.1; deny all; }", site + "hidden = [\"/p*?\"]\n[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/w/p\"\nallow = [\"10.0.0.1\"]\nhidden = []\n",
			"location /p is for all that begins with it"},
		{"location /p/ { return 403; } rewrite ^/a$ /p/f;", site + "[[site.route]]\npath = \"/p/{path...}\"\nrespond = 403\n", "rewrite ^/a$ is left out"},

		{`location ~* \.(sql|bak)$ { return 403; }`, site + "hidden = [\"*.sql\", \"*.bak\"]\n", "return of files is left out"},
		{`location ~ \.pdf$ { ` + auth + " }", site + "hidden = [\"*.pdf\"]\n", "auth_basic of files is left out"},
		{`location ~* /(?:uploads|files)/.*\.php$ { deny all; }`, site + "hidden = [\"*.php\"]\n", "is left out"},
		{`location ~ [^/]\.php(/|$) { fastcgi_pass b; }`, site + "hidden = [\"*.php\"]\n", "fastcgi_pass is left out"},
		{`location ~ ^(.+\.php)(/.+)$ { fastcgi_pass b; }`, site + "hidden = [\"*.php\"]\n", "fastcgi_pass is left out"},
		{`location ~ \.php { fastcgi_pass b; }`, site + "hidden = [\"*.php*\"]\n", "fastcgi_pass is left out"},
		{`location ~ ^/up/[^/]*\.cgi$ { deny all; }`, site + "hidden = [\"*.cgi\"]\n", "is left out"},
		{`location ~ ^/a/|\.php$ { deny all; }`, site + nobody, `location says who may have it, so nobody may: deny is "all"`},
		{`location ~ \.php|html$ { deny all; }`, site + nobody, "nobody may"},
		{"location ~ /(data|conf)/ { deny all; }", site + "hidden = [\"data\", \"conf\"]\n", "is left out"},
		{"location ~ /data|conf/ { deny all; }", site + nobody, "nobody may"},
		{`location ~ /\.(?!well-known) { deny all; }`, site, ""},
		{`location ~ /\. { deny all; }`, site + "hidden = [\".*\"]\n", ""},
		{`location ~ /\.(git|well-known)/ { return 404; }`, site + "hidden = [\".*\"]\n", ""},
		{`location ~ /\.(git.*|svn)/ { return 404; }`, site, ""},
		{`location ~ /\.g?well-known { return 404; }`, site + "hidden = [\".*\"]\n", ""},
		{`location ~ /\.ht { deny all; } location ~ /\.git { deny all; }`, site, ""},
		{`location ~ /\.(?!well-known/acme) { deny all; }`, site, "of which all files are served here"},
		{`location ^~ /.well-known/ { root /q; } location ~ /\. { deny all; }`, site + "hidden = [\".*\"]\n[[site.route]]\npath = \"/.well-known/{path...}\"\nroot = \"/q/.well-known\"\n", ""},
		{`location ~ /\.?git { deny all; }`, site + nobody, "nobody may"},
		{app + `location ~ \.sql$ { return 403; }`, proxied + "hidden = [\"*.sql\"]\n", `return of files is left out: they are hidden, and 404`},
		{app + `location ~ \.(sql|bak)$ { return 404; }`, proxied + "hidden = [\"*.sql\", \"*.bak\"]\n", ""},
		{app + `location ~ /\. { deny all; access_log off; }`, proxied + "hidden = [\".*\"]\n", ""},
		{app + `location ~ /\.(?!well-known\/).* { deny all; }`, proxied + "dotfiles = false\n", ""},
		{app + `location ~ /\.(?!well-known/acme) { deny all; }`, proxied + "hidden = [\".*\"]\n", ""},
		{app + `location ~ /\.ht { deny all; }`, proxied + "hidden = [\".ht*\"]\n", ""},
		{app + `location ~ ^/\.(git|svn)/ { return 404; }`, proxied + "hidden = [\".git\", \".svn\"]\n", ""},
		{app + `location ~ /\.ht\.[a-z]+$ { return 404; }`, proxied + "hidden = [\".*\"]\n", ""},
		{app + `location ~ /\. { allow 10.0.0.1; deny all; }`, proxied + "hidden = [\".*\"]\n", `location /\. is left out: such names are hidden, and 404`},
		{app + `location ~ ^/[0-9]/ { allow 10.0.0.1; deny all; }`, proxied + nobody, "nobody may"},
		{"location /p/ { " + pass + "} " + sql, site + "hidden = [\"*.sql\"]\n" + forwarded + "hidden = [\"*.sql\"]\n", ""},
		{"location ^~ /p/ { " + pass + "} " + sql, site + "hidden = [\"*.sql\"]\n" + forwarded, ""},
		{"location ~ ^/p/ { " + pass + "} " + sql, site + "hidden = [\"*.sql\"]\n" + forwarded, ""},
		{sql + "location ~ ^/p/ { " + pass + "} ", site + "hidden = [\"*.sql\"]\n" + forwarded + "hidden = [\"*.sql\"]\n", ""},
		{"location ^~ /p/ { " + pass + sql + "}", site + "hidden = [\"*.sql\"]\n" + forwarded + "hidden = [\"*.sql\"]\n", "is left out"},
		{`location /p/ { ` + pass + `location ~ /\. { deny all; } }`, site + "hidden = [\".*\"]\n" + forwarded + "hidden = [\".*\"]\n", "is left out"},
		{"location /p/ { " + pass + "} location /a/ { " + sql + "}", site + "hidden = [\"*.sql\"]\n" + forwarded + "[[site.route]]\npath = \"/a/{path...}\"\nroot = \"/w/a\"\n", "is left out"},
		{"location /.git/ { alias /q/; } location /p/ { " + pass + `} location ~ /\. { deny all; }`, site + "hidden = [\".*\"]\n" + "[[site.route]]\npath = \"/.git/{path...}\"\nroot = \"/q\"\n" + nobody + forwarded + "hidden = [\".*\"]\n", ""},
		{app + "location /p { deny all; }", "hidden = [\"/p*?\"]\n[[site.route]]\npath = \"/{path...}\"\n" + proxied + "hidden = [\"/p*?\"]\n" + refused + strings.Replace(refused, "/{path...}", "", 1), "location /p is for all that begins with it"},
		{"location /p/ { " + pass + "} location /p/q { deny all; }", site + "hidden = [\"/p/q*?\"]\n" + forwarded + "hidden = [\"/p/q*?\"]\n" + under, "location /p/q is for all that begins with it"},
		{"location /p/ { proxy_pass http://127.0.0.1:9/; proxy_set_header Host $host; } location ~ ^/p/q { " + auth + " }",
			site + "hidden = [\"/p/q*?\"]\n" + forwarded + "hidden = [\"/q*?\"]\n[[site.route.rewrite]]\nfrom = \"(?s)^/p/(.*)$\"\nto = \"/{1}\"\n" + "[[site.route]]\npath = \"/p/q/{path...}\"\nroot = \"/w/p/q\"\n" + asked + "hidden = []\n", "begins with it"},
		{"location /p/ { proxy_pass http://127.0.0.1:9/v[/; proxy_set_header Host $host; location /p/q { internal; } }",
			site + "hidden = [\"/p/q\", \"/p/q*?\"]\n[[site.route]]\npath = \"/p/q/{path...}\"\nrespond = 404\n" + forwarded + "hidden = [\"/v\\\\[/q\", \"/v\\\\[/q*?\"]\n" +
				"[[site.route.rewrite]]\nfrom = \"(?s)^/p/(.*)$\"\nto = \"/v[/{1}\"\n", "location /p/q is left out"},
		{"location /p/ { alias /d/; } location /p/q { deny all; } location /a/ { " + pass + "}", site + "hidden = [\"/p/q*?\"]\n[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/d\"\nhidden = [\"/q*?\"]\n" +
			under + "[[site.route]]\npath = \"/a/{path...}\"\n" + proxied, "begins with it"},
		{"location /p { deny all; } location /pages/ { expires 1h; }", site + "hidden = [\"/p*?\"]\n" + refused + strings.Replace(refused, "/{path...}", "", 1) +
			"[[site.route]]\npath = \"/pages/{path...}\"\nroot = \"/w/pages\"\nhidden = []\n" +
			"[[site.route.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nset = { \"Cache-Control\" = \"max-age=3600\" }\n", "what is not is 404"},
		{"location /p { deny all; } location = /page.html { expires 1h; }", site + "hidden = [\"/p*?\"]\n" + refused + strings.Replace(refused, "/{path...}", "", 1), "location /page.html is left out"},
		{app + `location ~ \.(css|js)$ { ` + pass + "expires 1d; }", proxied, "is left out"},
		{app + `location ~ \.sql$ { ` + pass + "deny all; }", proxied + "hidden = [\"*.sql\"]\n", "is left out"},
		{app + `location ~ ^/x[0-9]/ { ` + pass + auth + " }", proxied + nobody, "nobody may"},
		{"location /p/ { " + pass + `} location ~ \.php$ { ` + pass + "}", site + "hidden = [\"*.php\"]\n" + forwarded, "is left out"},
		{app + `location ~ \.php$ { fastcgi_pass b; }`, proxied + "hidden = [\"*.php\"]\n", "fastcgi_pass is left out"},
		{app + `location ~ ^/x[0-9]/ { proxy_pass http://127.0.0.1:8; }`, proxied, "location ^/x[0-9]/ is left out"},

		{"location ~ ^/admin/ { " + auth + " }", site + admin + asked, ""},
		{"location ~ ^/(?:admin|p)(/|$) { return 404; }", site + "[[site.route]]\npath = \"/admin/{path...}\"\nrespond = 404\n[[site.route]]\npath = \"/p/{path...}\"\nrespond = 404\n", ""},
		{"location ~ ^/admin/(.*)$ { " + auth + " }", site + admin + asked, ""},
		{"location ~ ^/(a|b)/ { deny all; root /q/$1; }", site + nobody, "nobody may"},
		{"location ~ ^/a$ { return 404; }", site + "[[site.route]]\npath = \"/a\"\nrespond = 404\n", ""},
		{"location ~ ^/admin/ { deny all; } location /admin/pub/ { return 200 a; }", site + nobody + "[[site.route]]\npath = \"/admin/pub/{path...}\"\nrespond = 200\nbody = \"a\"\n", "nobody may"},
		{"location ~* ^/admin/ { deny all; }", site + nobody, "nobody may"},
		{"location ~ ^/[0-9]{4}/ { return 404; }", site + nobody, "nobody may"},
		{"deny 10.0.0.1; location /p/ { allow all; } location ~ ^/[0-9]/ { deny all; }", site + nobody + "[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/w/p\"\n", "nobody may"},

		{"location /cgi-bin/ { fastcgi_pass b; }", site + "hidden = [\"/cgi-bin/**\"]\n[[site.route]]\npath = \"/cgi-bin/{path...}\"\nrespond = 502\n", "fastcgi_pass is left out"},
		{"location / { uwsgi_pass b; }", "[[site.route]]\npath = \"/{path...}\"\nrespond = 502\n", "uwsgi_pass is left out"},

		{"if ($bad) { return 403; }", site + nobody, `if says who may have it, so nobody may: deny is "all"`},
		{"if ($host != a.example) { return 444; }", site, ""},
		{"if ($host != b.example) { return 444; }", site + nobody, "nobody may"},
		{"if ($slow) { return 503; }", site, "if is left out"},
		{"location /p/ { if ($bad) { return 444; } }", p("deny = [\"all\"]\nroot = \"/w/p\"\n"), "nobody may"},
		{"location /p/ { allow 10.0.0.1; deny all; if ($a) { set $b 1; } }", p("root = \"/w/p\"\nallow = [\"10.0.0.1\"]\n"), "if is left out"},
		{`location /p/ { allow 10.0.0.1; deny all; location ~ \.png$ { expires 1d; } }`, p("root = \"/w/p\"\nallow = [\"10.0.0.1\"]\n"), `location \.png$ is left out`},
		{`location /p/ { location ~ \.php$ { fastcgi_pass b; } }`, site + "hidden = [\"*.php\"]\n[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/w/p\"\n", "is left out"},
		{"location /a/ { location /p/ { deny all; } }", site + "hidden = [\"/p/**\"]\n" + refused + "[[site.route]]\npath = \"/a/{path...}\"\nroot = \"/w/a\"\nhidden = []\n", "location /p/ is left out"},
		{`location /p/ { location ~ x { deny all; } }`, p("deny = [\"all\"]\nroot = \"/w/p\"\n"), "nobody may"},
		{"return 403; location /p/ { root /q; }", "[[site.route]]\npath = \"/\"\nrespond = 403\n", "location /p/ is left out: return of the server answers before it"},
		{"return 403 $uri;", "[[site.route]]\npath = \"/\"\nrespond = 403\n", "the text of return is left out"},

		{"allow 10.0.0.5; deny 10.0.0.0/24;", site + "deny = [\"10.0.0.0/24\"]\n", "deny 10.0.0.0/24 comes after allow of some of them"},
		{"allow 10.0.0.5; deny 10.0.0.0/24; allow 10.0.0.0/8; deny all;", site + "allow = [\"10.0.0.5\", \"10.0.0.0/8\"]\ndeny = [\"10.0.0.0/24\"]\n", "deny 10.0.0.0/24 comes after"},
		{"deny 10.0.0.1; allow 10.0.0.0/8; allow unix:; deny all;", site + "allow = [\"10.0.0.0/8\", \"unix\"]\ndeny = [\"10.0.0.1\"]\n", ""},
		{"deny 10.0.0.1; allow all; deny 10.0.0.2;", site + "deny = [\"10.0.0.1\"]\n", "allow all comes before other rules"},
		{"satisfy all; auth_request off;", site, ""},
		{"auth_basic_user_file u; location /p/ { auth_basic x; }", p("root = \"/w/p\"\n" + asked), ""},
		{"auth_digest x;", site + nobody, "auth_digest is left out"},
		{"ssl_trusted_certificate c; ssl_verify_client on;", "client_ca = \"c\"\n", ""},
		{"ssl_client_certificate c; ssl_verify_client optional;", "client_ca = \"c\"\nclient_certificate = \"optional\"\n", ""},
		{"ssl_client_certificate c; ssl_verify_client optional; if ($ssl_client_verify != SUCCESS) { return 403; }", "client_ca = \"c\"\nclient_certificate = \"required\"\n", ""},
		{"ssl_client_certificate c; ssl_verify_client optional; location /p/ { if ($ssl_client_verify != SUCCESS) { return 403; } }",
			"client_ca = \"c\"\nclient_certificate = \"optional\"\n[[site.route]]\npath = \"/p/{path...}\"\nclient_certificate = \"required\"\nroot = \"/w/p\"\n", ""},
		{"ssl_client_certificate c; if ($ssl_client_verify != SUCCESS) { return 403; }", site + nobody, "nobody may"},
		{"ssl_client_certificate c;", site, ""},
		{"ssl_verify_client on;", site + nobody, "ssl_verify_client is left out"},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a.example; root /w; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		want := "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n" + tt.out
		if strings.HasPrefix(tt.out, "client_ca") {
			want = strings.Replace(want, "client_ca", site+"client_ca", 1)
		}
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || strings.ReplaceAll(out, implicit, "") != want {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, want, tt.note)
		}
		if all := problems(t, out); all != nil && !strings.Contains(tt.out, "client_c") {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// What http says holds for servers that have none of it, and what they have holds in its place.
func TestNginxLevels(t *testing.T) {
	t.Parallel()
	const zones = "limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; limit_req_zone $remote_addr zone=b:1m rate=100r/m; "
	for _, tt := range []struct{ http, server, out, note string }{
		{"auth_request /a;", "", "deny = [\"all\"]\n", "auth_request is left out"},
		{"satisfy any;", "deny all;", "deny = [\"all\"]\n", "satisfy is left out"},
		{"ssl_client_certificate c; ssl_verify_client on;", "", "client_ca = \"c\"\n", ""},
		{"allow 10.0.0.0/8; deny all;", "allow 192.168.0.0/16; deny all;", "allow = [\"192.168.0.0/16\"]\n", ""},
		{"allow 10.0.0.0/8; deny all;", "", "allow = [\"10.0.0.0/8\"]\n", ""},
		{"add_header A b always;", "add_header C d always;", "headers = { \"C\" = \"d\" }\n", ""},
		{"error_page 404 /a;", "error_page 500 /b;", "[site.errors]\n500 = \"/w/b\"\n", ""},
		{zones + "limit_req zone=a;", "limit_req zone=b;", "limits.rate = \"100/m burst 1\"\n", ""},
		{zones, "limit_req zone=a burst=4 nodelay; limit_req zone=b;", "limits.rate = [\"1/s burst 5\", \"100/m burst 1\"]\n", ""},
		{"", `add_header Link "</a>" always; add_header link "</b>" always; add_header LINK "</c>";`,
			"headers = { \"Link\" = \"</a>\" }\n[[site.response_headers]]\nadd = { \"Link\" = \"</b>\" }\n[[site.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nadd = { \"Link\" = \"</c>\" }\n", ""},
		{"", "expires 1h; add_header Cache-Control public;",
			"[[site.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nset = { \"Cache-Control\" = \"max-age=3600\" }\n[[site.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nadd = { \"Cache-Control\" = \"public\" }\n", ""},
		{"", `location ~ \.x$ { expires 1h; add_header cache-control public; }`, "[[site.rules]]\nmatch = [\"*.x\"]\nheaders = { \"Cache-Control\" = \"max-age=3600, public\" }\n", ""},
		{"types { } default_type application/octet-stream;", "", "[[site.rules]]\nheaders = { \"Content-Type\" = \"application/octet-stream\" }\n", ""},
		{"", "location /up/ { types { } default_type application/octet-stream; expires 1h; }",
			"[[site.route]]\npath = \"/up/{path...}\"\nroot = \"/w/up\"\n[[site.route.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nset = { \"Cache-Control\" = \"max-age=3600\" }\n" +
				"[[site.route.rules]]\nheaders = { \"Content-Type\" = \"application/octet-stream\" }\n", ""},
		{"", "location /up/ { types { text/css css scss; } }", "[[site.route]]\npath = \"/up/{path...}\"\nroot = \"/w/up\"\n[[site.route.rules]]\nheaders = { \"Content-Type\" = \"text/plain\" }\n" +
			"[[site.route.rules]]\nmatch = [\"*.css\", \"*.scss\"]\nheaders = { \"Content-Type\" = \"text/css\" }\n", ""},
		{"default_type application/octet-stream;", "location /up/ { types { } }", "[[site.route]]\npath = \"/up/{path...}\"\nroot = \"/w/up\"\n[[site.route.rules]]\nheaders = { \"Content-Type\" = \"application/octet-stream\" }\n", ""},
		{"default_type application/octet-stream;", `location ~ \.html$ { types { } }`, "types.\".html\" = \"application/octet-stream\"\n", ""},
		{"", `location ~ \.html$ { default_type text/a; types { } }`, "types.\".html\" = \"text/a\"\n", ""},
		{"", `location ~ \.x$ { types { text/x x y; } }`, "types.\".x\" = \"text/x\"\n", ""},
		{"proxy_set_header A b;", "location / { proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; proxy_pass_request_headers on; }", "proxy = \"127.0.0.1:9\"\n", ""},
		{"", "location / { proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; proxy_pass_request_headers off; }", "proxy = \"127.0.0.1:9\"\n", "proxy_pass_request_headers is left out"},
	} {
		out, notes, err := Nginx("http { " + tt.http + " server { listen 80; server_name a.example; root /w; " + tt.server + " } }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		want := "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n"
		if !strings.HasPrefix(tt.out, "proxy") {
			want += "root = \"/w\"\n"
		}
		if want += tt.out; err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || strings.ReplaceAll(out, implicit, "") != want {
			t.Errorf("%s | %s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.http, tt.server, out, said, err, want, tt.note)
		}
		if all := problems(t, out); all != nil && !strings.Contains(tt.out, "client_ca") {
			t.Errorf("%s | %s: %q in\n%s", tt.http, tt.server, all, out)
		}
	}
}

// A server that listens where others do not is served there too, so that one of this machine keeps others out.
func TestNginxAddresses(t *testing.T) {
	t.Parallel()
	const note = "b is served on the addresses of other servers too"
	for _, tt := range []struct{ listen, keys, note string }{
		{"listen 80;", "", ""},
		{"listen 8080; listen 80;", "", ""},
		{"listen 8080;", "", note},
		{"listen 10.0.0.1:80;", "", note},
		{"listen 127.0.0.1:81;", "allow = [\"127.0.0.0/8\", \"::1\"]\n", note},
		{"listen unix:/run/b;", "allow = [\"unix\"]\n", note},
		{"listen 127.0.0.1:81; allow 127.0.0.2; deny all;", "allow = [\"127.0.0.2\"]\n", note},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a; root /w; } server { " + tt.listen + " server_name b; root /x; }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		_, keys, _ := strings.Cut(out, "hosts = [\"b\"]\nroot = \"/x\"\n")
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || keys != tt.keys {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.listen, out, said, err, tt.keys, tt.note)
		}
	}
}
