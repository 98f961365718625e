package adapt

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// proxied are directives of http, server and location about what is forwarded, without proxy_pass.
var proxied = strings.Fields(`proxy_set_header proxy_read_timeout proxy_send_timeout proxy_connect_timeout
	proxy_next_upstream proxy_redirect proxy_hide_header proxy_ssl_name proxy_ssl_trusted_certificate
	proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_verify proxy_cache_bypass`)

// untouched are those whose effect chert has by itself, or that tune nginx alone.
var untouched = strings.Fields(`proxy_http_version proxy_buffering proxy_buffers proxy_buffer_size
	proxy_busy_buffers_size proxy_request_buffering proxy_max_temp_file_size proxy_temp_file_write_size
	proxy_socket_keepalive proxy_headers_hash_max_size proxy_headers_hash_bucket_size proxy_ssl_server_name
	proxy_ssl_session_reuse proxy_ssl_verify_depth proxy_pass_request_headers proxy_pass_request_body proxy_pass_header
	proxy_next_upstream_tries proxy_next_upstream_timeout proxy_ignore_client_abort`)

// set returns the directives of a name that hold for a location: its own, or those outside of it if it has
// none.
func (t *inServer) set(d *directive, name string) (all []*directive) {
	for _, block := range [][]directive{d.block, t.around} {
		for i := range block {
			if block[i].name() == name {
				all = append(all, &block[i])
			}
		}
		if len(all) > 0 {
			break
		}
	}
	return all
}

// forward translates proxy_pass of a location d whose path is a prefix, or exact. It returns false if that
// cannot be.
func (t *inServer) forward(d *directive, pass *directive, exact bool, path string, l *level) bool {
	key, table, prefix := l.key, l.table, l.name
	to, ok := parseTarget(pass.arg(0))
	if !ok {
		t.note(pass.line, "proxy_pass %s is left out: want proxy with an address, or the name of an upstream",
			pass.arg(0))
		return false
	}
	folders := strings.HasSuffix(path, "/")
	if exact && to.uri != "" && to.uri != path || !exact && to.uri != "" && folders != strings.HasSuffix(to.uri, "/") {
		t.note(pass.line, "proxy_pass %s is left out: its path replaces that of the location, and only one of the two "+
			"ends in a slash", pass.arg(0))
		return false
	}
	u := t.blocks[to.name]
	own := t.upstreamKeys(d, to.secure)
	switch {
	case u == nil && len(own) == 0:
		scheme := ""
		if to.secure {
			scheme = "https://"
		}
		key("proxy", quote(scheme+to.addr))
	default:
		if u == nil {
			u = t.upstreamOf(to, own)
		}
		if u.used && !slices.Equal(u.keys, merged(u.keys, own)) {
			t.note(d.line, "upstream %s has several times or kinds of TLS; the first are used", u.name)
		} else {
			u.keys = merged(u.keys, own)
		}
		u.used = true
		key("proxy", quote(u.name))
	}
	if !exact && to.uri != "" && path != to.uri {
		switch {
		case to.uri == "/" && t.redirectsBelow(d, path):
			key("strip", "true")
		case folders:
			table("["+prefix+".rewrite]", moved(path, to.uri)...)
		default:
			table("["+prefix+".rewrite]", moved(path+"/", to.uri+"/")...)
			table("["+prefix+".rewrite]", "from = "+quote("^"+regexp.QuoteMeta(path)+"$"), "to = "+quote(to.uri))
		}
	}
	t.requestFields(d, to, key)
	for _, in := range t.set(d, "proxy_hide_header") {
		l.hidden = append(l.hidden, http.CanonicalHeaderKey(in.arg(0)))
	}
	l.inherited = !has(d.block, "add_header")
	if t.set(d, "client_max_body_size") == nil {
		key("limits.body", quote("1MiB")) // nginx's default, of which files need none
	}
	for _, in := range t.set(d, "proxy_redirect") {
		switch from := in.arg(0); {
		case from == "off" || from == "default":
		case hasOnly(in, "/", path) && to.uri == "/" && !exact:
			t.note(in.line, "proxy_redirect is strip = true here, with which the paths of cookies get %s too", path)
		default:
			t.note(in.line, "proxy_redirect is left out: Location stays as it is, or with strip = true gets the path "+
				"of the route back")
		}
	}
	for _, in := range slices.Concat(t.set(d, "proxy_pass_request_headers"), t.set(d, "proxy_pass_request_body")) {
		if in.arg(0) == "off" {
			t.unknown(in)
		}
	}
	for _, in := range t.set(d, "proxy_cache_bypass") {
		if in.arg(0) != "$http_upgrade" {
			t.unknown(in)
		}
	}
	return true
}

// redirectsBelow reports whether proxy_redirect puts the path of the location before that of a Location, as strip does.
// Without it nginx leaves one without a host alone, which may have the path already.
func (t *inServer) redirectsBelow(d *directive, path string) bool {
	return slices.ContainsFunc(t.set(d, "proxy_redirect"), func(in *directive) bool { return hasOnly(in, "/", path) })
}

// hasOnly reports whether a directive has some arguments and no others.
func hasOnly(d *directive, args ...string) bool { return slices.Equal(d.words[1:], args) }

// moved are the lines of a rewrite of all that begins with a path, which gets another beginning.
func moved(path, to string) []string {
	return []string{"from = " + quote("(?s)^"+regexp.QuoteMeta(path)+"(.*)$"), "to = " + quote(to+"{1}")}
}

