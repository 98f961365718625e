package adapt

import (
	"strings"
	"testing"
)

// If a directive of Caddy that refuses some clients is left out, all are refused.
func TestCaddyGuards(t *testing.T) {
	t.Parallel()
	const (
		site    = "root = \"/w\"\n"
		served  = "root * /w\nfile_server\n"
		nobody  = "deny = [\"all\"]\n"
		refused = "[[site.route]]\npath = \"/s/{path...}\"\nrespond = 403\n" + nobody
		app     = "reverse_proxy b:1\n"
		proxied = "proxy = \"b:1\"\n"
	)
	for _, tt := range []struct{ in, out, note string }{
		{served + "tls c k {\nclient_auth {\nmode require_and_verify\ntrust_pool file ca\n}\n}", site + "tls_cert = \"c\"\ntls_key = \"k\"\nclient_ca = \"ca\"\n", ""},
		{served + "tls internal {\nclient_auth {\ntrusted_ca_cert_file ca\nmode verify_if_given\n}\n}", site + "tls_self = true\nclient_ca = \"ca\"\nclient_certificate = \"optional\"\n", ""},
		{served + "tls c k {\nclient_auth {\nmode require\n}\n}", site + "tls_cert = \"c\"\ntls_key = \"k\"\n" + nobody, "client_auth says who may have it"},
		{served + "tls c k {\nclient_auth {\ntrusted_leaf_cert_file l\ntrusted_ca_cert_file ca\n}\n}", site + "tls_cert = \"c\"\ntls_key = \"k\"\n" + nobody, "trusted_leaf_cert_file is left out"},
		{served + "tls c k {\nprotocols tls1.3\ncurves x25519\n}", site + "tls_cert = \"c\"\ntls_key = \"k\"\ntls_min = \"1.3\"\n", "curves is left out"},

		{served + "file_server {\nhide /w/secret *.bak\n}", site + "hidden = [\"*.bak\", \"/secret\"]\n", ""},
		{"file_server {\nhide ./www/a/*.x\n}\nroot * www", "root = \"www\"\nhidden = [\"/a/*.x\"]\n", ""},
		{served + "file_server {\nhide /etc/x\n}", site, "hide /etc/x is left out: it is not in root"},
		{served + "file_server {\nhide {env.X}/y\n}", site + nobody, "hide says who may have it"},
		{served + "file_server {\nhide a/y\n}", site + nobody, "hide says who may have it"},

		{served + "php_fastcgi b:1", site + "hidden = [\"*.php\"]\n", "php_fastcgi is left out"},
		{"root * /w\nphp_fastcgi b:1", "hidden = [\"*.php\"]\n[[site.route]]\npath = \"/{path...}\"\nrespond = 502\n", "php_fastcgi is left out"},
		{"root * /w\nfile_server /pub/*", "[[site.route]]\npath = \"/pub/{path...}\"\nroot = \"/w/pub\"\n", ""},
		{"root * /w\nfile_server @x", "[[site.route]]\npath = \"/{path...}\"\nrespond = 404\n", "file_server is left out"},

		{served + "@x remote_ip 10.0.0.0/8\nabort @x", site + "deny = [\"10.0.0.0/8\"]\n", ""},
		{served + "@x {\nnot client_ip 10.0.0.0/8 192.0.2.1\n}\nrespond @x \"no\" 403", site + "allow = [\"10.0.0.0/8\", \"192.0.2.1\"]\n", ""},
		{served + "@x not remote_ip private_ranges\nhandle @x {\nabort\n}", site + "allow = [\"192.168.0.0/16\", \"172.16.0.0/12\", \"10.0.0.0/8\", \"127.0.0.0/8\", \"fd00::/8\", \"::1\"]\n", ""},
		{served + "@x {\npath /s/*\nnot remote_ip 10.0.0.1\n}\nrespond @x 403", site + nobody, "respond says who may have it"},
		{served + "@x remote_ip 10.0.0.1\nrespond @x hello", site + nobody, "respond says who may have it"},
		{served + "@x header X y\nerror @x 403", site + nobody, "error says who may have it"},
		{served + "@x path /s/* *.sql\nrespond @x 404", site + "hidden = [\"*.sql\"]\n" + refused, ""},
		{app + "@x path *.sql\nabort @x", proxied + "hidden = [\"*.sql\"]\n", ""},
		{served + "reverse_proxy /p/* b:1\n@x path *.sql\nabort @x", site + "hidden = [\"*.sql\"]\n[[site.route]]\npath = \"/p/{path...}\"\n" + proxied + "hidden = [\"*.sql\"]\n", ""},
		{app + "@x path */.git* */.svn/* /.*\nrespond @x 404", proxied + "hidden = [\".git*\", \".svn\", \".*\"]\n", ""},
		{app + "@x path */.g*t\nrespond @x 404", proxied + nobody, "nobody may"},
		{served + "abort /.*", site + "hidden = [\".*\"]\n", ""},
		{served + "respond /.* 404", site + "hidden = [\".*\"]\n", ""},
		{served + "abort /s/*", site + refused, ""},
		{served + "error /s* 403", site + "hidden = [\"/s\", \"/s*?\"]\n" + refused, ""},
		{"respond /s* 403\n" + app, proxied + "hidden = [\"/s\", \"/s*?\"]\n[[site.route]]\npath = \"/s/{path...}\"\nrespond = 403\n", ""},
		{served + "respond /s* 404", site + "hidden = [\"/s\", \"/s*?\"]\n[[site.route]]\npath = \"/s/{path...}\"\nrespond = 404\n", ""},
		{served + "reverse_proxy /p/* b:1\nabort /p/s*", site + "hidden = [\"/p/s\", \"/p/s*?\"]\n[[site.route]]\npath = \"/p/{path...}\"\n" + proxied +
			"hidden = [\"/p/s\", \"/p/s*?\"]\n" + strings.ReplaceAll(refused, "/s", "/p/s"), ""},
		{served + "handle_path /p/* {\n" + app + "}\n@s path /p/s* /x\nabort @s", site + "hidden = [\"/p/s\", \"/p/s*?\"]\n[[site.route]]\npath = \"/p/{path...}\"\n" + proxied +
			"strip = true\nhidden = [\"/s\", \"/s*?\"]\n" + strings.ReplaceAll(refused, "/s", "/p/s") + strings.ReplaceAll(refused, "/s/{path...}", "/x"), ""},
		{served + "reverse_proxy /s/p/* b:1\nabort /s/*", site + "[[site.route]]\npath = \"/s/p/{path...}\"\n" + proxied + nobody + refused, "/s/p/ is also refused by a directive that Caddy evaluates first"},
		{served + "handle /s/p/* {\n" + app + "}\nabort /s/*", site + "[[site.route]]\npath = \"/s/p/{path...}\"\n" + proxied + refused, ""},
		{app + "abort /s/*", proxied + "hidden = [\"/s/**\"]\n" + refused, ""}, // also /S/
		{app + "respond /s 403", proxied + "hidden = [\"/s\"]\n[[site.route]]\npath = \"/s\"\nrespond = 403\n", ""},
		{served + "handle /p/* {\n" + app + "}\nrespond /p/s/* 403", site + "hidden = [\"/p/s/**\"]\n[[site.route]]\npath = \"/p/{path...}\"\n" + proxied +
			"hidden = [\"/p/s/**\"]\n[[site.route]]\npath = \"/p/s/{path...}\"\nrespond = 403\n", ""},
		{served + "respond /*/s 403", site + nobody, "respond says who may have it"},
		{served + "respond /*/s hello", site, "respond is left out"},
		{served + "header X-A {remote_host}", site, "header X-A is left out: the value has a placeholder"},
		{served + "header ?X-A b", site, "header ?X-A is left out: want the name of a field"},
		{served + "respond 403", "[[site.route]]\npath = \"/{path...}\"\nrespond = 403\n", ""},
		{served + "handle /s* {\nabort\n}", site + "hidden = [\"/s\", \"/s*?\"]\n[[site.route]]\npath = \"/s/{path...}\"\nrespond = 502\n", "abort is left out"},
		{"handle @x {\n" + app + "}\nhandle {\nrespond 403\n}", "[[site.route]]\npath = \"/{path...}\"\nrespond = 502\n", "handle is left out"},
		{served + "bind 127.0.0.1 ::1", site + "allow = [\"127.0.0.0/8\", \"::1\"]\n", "bind is left out"},
		{served + "bind 192.0.2.1", site, "bind is left out"},

		{served + "}\nhttp://a.example/s/* {\nbasic_auth {\na b\n}\n" + served, site + refused, "the address http://a.example/s/* is left out"},
		{served + "}\nhttp://*.example/s* {\n" + app, site + "hidden = [\"/s\", \"/s*?\"]\n[[site.route]]\npath = \"/s/{path...}\"\nrespond = 502\n", "is left out"},
		{served + "}\nhttp://b.example/s/* {\nabort", site, "is left out"},
		{served + "}\nhttp://a.example/s/* {\n" + served, site, "is left out"},
		{served + "}\nhttp://a.example/*/s {\nabort", site + nobody, "a.example/*/s says who may have it"},
	} {
		out, notes, err := Caddy("http://a.example {\n" + tt.in + "\n}\n")
		said := ""
		for _, n := range notes {
			said += n.Text + "\n"
		}
		want := "listen = [\":80\"]\n\n[[site]]\nhosts = [\"a.example\"]\n" + tt.out
		if err != nil || tt.note == "" && said != "" || !strings.Contains(said, tt.note) || out != want {
			t.Errorf("%s:\n%s\nsaid %s, %v\nwant\n%s\nand %s", tt.in, out, said, err, want, tt.note)
		}
		if all := problems(t, out); all != nil && !strings.Contains(tt.out, "tls_") {
			t.Errorf("%s: %q in\n%s", tt.in, all, out)
		}
	}
}
