package adapt

import (
	"strings"
	"testing"
)

// What a location has in place of what its server has, or of what nginx does by itself.
func TestNginxServer(t *testing.T) {
	t.Parallel()
	const (
		site    = "root = \"/w\"\n"
		pass    = "proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; "
		proxied = "proxy = \"127.0.0.1:9\"\n" + implicit
		frame   = "headers = { \"X-Frame-Options\" = \"DENY\" }\n"
		denied  = "deny = [\"all\"]\n"
		trusts  = "says who may have it, so nobody may"
	)
	p := func(keys string) string { return "[[site.route]]\npath = \"/p/{path...}\"\n" + keys }
	fields := func(level, lines string) string { return "[[" + level + ".response_headers]]\n" + lines }
	for _, tt := range []struct{ in, out, note string }{
		{"autoindex on; location /p/ { autoindex off; }", site + "listing = true\n" + p("listing = false\nroot = \"/w/p\"\n"), ""},
		{"autoindex off; location /p/ { autoindex off; }", site + p("root = \"/w/p\"\n"), ""},
		{"index index.html index.htm;", site + "index = [\"index.html\", \"index.htm\"]\n", ""},
		{"index index.html; location /p/ { index index.html; }", site + p("index = [\"index.html\"]\nroot = \"/w/p\"\n"), ""},
		{"index a; location /p/ { return 404; index b; }", site + "index = [\"a\"]\n" + p("respond = 404\n"), ""},

		{"location /p/ { try_files $uri $uri/ /p/index.html; }", site + p("try = [\"{path}\", \"{path}/\", \"/index.html\"]\nroot = \"/w/p\"\n"), ""},
		{"location /p/ { alias /q/; try_files $uri.html /p/a/b =404; }", site + p("try = [\"{path}.html\", \"/a/b\", \"=404\"]\nroot = \"/q\"\n"), ""},
		{"location /p/ { try_files $uri /index.html; }", site + p("root = \"/w/p\"\n"), "try_files /index.html is left out: it is not in /p/"},
		{"location /p/ { try_files $uri /p; }", site + p("root = \"/w/p\"\n"), "try_files /p is left out"},
		{"location /p/ { try_files /p$uri /p/i; }", site + p("root = \"/w/p\"\n"), "try_files /p{path} is left out"},
		{"location \"/a b/\" { deny all; }", site + denied, trusts},
		{"location /z? { root /q; }", site, "location /z? is left out"},
		{"location /a//b { auth_basic x; }", site + denied, trusts},
		{"location = \"/a b\" { internal; }", site + "hidden = [\"/a b\"]\n", ""},

		{"client_max_body_size 1k; location /p/ { " + pass + "client_max_body_size 0; }", site + "limits.body = \"1KiB\"\n" + p("limits.body = 0\nproxy = \"127.0.0.1:9\"\n"), ""},
		{"client_max_body_size 1k; location /p/ { " + pass + "}", site + "limits.body = \"1KiB\"\n" + p("proxy = \"127.0.0.1:9\"\n"), ""},
		{"location /p/ { " + pass + "}", site + p(proxied), ""},
		{"location / { " + pass + "}", proxied, ""},

		{"add_header X-Frame-Options DENY always; location / { " + pass + "proxy_hide_header x-frame-options; }", proxied + frame, ""},
		{"add_header X-Frame-Options DENY always; proxy_hide_header X-Frame-Options; location /p/ { " + pass + "}", site + frame + p(proxied), ""},
		{"add_header X-Frame-Options DENY always; location /p/ { " + pass + "proxy_hide_header X-Frame-Options; add_header A b always; }",
			site + frame + p(proxied+"headers = { \"A\" = \"b\" }\n"+fields("site.route", "remove = \"X-Frame-Options\"\n")), "add_header of a location replaces those of the server"},
		{"location /p/ { " + pass + "proxy_hide_header A; proxy_hide_header B; add_header A b; }",
			site + p(proxied+fields("site.route", "status = [\"4xx\", \"5xx\"]\nremove = \"A\"\n")+fields("site.route", "remove = \"B\"\n")+
				fields("site.route", "status = [\"2xx\", \"3xx\"]\nset = { \"A\" = \"b\" }\n")), ""},
		{"location /p/ { " + pass + "add_header Strict-Transport-Security max-age=1 always; proxy_hide_header Strict-Transport-Security; }",
			site + p(proxied+"headers = { \"Strict-Transport-Security\" = \"max-age=1\" }\n"), ""},

		{"set_real_ip_from 10.0.0.1; real_ip_header X-Forwarded-For; allow 10.0.0.2; deny all;", "trusted_proxies = [\"10.0.0.1\"]\n" + site + "allow = [\"10.0.0.2\"]\n", ""},
		{"set_real_ip_from 10.0.0.1;", site, "set_real_ip_from is left out: trusted_proxies are for X-Forwarded-For, not X-Real-IP"},
		{"set_real_ip_from 10.0.0.1; real_ip_header CF-Connecting-IP; deny 10.0.0.2;", site + denied, trusts},
		{"set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; location /p/ { allow 10.0.0.2; deny all; }", site + p("root = \"/w/p\"\n"+denied+"allow = [\"10.0.0.2\"]\n"),
			"want proxy_protocol in [[listen]]"},
		{"set_real_ip_from 10.0.0.1; location /p/ { deny all; }", site + p("respond = 403\n"+denied), "set_real_ip_from is left out"},
		{"location /p/ { set_real_ip_from 10.0.0.1; real_ip_header X-Forwarded-For; deny 10.0.0.2; }", site + p("root = \"/w/p\"\n"+denied), trusts},

		{"location /h { return 200 ok; }", site + "[[site.route]]\npath = \"/h/{path...}\"\nrespond = 200\nbody = \"ok\"\n[[site.route]]\npath = \"/h\"\nrespond = 200\nbody = \"ok\"\n",
			"location /h is for all that begins with it"},
		{"location /p { " + pass + "} location = /p { return 404; }", site + "hidden = [\"/p*?\"]\n" + p(proxied) + "[[site.route]]\npath = \"/p\"\nrespond = 404\n", "location /p is for all that begins with it"},
		{`location /a.sql { ` + pass + `} location ~ \.sql$ { deny all; }`, site + "hidden = [\"*.sql\", \"/a.sql*?\"]\n[[site.route]]\npath = \"/a.sql/{path...}\"\n" + proxied + denied + "hidden = [\"*.sql\"]\n" +
			"[[site.route]]\npath = \"/a.sql\"\n" + proxied + denied + "hidden = [\"*.sql\"]\n", "location /a.sql is for all that begins with it"},

		{"location /p/ { alias /s/secret; }", site + p("respond = 404\n"), "alias /s/secret does not end in a slash"},
		{"location /p/ { return 444; }", site + p("respond = 444\n"), "return 444 closes connections in nginx"},
		{"access_log /l combined buffer=32k;", site + "log = { file = \"/l\", format = \"combined\" }\n", ""},
		{"access_log /l main;", site + "log = { file = \"/l\", format = \"combined\" }\n", "access_log ... main is left out"},
		{"access_log /l combined if=$x;", site + "log = { file = \"/l\", format = \"combined\" }\n", "access_log ... if is left out"},
		{"access_log syslog:server=10.0.0.1;", site, "access_log syslog:server=10.0.0.1 is left out"},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a.example; root /w; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		trusted, keys, found := strings.Cut(tt.out, site)
		if !found {
			trusted, keys = "", tt.out
		} else {
			keys = site + keys
		}
		want := "listen = [\":80\"]\n" + trusted + "\n[[site]]\nhosts = [\"a.example\"]\n" + keys
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || out != want {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, want, tt.note)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// Paths that nginx changes before it selects a location, and those of error pages.
func TestNginxPaths(t *testing.T) {
	t.Parallel()
	const (
		api   = "location /api/ { proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; client_max_body_size 0; } "
		site  = "root = \"/w\"\n"
		route = "[[site.route]]\npath = \"/api/{path...}\"\nlimits.body = 0\nproxy = \"127.0.0.1:9\"\n"
	)
	const hour = "headers = { \"Cache-Control\" = \"max-age=3600\" }\n"
	forwarded := func(path string) string {
		lines := "proxy = \"b:80\"\nproxy_host = \"b\"\n" + implicit
		if path == "" {
			return lines
		}
		return "[[site.route]]\npath = \"" + path + "\"\n" + lines
	}
	rewrite := func(level, from, to string) string {
		return "[[" + level + ".rewrite]]\nfrom = \"" + from + "\"\nto = \"" + to + "\"\n"
	}
	for _, tt := range []struct{ in, out, note string }{
		{api + "rewrite ^/api/v1/(.*)$ /api/v2/$1 last;", site + route + rewrite("site.route", "^/api/v1/(.*)$", "/api/v2/{1}"), ""},
		{"location /a/ { rewrite ^/a/(.*)$ /$1 break; proxy_pass http://b; proxy_redirect off; }", site + forwarded("/a/{path...}") + rewrite("site.route", "(?s)^/a/(.*)$", "/{1}"), ""},
		{"location /a/ { rewrite ^/a(/.*) /c$1 break; proxy_pass http://b; proxy_redirect off; }", site + forwarded("/a/{path...}") + rewrite("site.route", "(?s)^/a/(.*)$", "/c/{1}"), ""},
		{"location /a/ { rewrite ^/a/?(.*)$ /$1 break; proxy_pass http://b; proxy_redirect off; }", site + forwarded("/a/{path...}") + rewrite("site.route", "(?s)^/a/(.*)$", "/{1}"), ""},
		{"location /a/ { rewrite ^/a/(.*)$ /$1 last; proxy_pass http://b; }", site + forwarded("/a/{path...}"), "rewrite of a location is left out"},
		{"location /a/ { rewrite ^/a/b/(.*)$ /$1 break; proxy_pass http://b; }", site + forwarded("/a/{path...}"), "rewrite of a location is left out"},
		{"location /a/ { rewrite ^/a/(.*)$ /$1 break; proxy_pass http://b/c/; }", site + forwarded("/a/{path...}") + rewrite("site.route", "(?s)^/a/(.*)$", "/c/{1}"),
			"rewrite of a location is left out"},
		{"location /a { rewrite ^/a/?(.*)$ /$1 break; proxy_pass http://b; }", site + "hidden = [\"/a*?\"]\n" + forwarded("/a/{path...}") + forwarded("/a"),
			"rewrite of a location is left out"},
		{"location /a { proxy_pass http://b/a; }", site + "hidden = [\"/a*?\"]\n" + forwarded("/a/{path...}") + forwarded("/a"), "all that begins with it"},
		{"location /a { proxy_pass http://b/c; }", site + "hidden = [\"/a*?\"]\n" + forwarded("/a/{path...}") + rewrite("site.route", "(?s)^/a/(.*)$", "/c/{1}") + rewrite("site.route", "^/a$", "/c") +
			forwarded("/a") + rewrite("site.route", "(?s)^/a/(.*)$", "/c/{1}") + rewrite("site.route", "^/a$", "/c"), "all that begins with it"},
		{"location /a { proxy_pass http://b/c/; }", site + "hidden = [\"/a*?\"]\n[[site.route]]\npath = \"/a/{path...}\"\nrespond = 502\n[[site.route]]\npath = \"/a\"\nrespond = 502\n",
			"only one of the two ends in a slash"},

		{"location ~* \\.(jpe?g|woff2?)$ { expires 1h; }", site + "[[site.rules]]\nmatch = [\"*.jpeg\", \"*.jpg\", \"*.woff2\", \"*.woff\"]\n" + hour, ""},
		{"location ~ \\.(sql|db3?)$ { deny all; }", site + "hidden = [\"*.sql\", \"*.db3\", \"*.db\"]\n", "deny of files is left out"},
		{"location ~ \\.(sql|?a)$ { deny all; }", site + "deny = [\"all\"]\n", "so nobody may"},
		{"location ~ \\.x?$ { deny all; }", site + "deny = [\"all\"]\n", "so nobody may"},
		{"location = /a*b.html { expires 1h; }", site + "[[site.rules]]\nmatch = [\"/a\\\\*b.html\"]\n" + hour, ""},
		{"location = /a.html { expires 1h; } location / { proxy_pass http://b; }", forwarded(""), "location /a.html is left out"},
		{"location = /a.html { expires 1h; } location / { root /v; }", "root = \"/v\"\n", "location /a.html is left out"},
		{"location / { try_files $uri /i.html$is_args$args; }", site + "try = [\"{path}\", \"/i.html\"]\n", ""},
		{"location / { try_files $uri /i.php?$args; }", site, "try_files /i.php?$args is left out"},

		{api + "rewrite ^/a$ /b last;", site + rewrite("site", "^/a$", "/b") + route, ""},
		{api + "rewrite ^/ap/(.*)$ /b/$1;", site + rewrite("site", "^/ap/(.*)$", "/b/{1}") + route, ""},
		{api + "rewrite ^/ap(.*)$ /b/$1;", site + route, "rewrite ^/ap(.*)$ is left out"},
		{api + "rewrite ^/old/(.*)$ /api/$1;", site + route, "rewrite ^/old/(.*)$ is left out"},
		{api + "rewrite ^/api/old/(.*)$ /b/$1;", site + route, "is left out"},
		{api + "rewrite /v1/ /b;", site + route, "is left out"},
		{api + "rewrite ^/(.*)$ /$1;", site + route, "is left out"},
		{"location /api/ { return 404; } rewrite ^/api/x /api/y;", site + "[[site.route]]\npath = \"/api/{path...}\"\nrespond = 404\n", "is left out"},
		{strings.Replace(api, ":9;", ":9/;", 1) + "rewrite ^/api/x /api/y;", site + route + "[[site.route.rewrite]]\nfrom = \"(?s)^/api/(.*)$\"\nto = \"/{1}\"\n", "is left out"},
		{api + "location / { auth_basic off; } rewrite ^/a/(.*)$ /b/$1;", route + "[[site.route]]\npath = \"/{path...}\"\nroot = \"/w\"\nbasic_auth = false\n" + rewrite("site.route", "^/a/(.*)$", "/b/{1}"), ""},

		{"error_page 500 /50x.html; location = /50x.html { root /e; }", site + "[site.errors]\n500 = \"/e/50x.html\"\n", "location /50x.html is left out"},
		{"error_page 500 /e/50x.html; location ^~ /e/ { alias /x/; expires 1h; }", site + "[site.errors]\n500 = \"/x/50x.html\"\n[[site.route]]\npath = \"/e/{path...}\"\nroot = \"/x\"\n" +
			"[[site.route.response_headers]]\nstatus = [\"2xx\", \"3xx\"]\nset = { \"Cache-Control\" = \"max-age=3600\" }\n", ""},
		{api + "error_page 500 /api/500;", site + route, "error_page is left out: want the name of a file"},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a.example; root /w; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		want := "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n" + tt.out
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || out != want {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, want, tt.note)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// A server without a root of its own has nothing.
func TestNginxNothing(t *testing.T) {
	t.Parallel()
	const none = "[[site.route]]\npath = \"/{path...}\"\n"
	for _, tt := range []struct{ in, out, note string }{
		{"location / { deny all; }", "deny = [\"all\"]\n" + none + "respond = 403\ndeny = [\"all\"]\n", ""},
		{"location / { }", none + "respond = 404\n", "the server has no root"},
		{"location /a/ { return 404; }", "[[site.route]]\npath = \"/a/{path...}\"\nrespond = 404\n", ""},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		_, keys, _ := strings.Cut(out, "hosts = [\"a\"]\n")
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || keys != tt.out {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, tt.out, tt.note)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// What a server says of clients holds for those that it knows, not for those that other servers' proxies name.
func TestNginxProxies(t *testing.T) {
	t.Parallel()
	const (
		field  = "real_ip_header X-Forwarded-For; "
		front  = "set_real_ip_from 10.0.0.1; " + field
		few    = "allow 10.9.9.9; deny all; "
		denied = "root = \"/x\"\ndeny = [\"all\"]\nallow = [\"10.9.9.9\"]\n"
	)
	for _, tt := range []struct{ http, a, b, keys string }{
		{"", front, few, denied},
		{"", front, "", "root = \"/x\"\n"},
		{"", front, front + few, "root = \"/x\"\nallow = [\"10.9.9.9\"]\n"},
		{"", front + "set_real_ip_from 10.0.0.2; ", front + few, denied},
		{front, "", few, "root = \"/x\"\nallow = [\"10.9.9.9\"]\n"},
		{front, "", few + "set_real_ip_from 10.0.0.2; ", denied},
		{"", front, "location /p/ { " + few + "}", "root = \"/x\"\n[[site.route]]\npath = \"/p/{path...}\"\n" +
			"root = \"/x/p\"\ndeny = [\"all\"]\nallow = [\"10.9.9.9\"]\n"},
	} {
		out, notes, err := Nginx("http { " + tt.http + "server { listen 80; server_name a; root /w; " + tt.a +
			"}\nserver { listen 80; server_name b; root /x; " + tt.b + "} }")
		_, keys, _ := strings.Cut(out, "hosts = [\"b\"]\n")
		if err != nil || (len(notes) > 0) != strings.Contains(keys, "deny") || keys != tt.keys {
			t.Errorf("%+v:\n%s\nsaid %v, %v", tt, out, notes, err)
		}
	}
}

// Locations that say nothing of clients have the server's rules, also where location / relaxes them.
func TestNginxRelaxed(t *testing.T) {
	t.Parallel()
	const (
		pass  = "proxy_pass http://127.0.0.1:9; proxy_set_header Host $host; "
		open  = "deny all; location / { allow all; " + pass + "} "
		front = "deny = [\"all\"]\n[[site.route]]\npath = \"/{path...}\"\nproxy = \"127.0.0.1:9\"\n"
		file  = "auth_basic x; auth_basic_user_file u; location / { auth_basic off; } "
		asked = "basic_auth.realm = \"x\"\nbasic_auth.htpasswd = \"u\"\n"
		root  = asked + "%s[[site.route]]\npath = \"/{path...}\"\nroot = \"/w\"\nbasic_auth = false\n"
	)
	for _, tt := range []struct{ in, out, note string }{
		{open, "proxy = \"127.0.0.1:9\"\n", ""},
		{open + "location ~ /private/ { root /q; }", front + "deny = []\nhidden = [\"private\"]\n", "its names are hidden there"},
		{open + "location ~ /\\.(?!well-known) { root /q; }", front + "deny = []\ndotfiles = false\n", "its names are hidden there"},
		{open + "location ~ /\\.ht { deny all; }", "proxy = \"127.0.0.1:9\"\nhidden = [\".ht*\"]\n", ""},
		{open + "location ~ ^/user/[0-9]+/edit$ { " + pass + "}", front + "deny = [\"all\"]\n", "nobody may have that"},
		{open + "location /s/ { expires -1; }", front + "deny = []\n[[site.route]]\npath = \"/s/{path...}\"\nroot = \"/w/s\"\n", ""},
		{"deny all; location /a/ { allow all; " + pass + "} location /s/ { expires -1; }", "deny = [\"all\"]\n[[site.rules]]\nmatch = [\"s/**\"]\n" +
			"headers = { \"Cache-Control\" = \"no-cache\" }\n" + strings.Replace(front[len("deny = [\"all\"]\n"):], "{", "a/{", 1) + "deny = []\n", ""},
		{file + "location = /r { }", strings.Replace(root, "%s", "hidden = [\"/r\"]\n", 1) + "[[site.route]]\npath = \"/r\"\nrespond = 403\ndeny = [\"all\"]\n", "location /r is left out"},
		{file + "location ~ \\.bak$ { root /q; }", strings.Replace(root, "%s", "", 1) + "hidden = [\"*.bak\"]\n", "its names are hidden there"},
		{file + "location /p { }", strings.Replace(root, "%s", "hidden = [\"/p*?\"]\n", 1) + "[[site.route]]\npath = \"/p/{path...}\"\nroot = \"/w/p\"\nhidden = []\n", "begins with it"},
	} {
		out, notes, err := Nginx("server { listen 80; server_name a; root /w; " + tt.in + " }")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		_, keys, _ := strings.Cut(strings.ReplaceAll(out, implicit, ""), "hosts = [\"a\"]\n")
		keys, _, _ = strings.Cut(strings.TrimPrefix(keys, "root = \"/w\"\n"), "[[site.route.response_headers")
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || keys != tt.out {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, keys, said, err, tt.out, tt.note)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// A server that refuses the hosts of no other is left out, unless another would have them then.
func TestNginxUnanswered(t *testing.T) {
	t.Parallel()
	const a = "server { listen 80; server_name a; root /w; } "
	for _, tt := range []struct{ in, hosts string }{
		{a + "server { listen 80 default_server; return 444; }", `["a"]`},
		{a + "server { listen 80 default_server; server_name _; return 403; } server { listen 80; server_name ''; deny all; }", `["a"]`},
		{"server { listen 80 default_server; return 444; }", `["*"]`},
		{a + "server { listen 80 default_server; return 444; } server { listen 80; root /x; }", `["a"] ["*"]`},
		{a + "server { listen 80 default_server; server_name b; return 444; }", `["a"] ["*", "b"]`},
		{a + "server { listen 80 default_server; return 404 gone; }", `["a"] ["*"]`},
		{a + "server { listen 80 default_server; location / { return 444; } location /x/ { root /x; } }", `["a"] ["*"]`},
	} {
		out, _, err := Nginx(tt.in)
		var hosts []string
		for line := range strings.Lines(out) {
			if list, ok := strings.CutPrefix(line, "hosts = "); ok {
				hosts = append(hosts, strings.TrimSpace(list))
			}
		}
		if got := strings.Join(hosts, " "); err != nil || got != tt.hosts {
			t.Errorf("%s: %s, %v, want %s in\n%s", tt.in, got, err, tt.hosts, out)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}

// The text of return has the type that default_type says, unless that is the one of all files.
func TestReturnedType(t *testing.T) {
	t.Parallel()
	const json = "[[site.route.response_headers]]\nset = { \"Content-Type\" = \"application/json\" }\n"
	for _, tt := range []struct {
		in, out string
		notes   int
	}{
		{"location = /h { default_type application/json; return 200 '{}'; }", "path = \"/h\"\nrespond = 200\nbody = \"{}\"\n" + json, 0},
		{"default_type application/json; location = /h { return 404 '{}'; }", "path = \"/h\"\nrespond = 404\nbody = \"{}\"\n" + json, 1},
		{"default_type application/json; return 200 '{}';", "path = \"/\"\nrespond = 200\nbody = \"{}\"\n" + json, 0},
		{"location = /h { default_type application/json; add_header Content-Type a/b always; return 200 x; }", "path = \"/h\"\nrespond = 200\nbody = \"x\"\nheaders = { \"Content-Type\" = \"a/b\" }\n", 0},
		{"location = /h { default_type application/json; return 204; }", "path = \"/h\"\nrespond = 204\n", 0},
		{"location = /h { return 200 x; }", "path = \"/h\"\nrespond = 200\nbody = \"x\"\n", 0},
	} {
		out, notes, err := Nginx("http { default_type application/octet-stream; server { listen 80; server_name a.example; " + tt.in + " } }")
		if want := "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n[[site.route]]\n" + tt.out; out != want || len(notes) > tt.notes || err != nil {
			t.Errorf("%s:\n%s\n%v, %v, want\n%s", tt.in, out, notes, err, want)
		}
	}
}
