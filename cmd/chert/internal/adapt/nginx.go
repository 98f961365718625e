package adapt

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// nginx translates nginx's directives.
type nginx struct {
	*output
	zones   map[string]string // of limit_req_zone: the rate of each
	servers []server
	outer   []directive          // of http, for each server
	blocks  map[string]*upstream // of upstream blocks, by their names there
	quic    bool                 // an address is for HTTP/3
}

// A server is a server block, with where it listens.
type server struct {
	d             *directive
	plain, secure []string
	redirects     bool     // to the same hosts with https, and nothing else
	hosts         []string // nil if redirects
}

// unneeded are directives whose effect chert has by itself, or that tune nginx alone.
var unneeded = strings.Fields(`worker_processes worker_connections worker_rlimit_nofile events user pid daemon
	master_process error_log sendfile tcp_nopush tcp_nodelay types_hash_max_size server_tokens gzip gzip_types gzip_vary
	gzip_min_length gzip_comp_level gzip_proxied gzip_disable gzip_static charset charset_types types_hash_bucket_size
	server_names_hash_bucket_size ssl_session_cache ssl_session_timeout ssl_session_tickets ssl_prefer_server_ciphers
	open_file_cache open_file_cache_valid open_file_cache_min_uses open_file_cache_errors log_not_found etag
	client_body_temp_path proxy_temp_path fastcgi_temp_path uwsgi_temp_path scgi_temp_path client_header_buffer_size
	large_client_header_buffers http2 multi_accept use aio directio output_buffers log_format
	reset_timedout_connection limit_req_status limit_conn_status msie_padding absolute_redirect http3 quic_gso
	quic_retry quic_host_key quic_active_connection_id_limit ssl_session_ticket_key`)

func (n *nginx) top(all []directive) {
	for i := range all {
		d := &all[i]
		switch {
		case d.name() == "http" || d.name() == "events" && d.block != nil:
			if d.name() == "http" {
				n.top(d.block)
			}
		case d.name() == "server" && d.block != nil:
			spaced(d.block)
			n.servers = append(n.servers, server{d: d})
		case d.name() == "limit_req_zone":
			n.zone(d)
		case d.name() == "upstream" && d.block != nil:
			n.upstream(d)
		case d.name() == "map" && d.arg(0) == "$http_upgrade" && d.arg(1) == "$connection_upgrade":
		case slices.Contains(proxied, d.name()):
			n.outer = append(n.outer, *d)
		case slices.Contains(untouched, d.name()):
		case d.name() == "include" && strings.HasSuffix(d.arg(0), "mime.types"), slices.Contains(unneeded, d.name()):
		case slices.Contains([]string{"root", "add_header", "autoindex", "set_real_ip_from", "real_ip_header",
			"real_ip_recursive", "client_max_body_size", "access_log", "keepalive_timeout", "ssl_protocols",
			"ssl_certificate", "ssl_certificate_key", "allow", "deny", "auth_basic", "auth_basic_user_file", "index",
			"error_page", "limit_req", "types", "default_type", "ssl_client_certificate", "ssl_trusted_certificate",
			"ssl_verify_client"}, d.name()), isGuard(d):
			n.outer = append(n.outer, *d)
		default:
			n.unknown(d)
		}
	}
	if len(all) == 0 || n.sites != nil {
		return
	}
	n.all()
}

// spaced gives locations such as =/path two words, as those with a space have.
func spaced(block []directive) {
	for i := range block {
		d := &block[i]
		if d.name() == "location" && len(d.words) == 2 {
			for _, how := range []string{"=", "^~", "~*", "~"} {
				if path, ok := strings.CutPrefix(d.arg(0), how); ok && path != "" {
					d.words = []string{d.name(), how, path}
					break
				}
			}
		}
		spaced(d.block)
	}
}

// all translates the servers, when all are known.
func (n *nginx) all() {
	for i := range n.servers {
		n.addresses(&n.servers[i])
	}
	var plain, secure []string
	for _, s := range n.servers {
		secure = append(secure, s.secure...)
	}
	for i := range n.servers {
		s := &n.servers[i]
		if s.redirects = len(secure) > 0 && n.redirectsToTLS(s); !s.redirects {
			s.hosts = n.hosts(s)
			plain = append(plain, s.plain...)
		}
	}
	plain, secure = unique(plain), unique(secure)
	switch {
	case len(secure) == 0:
		n.listen = plain
	case len(plain) == 0:
		n.listen = secure
	}
	for i := range n.servers {
		n.server(&n.servers[i])
	}
	if n.quic {
		n.head = append(n.head, "http3 = true")
	}
	if len(secure) > 0 && len(plain) > 0 { // tables, after all other keys
		for _, addr := range secure {
			n.head = append(n.head, "[[listen]]", "address = "+quote(addr))
		}
		for _, addr := range plain {
			n.head = append(n.head, "[[listen]]", "address = "+quote(addr), "tls = false")
		}
	}
}

