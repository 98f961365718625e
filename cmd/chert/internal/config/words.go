package config

import "strings"

// A Hint is what to use in place of a word of another server: for a flag, and for a
// key of the configuration file. Either is "" where the word needs none.
type Hint struct{ Flag, Key string }

// both is a Hint that is the same for a flag and for a key.
func both(text string) Hint { return Hint{text, text} }

// Instead has a hint for each word of nginx, Caddy, Apache and small file servers that
// chert does not have, in small letters with "_" for "-".
var Instead = func() map[string]Hint {
	all := make(map[string]Hint)
	for _, h := range hints {
		for word := range strings.FieldsSeq(h.words) {
			hint := h.Hint
			if flag, ok := strings.CutPrefix(word, "--"); ok {
				word, hint.Key = flag, ""
			} else if key, ok := strings.CutSuffix(word, "="); ok {
				word, hint.Flag = key, ""
			}
			all[word] = hint
		}
	}
	return all
}()

// insteadInUpstream has hints for the keys of [upstream.NAME].
var insteadInUpstream = byWord(map[string]string{
	"lb_policy policy method ip_hash least_conn random hash": `want balance = "round-robin", "hash client" or another`,
	"keepalive keepalive_requests":                           "want max_idle",
	"keepalive_timeout":                                      "want idle_timeout",
	"max_fails fail_timeout fail_duration":                   "want [upstream.NAME.health] with consecutive and within",
	"health_uri health_check health_checks healthcheck":      `want check = "/healthz"`,
	"check_interval health_interval interval inter fall rise": "want [upstream.NAME.check] with path, interval, fall " +
		"and rise",
	"max_conns maxconn max_connections": "want max_requests, for each server",
	"weight backup":                     `want servers = [{ addr = "10.0.0.1:8080", weight = 3 }]`,
	"timeout timeouts dial_timeout read_timeout write_timeout": "want connect_timeout, response_timeout or " +
		"stall_timeout",
})

// insteadInSite has hints for the keys of [[site]] and [[site.route]].
var insteadInSite = byWord(map[string]string{
	"upstream upstreams":                        `want proxy = "NAME"; [upstream.NAME] stands by itself`,
	"strip_prefix uri_strip_prefix stripprefix": "want strip = true beside proxy; it cuts off all before the wildcard",
	"max_body": `want [site.limits] with body = "10MB"`,
})

// insteadInLimits has hints for the keys of [site.limits] and the like.
var insteadInLimits = byWord(map[string]string{
	"max_body client_max_body_size max_body_size": `want body = "10MB"`,
})

// byWord returns the hint of each word of the keys.
func byWord(hints map[string]string) map[string]string {
	all := make(map[string]string)
	for words, hint := range hints {
		for word := range strings.FieldsSeq(words) {
			all[word] = hint
		}
	}
	return all
}

