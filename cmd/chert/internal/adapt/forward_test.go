package adapt

import (
	"strings"
	"testing"
)

// Both translations of what is forwarded, which must be configurations without a mistake too.
func TestForward(t *testing.T) {
	t.Parallel()
	nginx := func(s string) string {
		return "upstream app { server 10.0.0.1:8080 weight=3; server 10.0.0.2 max_conns=10; server unix:/run/b.sock backup; keepalive 32; }\n" +
			"server { listen 80; server_name a.example; " + s + " }"
	}
	const app = "servers = [{ addr = \"10.0.0.1:8080\", weight = 3 }, { addr = \"10.0.0.2:80\", max_requests = 10 }, { addr = \"unix:/run/b.sock\", backup = true }]\nbalance = \"round-robin\"\n"
	const idiom = "proxy_http_version 1.1; proxy_set_header Host $host; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection \"upgrade\"; " +
		"proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Real-IP $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; "
	for _, tt := range []struct{ name, in, out, note string }{
		{"an address, with the usual fields", nginx("location / { proxy_pass http://127.0.0.1:9000; " + idiom + "}"), "proxy = \"127.0.0.1:9000\"\n", ""},
		{"the host is nginx's", nginx("location / { proxy_pass http://app; }"), "[upstream.app]\n" + app + "---proxy = \"app\"\nproxy_host = \"app\"\n",
			"a Location that begins with the address of proxy_pass"},
		{"the host is nginx's, and so is Location", nginx("location / { proxy_pass http://app; proxy_redirect off; }"), "[upstream.app]\n" + app + "---proxy = \"app\"\nproxy_host = \"app\"\n", ""},
		{"a route, cut off", nginx("root /w; location /api/ { proxy_pass http://app/; proxy_set_header Host x.example; index i; }"),
			"[upstream.app]\n" + app + "---root = \"/w\"\n[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"app\"\nproxy_host = \"x.example\"\n[[site.route.rewrite]]\nfrom = \"(?s)^/api/(.*)$\"\nto = \"/{1}\"\n", ""},
		{"a route, cut off, with it in Location", nginx("root /w; location /api/ { proxy_pass http://app/; proxy_redirect / /api/; proxy_set_header Host $host; }"),
			"[upstream.app]\n" + app + "---root = \"/w\"\n[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"app\"\nstrip = true\n", "proxy_redirect is strip = true here"},
		{"a Location of another", nginx("root /w; location /api/ { proxy_pass http://app/; proxy_redirect http:// https://; proxy_set_header Host $host; }"),
			"[upstream.app]\n" + app + "---root = \"/w\"\n[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"app\"\n[[site.route.rewrite]]\nfrom = \"(?s)^/api/(.*)$\"\nto = \"/{1}\"\n",
			"proxy_redirect is left out: Location stays as it is"},
		{"another path", nginx("root /w; location /a.b/ { proxy_pass http://127.0.0.1:9000/c/; " + idiom + "}"),
			"root = \"/w\"\n[[site.route]]\npath = \"/a.b/{path...}\"\nproxy = \"127.0.0.1:9000\"\n[[site.route.rewrite]]\nfrom = \"(?s)^/a\\\\.b/(.*)$\"\nto = \"/c/{1}\"\n", ""},
		{"times", nginx("proxy_read_timeout 300; location / { proxy_pass http://b.example; proxy_connect_timeout 2s; proxy_set_header Host $host; }"),
			"[upstream.b_example]\nservers = [\"b.example:80\"]\nconnect_timeout = \"2s\"\nresponse_timeout = \"300s\"\nstall_timeout = \"300s\"\n---proxy = \"b_example\"\n", ""},
		{"fields", nginx("proxy_set_header A b; proxy_set_header Host $host; location / { proxy_pass http://127.0.0.1:9000; proxy_hide_header X-B; }"),
			"proxy = \"127.0.0.1:9000\"\nrequest_headers = { \"A\" = \"b\" }\n[[site.response_headers]]\nremove = \"X-B\"\n", ""},
		{"a field that others could set", nginx("location / { proxy_pass http://127.0.0.1:9000; proxy_set_header Host $host; proxy_set_header X-User $ssl_client_s_dn; }"),
			"proxy = \"127.0.0.1:9000\"\nrequest_headers = { \"X-User\" = \"\" }\n", "X-User has no fixed value"},
		{"verification", nginx("location / { proxy_pass https://b.example; proxy_set_header Host $host; }"), "proxy = \"https://b.example:443\"\n",
			"certificates of https upstreams are verified"},
		{"a variable", nginx("root /w; location / { proxy_pass http://$backend; }"), "[[site.route]]\npath = \"/\"\nrespond = 502\n", "proxy_pass http://$backend is left out"},
		{"a guard", nginx("location / { auth_request /a; proxy_pass http://127.0.0.1:9000; proxy_set_header Host $host; }"),
			"proxy = \"127.0.0.1:9000\"\ndeny = [\"all\"]\n", "auth_request is left out"},
		{"retries", nginx("location / { proxy_pass http://127.0.0.1:9000; proxy_set_header Host $host; proxy_next_upstream error timeout http_502 http_504 non_idempotent; }"),
			"[upstream.127_0_0_1_9000]\nservers = [\"127.0.0.1:9000\"]\nretry = [\"timeouts\", \"statuses\"]\n---proxy = \"127_0_0_1_9000\"\n", "non_idempotent is left out"},
		{"hashes", "upstream x.y { hash $cookie_id consistent; server 10.0.0.1:1; server 10.0.0.2:1 down; zone z 64k; }\nserver { listen 80; server_name a.example; location / { proxy_pass http://x.y; proxy_set_header Host $http_host; } }",
			"[upstream.x_y]\nservers = [\"10.0.0.1:1\", { addr = \"10.0.0.2:1\", weight = 0 }]\nbalance = \"hash cookie:id\"\n---proxy = \"x_y\"\n", ""},

		{"Caddy", "http://a.example {\n\treverse_proxy localhost:9000\n}\n", "proxy = \"localhost:9000\"\n", ""},
		{"Caddy: several", "http://a.example {\n\troot * /w\n\treverse_proxy 10.0.0.1 10.0.0.2:81 {\n\t\tlb_policy cookie id\n\t\thealth_uri /h\n\t\thealth_interval 10s\n\t\theader_up Host {upstream_hostport}\n\t\theader_up X-A b\n\t\theader_up -X-C\n\t\theader_down -Server\n\t}\n}\n",
			"[upstream.10_0_0_1_80]\nservers = [\"10.0.0.1:80\", \"10.0.0.2:81\"]\nbalance = \"sticky id\"\n[upstream.10_0_0_1_80.check]\npath = \"/h\"\ninterval = \"10s\"\n---" +
				"proxy_host = \"upstream\"\nrequest_headers = { \"X-A\" = \"b\", \"X-C\" = \"\" }\nproxy = \"10_0_0_1_80\"\n[[site.response_headers]]\nremove = \"Server\"\n", ""},
		{"Caddy: a field in place of the upstream's", "http://a.example {\n\treverse_proxy :9 {\n\t\theader_down -x-a\n\t\theader_down -X-B\n\t}\n\treverse_proxy /p/* :8 {\n\t\theader_down -X-A\n\t}\n\theader X-A b\n}\n",
			"proxy = \"127.0.0.1:9\"\n[[site.response_headers]]\nremove = \"X-B\"\n[[site.response_headers]]\nset = { \"X-A\" = \"b\" }\n[[site.route]]\npath = \"/p/{path...}\"\nproxy = \"127.0.0.1:8\"\n", ""},
		{"Caddy: fields", "http://a.example {\n\treverse_proxy :9\n\theader -Server\n\theader {\n\t\tA b\n\t\t+Link c\n\t\t>E f\n\t\tdefer\n\t\t-D\n\t\t?G h\n\t}\n}\n",
			"proxy = \"127.0.0.1:9\"\n[[site.response_headers]]\nremove = \"Server\"\n[[site.response_headers]]\nset = { \"A\" = \"b\" }\n[[site.response_headers]]\nadd = { \"Link\" = \"c\" }\n" +
				"[[site.response_headers]]\nset = { \"E\" = \"f\" }\n[[site.response_headers]]\nremove = \"D\"\n", "10: header ?G is left out"},
		{"Caddy: a field without a value", "http://a.example {\n\treverse_proxy :9\n\theader A {host}\n}\n", "proxy = \"127.0.0.1:9\"\n", "header A is left out"},
		{"Caddy: bodies", "http://a.example {\n\treverse_proxy :9\n\trequest_body {\n\t\tmax_size 10M\n\t\tread_timeout 5s\n\t}\n}\n", "proxy = \"127.0.0.1:9\"\nlimits.body = \"10MB\"\n",
			"5: read_timeout is left out"},
		{"Caddy: a log", "http://a.example {\n\treverse_proxy :9\n\tlog {\n\t\toutput file /a.log {\n\t\t\troll_size 1mb\n\t\t}\n\t\tformat console\n\t}\n}\n",
			"proxy = \"127.0.0.1:9\"\nlog = { file = \"/a.log\", format = \"text\" }\n", "5: roll_size of log is left out"},
		{"Caddy: a path", "http://a.example {\n\treverse_proxy /api/* unix//run/a.sock\n}\n", "[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"unix:/run/a.sock\"\n", ""},
		{"Caddy: cut off", "http://a.example {\n\thandle_path /api/* {\n\t\treverse_proxy https://b.example\n\t}\n}\n",
			"[[site.route]]\npath = \"/api/{path...}\"\nproxy = \"https://b.example:443\"\nstrip = true\n", ""},
		{"Caddy: first", "http://a.example {\n\treverse_proxy :9000 :9001 {\n\t\tlb_policy first\n\t}\n}\n",
			"[upstream.127_0_0_1_9000]\nservers = [\"127.0.0.1:9000\", { addr = \"127.0.0.1:9001\", backup = true }]\n---proxy = \"127_0_0_1_9000\"\n", ""},
		{"Caddy: a guard", "http://a.example {\n\thandle /x/* {\n\t\tforward_auth b:1\n\t\treverse_proxy c:1\n\t}\n}\n",
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\ndeny = [\"all\"]\n", "nobody may"},
		{"Caddy: who is asked", "http://a.example {\n\tforward_auth unix//run/a.sock {\n\t\turi /v?x=1\n\t\tcopy_headers A {\n\t\t\tB\n\t\t}\n\t}\n\treverse_proxy :9\n}\n",
			"proxy = \"127.0.0.1:9\"\n[site.forward_auth]\nurl = \"http://localhost/v?x=1\"\nsocket = \"/run/a.sock\"\nheaders = [\"A\", \"B\"]\n", ""},
		{"Caddy: who is asked of a path", "http://a.example {\n\thandle /x/* {\n\t\tforward_auth https://b.example {\n\t\t\turi /v\n\t\t}\n\t\treverse_proxy c:1\n\t}\n}\n",
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\n[site.route.forward_auth]\nurl = \"https://b.example:443/v\"\n", ""},
		{"Caddy: who is asked of what", "http://a.example {\n\tforward_auth b:1 {\n\t\turi /v\n\t}\n\troot * /w\n\ttry_files {path} /i\n\tfile_server\n}\n",
			"root = \"/w\"\ntry = [\"{path}\", \"/i\"]\n[site.forward_auth]\nurl = \"http://b:1/v\"\n", "2: forward_auth is asked about the path that the client has sent"},
		{"Caddy: who is asked of a path that is cut off", "http://a.example {\n\thandle_path /x/* {\n\t\tforward_auth b:1 {\n\t\t\turi /v\n\t\t}\n\t\treverse_proxy c:1\n\t}\n}\n",
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\nstrip = true\ndeny = [\"all\"]\n[site.route.forward_auth]\nurl = \"http://b:1/v\"\n", "nobody may"},
		{"Caddy: who is asked of a path that uri cuts off", "http://a.example {\n\thandle /x/* {\n\t\tforward_auth b:1 {\n\t\t\turi /v\n\t\t}\n\t\turi strip_prefix /x\n\t\treverse_proxy c:1\n\t}\n}\n",
			"[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\nstrip = true\ndeny = [\"all\"]\n[site.route.forward_auth]\nurl = \"http://b:1/v\"\n", "nobody may"},
		{"Caddy: both are asked", "http://a.example {\n\tforward_auth b:1 {\n\t\turi /v\n\t}\n\tforward_auth b:1 {\n\t\turi /w\n\t}\n\treverse_proxy :9\n}\n",
			"deny = [\"all\"]\nproxy = \"127.0.0.1:9\"\n", "5: forward_auth says who may have it"},
		{"Caddy: both are asked of a path", "http://a.example {\n\thandle /x/* {\n\t\tforward_auth b:1 {\n\t\t\turi /v\n\t\t}\n\t\treverse_proxy c:1\n\t}\n\tforward_auth b:1 {\n\t\turi /w\n\t}\n}\n",
			"[site.forward_auth]\nurl = \"http://b:1/w\"\n[[site.route]]\npath = \"/x/{path...}\"\nproxy = \"c:1\"\ndeny = [\"all\"]\n", "nobody may"},
		{"Caddy: what is asked is changed", "http://a.example {\n\tforward_auth b:1 {\n\t\turi /v\n\t\tcopy_headers {\n\t\t\tA>B\n\t\t}\n\t}\n\treverse_proxy :9\n}\n",
			"deny = [\"all\"]\nproxy = \"127.0.0.1:9\"\n", "2: forward_auth says who may have it"},
		{"Caddy: fields of a path", "http://a.example {\n\theader /x/* A b\n\treverse_proxy :9\n}\n", "proxy = \"127.0.0.1:9\"\n", "2: header /x/* is left out: want [[site.rules]]"},
		{"Caddy: a matcher", "http://a.example {\n\troot * /w\n\tfile_server\n\treverse_proxy @x c:1\n}\n",
			"[[site.route]]\npath = \"/{path...}\"\nrespond = 502\n", "reverse_proxy @x is left out"},
		{"Caddy: gRPC", "http://a.example {\n\treverse_proxy h2c://c:1\n}\n", "[upstream.c_1]\nservers = [\"c:1\"]\nprotocol = \"h2\"\n---proxy = \"c_1\"\n", ""},
	} {
		translate := Nginx
		if strings.HasPrefix(tt.name, "Caddy") {
			translate = Caddy
		}
		out, notes, err := translate(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		said := ""
		for _, n := range notes {
			said += itoa(n.Line) + ": " + n.Text + "\n"
		}
		if tt.note == "" && said != "" || !strings.Contains(said, tt.note) {
			t.Errorf("%s: said %s, want %q", tt.name, said, tt.note)
		}
		ups, site, found := strings.Cut(tt.out, "---")
		if !found {
			ups, site = "", ups
		}
		want := "listen = [\":80\"]\n"
		if ups != "" {
			want += "\n" + ups
		}
		if want += "\n[[site]]\nhosts = [\"a.example\"]\n" + site; strings.ReplaceAll(out, implicit, "") != want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, out, want)
		}
		if all := problems(t, out); all != nil {
			t.Errorf("%s: %q in\n%s", tt.name, all, out)
		}
	}
}