func unique(all []string) (out []string) {
	for _, s := range all {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// addresses reads where a server listens.
func (n *nginx) addresses(s *server) {
	for i := range s.d.block {
		d := &s.d.block[i]
		if d.name() != "listen" {
			continue
		}
		addr := strings.Replace(d.arg(0), "[::]:", ":", 1)
		addr = strings.Replace(addr, "*:", ":", 1)
		if _, ok := number(addr); ok {
			addr = ":" + addr
		} else if !strings.Contains(addr, ":") {
			addr += ":80"
		}
		secure := false
		for _, option := range d.words[min(2, len(d.words)):] {
			switch option {
			case "ssl":
				secure = true
			case "proxy_protocol":
				n.note(d.line, "listen ... proxy_protocol is left out: want proxy_protocol in [[listen]], with the "+
					"addresses of the proxies")
			case "quic":
				secure, n.quic = true, true // on the port of TCP, of which there is to be one
			}
		}
		if secure {
			s.secure = append(s.secure, addr)
		} else {
			s.plain = append(s.plain, addr)
		}
	}
	if len(s.plain)+len(s.secure) == 0 {
		s.plain = []string{":80"}
	}
}

// redirectsToTLS reports whether a server does nothing but redirect to the same host with https, or to one host of its
// own.
func (n *nginx) redirectsToTLS(s *server) bool {
	if len(s.secure) > 0 {
		return false
	}
	var names, redirected []string
	var to *directive
	for i := range s.d.block {
		d := &s.d.block[i]
		switch {
		case d.name() == "server_name":
			names = append(names, d.words[1:]...)
		case d.name() == "return" && to == nil:
			to = d
		case d.name() == "if":
			redirected = append(redirected, hostToTLS(d))
		}
	}
	if slices.Equal(slices.Sorted(slices.Values(unique(names))), slices.Sorted(slices.Values(unique(redirected)))) &&
		len(names) > 0 {
		if to != nil {
			n.note(to.line, "return of other hosts is left out: http_redirect redirects all")
		}
		return true
	}
	if to == nil {
		return false
	}
	host, ok := strings.CutPrefix(to.arg(1), "https://")
	host, all := strings.CutSuffix(host, "$request_uri")
	host = strings.TrimSuffix(host, ":443")
	switch {
	case !ok || !all:
		return false
	case host == "$host" || host == "$http_host" || host == "$server_name":
		return true
	case !slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(strings.TrimPrefix(name, "."), host)
	}):
		return false
	}
	if len(names) > 1 || names[0] != host {
		n.note(to.line, "all is redirected to %s here; http_redirect leaves the host as it is", host)
	}
	return true
}

// hostToTLS returns the host that an if redirects to https, as those that Certbot writes do; "" for another if.
func hostToTLS(d *directive) string {
	if len(d.words) != 4 || d.arg(0) != "($host" || d.arg(1) != "=" || len(d.block) != 1 {
		return ""
	}
	host, closed := strings.CutSuffix(d.arg(2), ")")
	only := &d.block[0]
	if !closed || only.name() != "return" || !slices.Contains([]string{"https://$host$request_uri",
		"https://" + host + "$request_uri"}, only.arg(1)) {
		return ""
	}
	return host
}

// hosts reads server_name, and default_server of listen.
func (n *nginx) hosts(s *server) (hosts []string) {
	for i := range s.d.block {
		d := &s.d.block[i]
		if d.name() == "listen" && slices.Contains(d.words, "default_server") {
			hosts = append(hosts, "*")
		}
		if d.name() != "server_name" {
			continue
		}
		for _, name := range d.words[1:] {
			switch {
			case name == "_" || name == "":
				hosts = append(hosts, "*")
			case strings.HasPrefix(name, "~") || strings.HasSuffix(name, ".*"):
				n.note(d.line, "server_name %s is left out: hosts are names, and \"*.\" before one", name)
			case strings.HasPrefix(name, "."):
				hosts = append(hosts, name[1:], "*"+name)
			default:
				hosts = append(hosts, name)
			}
		}
	}
	if hosts = unique(hosts); len(hosts) == 0 {
		hosts = []string{"*"}
	}
	return hosts
}