// A hint names what chert has in the place of the words, or says that it has nothing
// yet and what to use. Of a word that is a key of chert it is for the flag alone ("--w"),
// and the reverse ("w="). Tests compare the names with the flags, the keys and the
// documents.
var hints = []struct {
	words string
	Hint
}{
	{"--tls ssl_on", Hint{
		Flag: "chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them",
		Key:  "want tls_cert with tls_key, tls_self or tls_auto; docs/tls.md describes them",
	}},
	{"cert certificate https ssl acme letsencrypt auto_https ssl_certificate ssl_certificate_key cert_key " +
		"key_file cert_file --key", Hint{
		Flag: "chert serve has --tls-cert with --tls-key, --tls-self and --tls-auto; docs/tls.md describes them",
		Key:  "want tls_cert with tls_key, tls_self or tls_auto; docs/tls.md describes them",
	}},
	{"ssl_protocols", Hint{
		Flag: "use --tls-min",
		Key:  `want tls_min = "1.3"; 1.2 is the default`,
	}},
	{"ssl_client_certificate ssl_verify_client ssl_trusted_certificate client_auth", Hint{
		Flag: "use --client-ca",
		Key:  "want client_ca, and client_certificate for some routes alone",
	}},
	{
		"ssl_ciphers ssl_prefer_server_ciphers ssl_ecdh_curve ssl_dhparam ciphers curves",
		both("cipher suites and curves are those of Go's crypto/tls, and chert serve does not let them be " +
			"chosen; docs/tls.md"),
	},
	{"email", Hint{
		Flag: "use --tls-email",
		Key:  "want tls_email",
	}},
	{"acme_ca", Hint{
		Flag: "use --tls-ca",
		Key:  "want tls_ca",
	}},
	{"storage", Hint{
		Flag: "use --tls-storage",
		Key:  "want tls_storage",
	}},
	{"port --p", Hint{
		Flag: "use --listen :8080, or --listen 8080 for this machine only",
		Key:  `want listen = ":8080"`,
	}},
	{"host bind --address addr", Hint{
		Flag: "use --listen HOST:PORT",
		Key:  `want listen = "HOST:PORT" for an address, or hosts = ["example.com"] for the names of a site`,
	}},
	{"domain domains server_name server_names servername server_alias hostname vhost", Hint{
		Flag: "a folder is served for all names: --tls-auto NAME gets a certificate for one, and the sites " +
			"of --config have hosts",
		Key: `want hosts = ["example.com"]`,
	}},
	{"server --servers virtual_host virtualhost file_server static", Hint{
		Flag: `"chert serve DIR" serves a folder; --config FILE many sites`,
		Key:  "want [[site]] with hosts and root",
	}},
	{"--root dir directory d document_root documentroot --path folder", Hint{
		Flag: `the folder has no flag, as in "chert serve DIR"`,
		Key:  "want root",
	}},
	{"--to", Hint{Flag: `the addresses have no flag, as in "chert proxy ADDR..."`}},
	{"--from", Hint{Flag: "use --listen"}},
	{"proxy_pass reverse_proxy proxypass --proxy handle_proxy", Hint{
		Flag: `"chert proxy ADDR" forwards requests; the sites of --config have proxy`,
		Key:  `want proxy = "127.0.0.1:9000", or the name of an [upstream.NAME]`,
	}},
	{"--upstream upstreams backend backends load_balancing lb_policy least_conn ip_hash", Hint{
		Flag: `"chert proxy ADDR..." has several servers; the file of --config has [upstream.NAME]`,
		Key:  `want [upstream.NAME] with servers and balance, and proxy = "NAME"`,
	}},
	{"fastcgi_pass php_fastcgi uwsgi_pass cgi", both("chert does not speak FastCGI or uwsgi, only HTTP: put a " +
		"server in between that speaks it")},
	{"grpc_pass", Hint{
		Flag: "the file of --config has [upstream.NAME] with protocol",
		Key:  `want [upstream.NAME] with protocol = "h2", and proxy = "NAME"`,
	}},
	{"proxy_set_header header_up", Hint{
		Key: `want request_headers = { NAME = "VALUE" } beside proxy, and proxy_host for Host; X-Forwarded-For, ` +
			"-Proto, -Host and -Port are set without it",
	}},
	{"proxy_read_timeout proxy_connect_timeout proxy_send_timeout dial_timeout", Hint{
		Key: "want connect_timeout, response_timeout or stall_timeout in [upstream.NAME]",
	}},
	{"health_uri health_check health_checks", Hint{
		Key: `want check = "/healthz" in [upstream.NAME]`,
	}},
	{"--basic_auth --htpasswd --users auth basicauth auth_basic auth_basic_user_file username pass password", Hint{
		Flag: "the sites of --config have [site.basic_auth]; --client-ca asks for certificates of clients",
		Key:  `want [site.basic_auth] with users = { NAME = "HASH" } or htpasswd = "FILE"`,
	}},
	{"--jwt auth_jwt jwt_auth bearer oidc auth_jwt_key_file auth_jwt_key_request", Hint{
		Flag: "the sites of --config have [site.jwt]",
		Key:  `want [site.jwt] with jwks = "https://...", issuer and audience`,
	}},
	{"--forward_auth auth_request forwardauth external_auth", Hint{
		Flag: "the sites of --config have [site.forward_auth]",
		Key:  `want [site.forward_auth] with url = "http://127.0.0.1:9091/api/authz/forward-auth"`,
	}},
	{
		"user group",
		both("chert does not change its user; start it as that user, as the systemd unit in docs/deployment.md does"),
	},
	{"--deny --allow whitelist blacklist remote_ip", Hint{
		Flag: "the sites of --config have allow and deny",
		Key:  `want allow = ["10.0.0.0/8"] or deny`,
	}},
	{"satisfy", both("access and authentication must both admit a request; that cannot be changed")},
	{"try_files fallback single_page single", Hint{
		Flag: "use --spa for a single-page app; the sites of --config have try",
		Key:  `want try = ["{path}", "{path}/", "/index.html"], or spa = "index.html" for a single-page app`,
	}},
	{"--try", Hint{Flag: "the sites of --config have try"}},
	{"location locations alias handle handle_path --route routes prefix path_prefix base", Hint{
		Flag: "a folder is served at /; the sites of --config have [[site.route]] for other paths",
		Key:  `want [[site.route]] with path = "/img/{rest...}" and root, proxy, redirect or respond`,
	}},
	{"redir return uri --redirect --redirects --respond", Hint{
		Flag: "the sites of --config have [[site.route]] with redirect or respond, and [[redirect]] is for whole hosts",
		Key:  `want [[site.route]] with redirect or respond; [[redirect]] is for whole hosts`,
	}},
	{"rewrites --rewrite url_rewrite rewriterule rewrite_rule strip_prefix uri_strip_prefix", Hint{
		Flag: "the sites of --config have [[site.rewrite]]",
		Key:  `want [[site.rewrite]] with from = "^/old/(.*)$" and to = "/new/{1}"`,
	}},
	{"--clean_urls cleanurls html_extension trailing_slash", Hint{
		Flag: "the sites of --config have clean_urls",
		Key: "want clean_urls = true: /about is about.html then, and its other forms are redirected to it; a " +
			"folder always has a slash",
	}},
	{"error_page error_pages errordocument handle_errors 404 error --errors", Hint{
		Flag: "use --not-found for 404; the sites of --config have [site.errors] for other statuses",
		Key:  `want [site.errors] with 404 = "404.html", "5xx" or default`,
	}},
	{"default_type", both("a file whose type is not known by its name has one by its content; there is no default")},
	{"maintenance", Hint{
		Flag: "the sites of --config can have [[site.route]] with respond = 503",
		Key:  `want [[site.route]] with path = "/{rest...}", respond = 503 and file`,
	}},
	{"mime add_type addtype --types", Hint{
		Flag: "the sites of --config have types",
		Key:  `want types = { ".foo" = "application/x-foo" }`,
	}},
	{"always proxy_hide_header header_down more_clear_headers", Hint{
		Key: "want [[site.response_headers]] with set, add or remove, and status",
	}},
	{"--headers add_header more_set_headers cache_control= expires add_trailer charset", Hint{
		Flag: "use --header 'PATTERN=NAME: VALUE', or --cache-control",
		Key: `want [[site.rules]] with headers = { Cache-Control = "no-cache" }, or headers of [[site]] for all ` +
			"responses, or [[site.response_headers]] for those with a status",
	}},
	{"cors", Hint{
		Flag: "use --header 'Access-Control-Allow-Origin: *'",
		Key:  `want [[site.rules]] with headers = { Access-Control-Allow-Origin = "*" }`,
	}},
	{"autoindex browse directory_listing dirlist list indexes --listing --no_index", Hint{
		Flag: "folders without an index are listed; --no-listing turns that off",
		Key:  "want listing = true",
	}},
	{"--hidden show_hidden hide exclude --no_dotfiles", Hint{
		Flag: "names that begin with a dot are hidden, and --dotfiles serves them; the sites of --config have hidden",
		Key: `want hidden = ["*.bak"]; names that begin with a dot are hidden without it, and dotfiles = true ` +
			"serves them",
	}},
	{
		"symlinks disable_symlinks",
		Hint{
			Flag: "links inside the folder are followed; the sites of --config have follow for others",
			Key:  `links inside the folder are followed, and with follow = ["/srv/shared"] those that lead into that`,
		},
	},
	{"encode gzip gzip_static gzip_types gzip_vary " +
		"brotli_static brotli zstd compress deflate --compression --precompressed", Hint{
		Flag: "compression is on, with brotli, zstd and gzip; --no-compression and --no-precompressed turn it off",
		Key: "compression is on, with brotli, zstd and gzip; compression = false and precompressed = false " +
			"turn it off",
	}},
	{"log_file logfile access_log accesslog log_format logging customlog --verbose --v", Hint{
		Flag: "use --log combined, which writes to stderr: 2>>access.log; a file of --config can name others",
		Key:  `want log = { file = "access.log", format = "combined" }`,
	}},
	{
		"error_log errorlog log_level loglevel debug",
		both("errors go to stderr, and there are no levels to choose from"),
	},
	{
		"worker_processes workers threads worker_cpu_affinity",
		both("there is one event loop for each processor that Go may use: set GOMAXPROCS in the environment"),
	},
	{"worker_connections maxclients max_connections worker_rlimit_nofile", Hint{
		Flag: "use --max-conns, and raise the limit of open files",
		Key:  "want max_conns, and raise the limit of open files",
	}},
	{"limit_conn limit_conn_zone", Hint{
		Flag: "use --max-conns-per-addr; the sites of --config can have [site.limits] with concurrent",
		Key:  "want max_conns_per_addr, or [site.limits] with concurrent = 20 for requests",
	}},
	{"limit_req limit_req_zone rate_limits ratelimit throttle", Hint{
		Flag: "use --rate-limit 100/s; the sites of --config can have [site.limits] with rate",
		Key:  `want [rate_limit] with limit = "100/s", or [site.limits] with rate = "10/s"`,
	}},
	{"limit_rate limit_rate_after bandwidth_limit --bandwidth", Hint{
		Flag: "the sites of --config can have [site.limits] with bandwidth",
		Key:  `want [site.limits] with bandwidth = "1MB", for each response, and bandwidth_after = "10MB"`,
	}},
	{"client_max_body_size max_body_size request_body", Hint{
		Flag: "the sites of --config can have [site.limits] with body",
		Key:  `want [site.limits] with body = "10MB"`,
	}},
	{
		"upload uploads webdav dav",
		both("chert serve only serves files and takes no uploads"),
	},
	{"keepalive_timeout keepalive --idle_timeout", Hint{
		Flag: "there is no flag for it; the file of --config has idle_timeout",
		Key:  `want idle_timeout = "75s", before the first table`,
	}},
	{"client_header_timeout read_header_timeout --head_timeout", Hint{
		Flag: "there is no flag for it; the file of --config has head_timeout",
		Key:  `want head_timeout = "60s", before the first table`,
	}},
	{"client_body_timeout read_timeout read_body --body_timeout", Hint{
		Flag: "there is no flag for it; the sites of --config can have [site.limits] with body_timeout",
		Key:  `want [site.limits] with body_timeout = "30s", for the whole body`,
	}},
	{"send_timeout write_timeout write --response_timeout", Hint{
		Flag: "there is no flag for it; the sites of --config can have [site.limits] with response_timeout",
		Key: `want [site.limits] with response_timeout = "5m", for the whole response; a client that accepts ` +
			"nothing has 60 s in any case (docs/limits.md)",
	}},
	{"timeouts --timeout", Hint{
		Flag: "the configuration file has head_timeout and idle_timeout, and [site.limits] with body_timeout and " +
			"response_timeout; docs/limits.md has the others. --shutdown-timeout is for the end of the server",
		Key: "the file itself has head_timeout and idle_timeout, and [site.limits] body_timeout and " +
			"response_timeout; docs/limits.md has the others. shutdown_timeout is for the end of the server",
	}},
	{"grace_period", Hint{
		Flag: "use --shutdown-timeout",
		Key:  "want shutdown_timeout",
	}},
	{"--include import includes", Hint{
		Flag: "the file of --config can have include",
		Key:  `want include = ["sites/*.toml"]; what sites have in common belongs in [defaults]`,
	}},
	{
		"vars env",
		both("there are no variables but those of the environment, as ${NAME} in strings of the file"),
	},
	{"set_real_ip_from real_ip_header real_ip_recursive real_ip behind_proxy", Hint{
		Flag: "use --trusted-proxy",
		Key:  "want trusted_proxies",
	}},
	{
		"--proxy_protocol accept_proxy proxyproto",
		Hint{
			Flag: `files of --config have proxy_protocol = ["10.0.0.0/8"] in [[listen]]`,
			Key: `want proxy_protocol = ["10.0.0.0/8"] in [[listen]], with the addresses of the proxies; those that ` +
				"send X-Forwarded-For belong in trusted_proxies",
		},
	},
	{"http2 --protocols", Hint{
		Flag: "HTTP/2 is on over TLS; files of --config have [[listen]] with protocols to turn it off; docs/http2.md",
		Key:  `HTTP/2 is on over TLS; want protocols = ["h1"] in [[listen]] to turn it off; docs/http2.md`,
	}},
	{"quic h3", Hint{Flag: "use --http3; docs/http3.md", Key: "want http3 = true; docs/http3.md"}},
	{"stub_status metrics pprof --health healthcheck --status", Hint{
		Flag: "use --admin 9080: a page, health checks, profiles and /metrics for Prometheus",
		Key:  `want admin = "9080": a page, health checks, profiles and /metrics for Prometheus`,
	}},
	{"daemon pid background", both("chert stays in the foreground; docs/deployment.md has a systemd unit")},
	{"silent s", Hint{Flag: "use --quiet"}},
	{"watch", Hint{Flag: "certificates are loaded again when they change, and the folder or file by SIGHUP"}},
}
