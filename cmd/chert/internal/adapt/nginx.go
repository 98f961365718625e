package adapt

import (
	"fmt"
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

	trusting *directive // set_real_ip_from of the first server whose proxies are trusted
}

// A server is a server block, with where it listens.
type server struct {
	d             *directive
	plain, secure []string
	hosts         []string
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

// share makes an address one with TLS for all servers if it is for one: in nginx it is a property of the address.
func (n *nginx) share() {
	var all []string
	for i := range n.servers {
		all = append(all, n.servers[i].secure...)
	}
	for i := range n.servers {
		s := &n.servers[i]
		bare := len(s.secure) == 0 && !has(s.d.block, "ssl_certificate") && !has(n.outer, "ssl_certificate")
		s.plain = slices.DeleteFunc(s.plain, func(addr string) bool {
			if !slices.Contains(all, addr) {
				return false
			}
			if bare {
				n.note(s.d.line, "%s is with TLS, as of another server, whose certificate nginx uses: chert check "+
					"wants one for this server too", addr)
			}
			s.secure = append(s.secure, addr)
			return true
		})
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

func (n *nginx) server(s *server) {
	out := &site{line: s.d.line, name: "site", hosts: s.hosts}
	n.sites = append(n.sites, out)
	t := &inServer{nginx: n, site: out, root: "html"}
	switch {
	case len(s.secure) == 0:
		t.scheme = "http"
	case len(s.plain) == 0:
		t.scheme = "https"
	}
	t.read(inherit(n.outer, s.d.block))
	n.local(s, out)
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