func (n *nginx) server(s *server) {
	if s.redirects {
		if n.redirect != "" && !slices.Contains(s.plain, n.redirect) {
			n.note(s.d.line, "redirects to https from several addresses; http_redirect is one")
		}
		n.redirect = s.plain[0]
		return
	}
	out := &site{line: s.d.line, name: "site", hosts: s.hosts}
	n.sites = append(n.sites, out)
	n.claim(out, len(s.secure) > 0)
	t := &inServer{nginx: n, site: out, root: "html"}
	t.read(inherit(n.outer, s.d.block))
	n.local(s, out)
}

// local keeps a site from clients of other machines if its server listens for this one only, unlike others: chert
// serves every site on every address.
func (n *nginx) local(s *server, out *site) {
	own := slices.Concat(s.plain, s.secure)
	public := func(addr string) bool { return addr == ":80" || addr == ":443" }
	if slices.ContainsFunc(own, public) || !slices.ContainsFunc(n.servers, func(o server) bool {
		return !o.redirects && slices.ContainsFunc(slices.Concat(o.plain, o.secure), func(addr string) bool {
			return !slices.Contains(own, addr)
		})
	}) {
		return
	}
	n.note(s.d.line, "%s is served on the addresses of other servers too: every site is on all",
		strings.Join(s.hosts, " "))
	var clients []string
	for _, addr := range own {
		host, _, _ := net.SplitHostPort(addr)
		ip, _ := netip.ParseAddr(host)
		switch {
		case strings.HasPrefix(addr, "unix:"):
			clients = append(clients, "unix")
		case ip.IsLoopback() || host == "localhost":
			clients = append(clients, "127.0.0.0/8", "::1")
		default:
			return
		}
	}
	if out.name == "site" && !hasKey(out.keys, "allow") {
		n.note(s.d.line, "only clients of this machine are admitted to it")
		out.key("allow", list(unique(clients)))
	}
}

// claim removes hosts that another server has: one that is encrypted, unless s is, or an earlier one.
func (n *nginx) claim(s *site, encrypted bool) {
	s.hosts = slices.DeleteFunc(s.hosts, func(h string) bool {
		if !encrypted && slices.ContainsFunc(n.servers, func(o server) bool {
			return len(o.secure) > 0 && slices.Contains(o.hosts, h)
		}) {
			n.note(s.line, "host %s has a server with TLS, which is for requests without TLS too: this one is left "+
				"out", h)
			return true
		}
		for _, other := range n.sites {
			if other != s && slices.Contains(other.hosts, h) {
				n.note(s.line, "host %s has a server already", h)
				return true
			}
		}
		return false
	})
	if len(s.hosts) == 0 {
		n.sites = slices.DeleteFunc(n.sites, func(o *site) bool { return o == s })
	}
}

// zone reads limit_req_zone.
func (n *nginx) zone(d *directive) {
	name, rate := "", ""
	for _, w := range d.words[1:] {
		if v, ok := strings.CutPrefix(w, "zone="); ok {
			name, _, _ = strings.Cut(v, ":")
		}
		if v, ok := strings.CutPrefix(w, "rate="); ok {
			rate = strings.Replace(strings.Replace(v, "r/", "/", 1), "//", "/", 1)
		}
	}
	if key := d.arg(0); key != "$binary_remote_addr" && key != "$remote_addr" || name == "" || rate == "" {
		n.note(d.line, "limit_req_zone is left out: limits are for each client's address")
		return
	}
	n.zones[name] = rate
}

// rate reads limit_req, as a limit of chert.
func (n *nginx) rate(d *directive) (limit string, ok bool) {
	zone, burst, nodelay := "", 0, false
	for _, w := range d.words[1:] {
		switch {
		case strings.HasPrefix(w, "zone="):
			zone = w[len("zone="):]
		case strings.HasPrefix(w, "burst="):
			burst, _ = number(w[len("burst="):])
		case w == "nodelay":
			nodelay = true
		}
	}
	rate := n.zones[zone]
	if rate == "" {
		n.note(d.line, "limit_req is left out: the zone %q is not known", zone)
		return "", false
	}
	if burst > 0 && !nodelay {
		n.note(d.line, "limit_req delays requests within its burst; chert serves them at once")
	}
	// nginx admits one request and burst more at once.
	return fmt.Sprintf("%s burst %d", rate, burst+1), true
}

// join is the path of a file below a root.
func join(root, name string) string {
	if joined := path.Join(root, name); !strings.HasPrefix(root, "../") || strings.HasPrefix(joined, "..") {
		return joined
	}
	return root + "/" + name
}