// merged returns keys with those of own added.
func merged(keys, own []string) []string {
	all := slices.Clone(keys)
	for _, line := range own {
		name, _, _ := strings.Cut(line, " = ")
		if !slices.ContainsFunc(all, func(l string) bool { return strings.HasPrefix(l, name+" = ") }) {
			all = append(all, line)
		} else if !slices.Contains(all, line) {
			return append(all, line) // so that they differ
		}
	}
	return all
}

// upstreamOf returns an upstream of one address, with some keys.
func (t *inServer) upstreamOf(to target, own []string) *upstream {
	servers := []string{quote(to.addr)}
	for _, u := range t.upstreams {
		if slices.Equal(u.servers, servers) && slices.Equal(u.keys, own) {
			return u
		}
	}
	u := t.newUpstream(to.name)
	u.servers = servers
	return u
}

// upstreamKeys returns what a location says about the upstream.
func (t *inServer) upstreamKeys(d *directive, secure bool) (keys []string) {
	add := func(key, value string) { keys = withKey(keys, key, value) }
	for _, name := range []string{"proxy_connect_timeout", "proxy_send_timeout", "proxy_read_timeout"} {
		for _, in := range t.set(d, name) {
			v, ok := nginxTime(in.arg(0))
			switch {
			case !ok:
				t.unknown(in)
			case name == "proxy_connect_timeout":
				add("connect_timeout", quote(v))
			case name == "proxy_send_timeout":
				if !slices.ContainsFunc(t.set(d, "proxy_read_timeout"), func(*directive) bool { return true }) {
					add("stall_timeout", quote(v))
				}
			default:
				add("response_timeout", quote(v))
				add("stall_timeout", quote(v))
			}
		}
	}
	for _, in := range t.set(d, "proxy_next_upstream") {
		var retry []string
		for _, w := range in.words[1:] {
			switch w {
			case "off":
				add("retry", "false")
			case "timeout":
				retry = append(retry, "timeouts")
			case "http_502", "http_503", "http_504":
				retry = append(retry, "statuses")
			case "error", "invalid_header":
			default:
				t.note(in.line, "proxy_next_upstream %s is left out: requests are tried again where that is safe, and "+
					"where retry says", w)
			}
		}
		if len(retry) > 0 {
			add("retry", list(unique(retry)))
		}
	}
	if !secure {
		return keys
	}
	verified := false
	for _, k := range [][2]string{{"proxy_ssl_trusted_certificate", "ca"}, {"proxy_ssl_name", "tls_name"},
		{"proxy_ssl_certificate", "tls_cert"}, {"proxy_ssl_certificate_key", "tls_key"}} {
		for _, in := range t.set(d, k[0]) {
			if strings.Contains(in.arg(0), "$") {
				t.unknown(in)
				continue
			}
			add("tls", "true")
			add(k[1], quote(in.arg(0)))
		}
	}
	for _, in := range t.set(d, "proxy_ssl_verify") {
		verified = in.arg(0) == "on"
	}
	if !verified {
		t.note(d.line, "certificates of https upstreams are verified, which nginx does with proxy_ssl_verify only: "+
			"want ca for those that the system does not trust")
	}
	if len(keys) > 0 {
		add("tls", "true")
	}
	return keys
}

// implied are fields that chert sets by itself, with the variables that mean the same.
var implied = map[string][]string{
	"x-real-ip":         {"$remote_addr", "$realip_remote_addr"},
	"x-forwarded-for":   {"$proxy_add_x_forwarded_for", "$remote_addr"},
	"x-forwarded-proto": {"$scheme"},
	"x-forwarded-host":  {"$host", "$http_host"},
	"x-forwarded-port":  {"$server_port"},
	"upgrade":           {"$http_upgrade"},
	"connection":        {"upgrade", "Upgrade", "$connection_upgrade", "$http_connection", "", "keep-alive", "close"},
}

// requestFields translates proxy_set_header.
func (t *inServer) requestFields(d *directive, to target, key func(key, value string)) {
	host := to.name
	var fields, names []string
	for _, in := range t.set(d, "proxy_set_header") {
		name, value := in.arg(0), in.arg(1)
		lower := strings.ToLower(name)
		switch {
		case lower == "host":
			switch value {
			case "$host", "$http_host", "$host:$server_port":
				host = ""
			case "$proxy_host":
			default:
				if strings.ContainsAny(value, "$ \t") || value == "" {
					t.note(in.line, "proxy_set_header Host is left out: want proxy_host")
					continue
				}
				host = value
			}
		case slices.Contains(implied[lower], value):
		case !fieldName(name):
			t.unknown(in)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '$' }):
			t.note(in.line, "proxy_set_header %s has no fixed value; the field is removed, so that no client can "+
				"set it", name)
			value = ""
			fallthrough
		default:
			if slices.Contains(names, lower) {
				t.note(in.line, "proxy_set_header %s is there twice", name)
				continue
			}
			names = append(names, lower)
			fields = append(fields, quote(name)+" = "+quote(value))
		}
	}
	if host == to.name && !slices.ContainsFunc(t.set(d, "proxy_redirect"), func(in *directive) bool {
		return hasOnly(in, "off")
	}) {
		t.note(passes(d.block).line, "a Location that begins with the address of proxy_pass stays as it is, where "+
			"nginx replaces that: want proxy_set_header Host $host, so that the application does not use it")
	}
	if host != "" {
		if strings.ContainsFunc(host, func(r rune) bool {
			return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/?#@"'<>\`, r)
		}) {
			t.note(d.line, "the host %s cannot be one", host)
		} else {
			key("proxy_host", quote(host))
		}
	}
	if len(fields) > 0 {
		key("request_headers", "{ "+strings.Join(fields, ", ")+" }")
	}
}
