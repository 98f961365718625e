package adapt

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// pathOf translates a matcher of a path: "/x" is exact, "/x/*" all below it. prefix is what handle_path cuts off.
func pathOf(matcher string) (pattern string, below, ok bool) {
	rest, below := strings.CutSuffix(matcher, "*")
	if !strings.HasPrefix(rest, "/") || strings.ContainsAny(rest, "*?{}\" \\%#") {
		return "", false, false
	}
	if !below {
		if strings.HasSuffix(rest, "/") {
			rest += "{$}"
		}
		return rest, false, true
	}
	if !strings.HasSuffix(rest, "/") {
		rest += "/"
	}
	return rest + "{path...}", true, true
}

// reverseProxy translates reverse_proxy of a site.
func (c *caddy) reverseProxy(s *site, d *directive, args []string) {
	if len(args) > 0 && (strings.HasPrefix(args[0], "/") || strings.HasPrefix(args[0], "@")) {
		pattern, below, ok := pathOf(args[0])
		if !ok {
			c.note(d.line, "reverse_proxy %s is left out: want [[site.route]] with a path and proxy", args[0])
			c.unserved(s, d, "/{path...}")
			return
		}
		if below && !strings.HasSuffix(args[0], "/*") {
			c.note(d.line, "%s is for all that begins with it; the route is for %s and below", args[0], pattern)
		}
		r := new(route)
		r.key("path", quote(pattern))
		if !c.forward(d, args[1:], r.key, r.table, "site.route") {
			r.key("respond", "502")
		}
		s.routes = append(s.routes, r)
		return
	}
	if !c.forward(d, args, s.key, s.table, "site") {
		c.unserved(s, d, "/{path...}")
	}
}

// everything reports whether a route is for all that no other is for.
func (r *route) everything() bool { return slices.Contains(r.keys, `path = "/{path...}"`) }

// unserved is for what Caddy forwards, and chert cannot: nothing else is to answer it.
func (c *caddy) unserved(s *site, d *directive, pattern string) {
	r := new(route)
	r.key("path", quote(pattern))
	r.key("respond", "502")
	s.routes = append(s.routes, r)
}

// handle translates blocks for a path with one reverse_proxy, and nothing else that matters.
func (c *caddy) handle(s *site, d *directive, args []string) {
	cut := d.name() == "handle_path"
	pattern, below, ok := "", true, len(args) == 0 && !cut
	if len(args) == 1 {
		pattern, below, ok = pathOf(args[0])
	}
	var proxy *directive
	guarded := false
	for i := range d.block {
		in := &d.block[i]
		switch {
		case in.name() == "reverse_proxy" && proxy == nil && (len(in.words) < 2 || in.words[1] != "" &&
			!strings.ContainsAny(in.words[1][:1], "/@")):
			proxy = in
		case in.name() == "encode":
		default:
			c.unknown(in)
			guarded = true
		}
	}
	if !ok || proxy == nil {
		if proxy == nil && !guarded {
			return
		}
		c.note(d.line, "%s is left out: want [[site.route]] with a path", d.name())
		if pattern == "" {
			pattern = "/{path...}"
		}
		c.unserved(s, d, pattern)
		return
	}
	key, table, prefix := s.key, s.table, "site"
	var r *route
	if pattern != "" {
		r = new(route)
		r.key("path", quote(pattern))
		key, table, prefix = r.key, r.table, "site.route"
		s.routes = append(s.routes, r)
	}
	proxyArgs := proxy.words[1:]
	if len(proxyArgs) > 0 && proxyArgs[0] == "*" {
		proxyArgs = proxyArgs[1:]
	}
	if done := c.forward(proxy, proxyArgs, key, table, prefix); !done && r == nil {
		c.unserved(s, d, "/{path...}")
		return
	} else if !done {
		r.key("respond", "502")
	} else if cut && below {
		r.key("strip", "true")
	} else if cut {
		c.note(d.line, "handle_path of one path is left out: want [[site.route.rewrite]]")
	}
	if guarded {
		c.note(d.line, "%s has what says who may have it, or changes it, so nobody may: deny is \"all\"", d.name())
		key("deny", list([]string{"all"}))
	}
}

// policies are those of lb_policy.
var policies = map[string]string{"random": "least", "random_choose": "least", "least_conn": "least",
	"round_robin": "round-robin", "weighted_round_robin": "round-robin", "ip_hash": "hash client",
	"client_ip_hash": "hash client",
	"uri_hash":       "hash uri", "first": "least"}

// forward translates the upstreams and options of a reverse_proxy. It returns false if that cannot be.
func (c *caddy) forward(d *directive, args []string, key func(key, value string),
	table func(name string, lines ...string), prefix string) bool {
	u := &upstream{}
	var addrs []string
	secure, h2 := false, false
	add := func(text string) bool {
		addr, tls, prior, ok := caddyAddress(text)
		if !ok {
			c.note(d.line, "reverse_proxy %s is left out: want an address and a port", text)
			return false
		}
		secure, h2 = secure || tls, h2 || prior
		if !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
		return true
	}
	for _, text := range args {
		if !add(text) {
			return false
		}
	}
	o := &caddyProxy{caddy: c, u: u, key: key, table: table, prefix: prefix}
	for i := range d.block {
		in := &d.block[i]
		if in.name() == "to" {
			for _, text := range in.words[1:] {
				if !add(text) {
					return false
				}
			}
			continue
		}
		o.option(in)
	}
	if len(addrs) == 0 {
		c.note(d.line, "reverse_proxy has no upstream, and is left out")
		return false
	}
	if secure || o.secure {
		u.keys = append([]string{"tls = true"}, u.keys...)
	}
	if h2 {
		u.key("protocol", quote("h2"))
	}
	for i, addr := range addrs {
		switch {
		case o.first && i > 0:
			u.servers = append(u.servers, "{ addr = "+quote(addr)+", backup = true }")
		case i < len(o.weights):
			u.servers = append(u.servers, "{ addr = "+quote(addr)+", weight = "+o.weights[i]+" }")
		default:
			u.servers = append(u.servers, quote(addr))
		}
	}
	if slices.ContainsFunc(o.check, func(line string) bool { return strings.HasPrefix(line, "path = ") }) {
		u.tables = append(u.tables, "[upstream.NAME.check]\n"+strings.Join(o.check, "\n"))
	}
	if len(o.fields) > 0 {
		key("request_headers", "{ "+strings.Join(o.fields, ", ")+" }")
	}
	only := len(addrs) == 1 && len(u.tables) == 0
	switch {
	case only && len(u.keys) == 0:
		key("proxy", quote(addrs[0]))
	case only && slices.Equal(u.keys, []string{"tls = true"}):
		key("proxy", quote("https://"+addrs[0]))
	default:
		named := c.newUpstream(strings.TrimPrefix(addrs[0], "unix:/"))
		named.servers, named.keys, named.used = u.servers, u.keys, true
		for _, t := range u.tables {
			named.tables = append(named.tables, strings.Replace(t, "NAME", named.name, 1))
		}
		key("proxy", quote(named.name))
	}
	return true
}

// caddyAddress translates an address of Caddy.
func caddyAddress(s string) (addr string, secure, h2, ok bool) {
	port := "80"
	switch scheme, rest, found := strings.Cut(s, "://"); {
	case !found:
	case scheme == "https":
		s, secure, port = rest, true, "443"
	case scheme == "h2c":
		s, h2 = rest, true
	case scheme == "http":
		s = rest
	default:
		return "", false, false, false
	}
	if path, unix := strings.CutPrefix(s, "unix/"); unix {
		return "unix:" + path, secure, h2, strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "{}\"|")
	}
	if strings.HasPrefix(s, ":") {
		s = "127.0.0.1" + s
	}
	addr, ok = withPort(s, port)
	return addr, secure, h2, ok
}

// caddyProxy reads the options of a reverse_proxy.
type caddyProxy struct {
	*caddy
	u       *upstream
	key     func(key, value string)
	table   func(name string, lines ...string)
	prefix  string
	secure  bool
	first   bool // lb_policy first: the others are backups
	weights []string
	check   []string // lines
	fields  []string
}

func (o *caddyProxy) option(d *directive) {
	v := d.arg(0)
	switch d.name() {
	case "lb_policy":
		o.policy(d, v)
	case "health_uri":
		if !strings.HasPrefix(v, "/") || strings.ContainsAny(v, "{} ") {
			o.unknown(d)
			return
		}
		o.check = withKey(o.check, "path", quote(v))
	case "health_interval", "health_timeout", "dial_timeout":
		t, ok := caddyTime(v)
		switch {
		case !ok:
			o.unknown(d)
		case d.name() == "dial_timeout":
			o.u.key("connect_timeout", quote(t))
		default:
			o.check = withKey(o.check, strings.TrimPrefix(d.name(), "health_"), quote(t))
		}
	case "health_status":
		if n, ok := number(v); ok && n >= 200 && n <= 599 {
			o.check = withKey(o.check, "status", v)
		} else if v != "2xx" {
			o.unknown(d)
		}
	case "header_up":
		o.headerUp(d)
	case "header_down":
		o.headerDown(d)
	case "flush_interval", "lb_try_duration", "lb_try_interval", "lb_retries", "fail_duration", "max_fails",
		"stream_close_delay", "buffer_requests", "request_buffers":
		// What chert does by itself, with times of its own.
	case "transport":
		o.transport(d)
	default:
		o.unknown(d)
	}
}

func (o *caddyProxy) policy(d *directive, v string) {
	balance := policies[v]
	name := d.arg(1)
	plain := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	switch {
	case v == "cookie" && name == "":
		balance = "sticky"
	case v == "cookie" && plain:
		balance = "sticky " + name
	case (v == "header" || v == "query") && plain:
		balance = "hash " + v + ":" + name
	}
	o.first = v == "first"
	if v == "weighted_round_robin" {
		for _, w := range d.words[2:] {
			if n, ok := number(w); ok && n <= 100 {
				o.weights = append(o.weights, strconv.Itoa(n))
			}
		}
	}
	switch balance {
	case "":
		o.unknown(d)
	case "least":
	default:
		o.u.key("balance", quote(balance))
	}
}

// headerUp translates a field of requests: Host, and fixed values. "-NAME" removes one.
func (o *caddyProxy) headerUp(d *directive) {
	name, value := d.arg(0), d.arg(1)
	lower := strings.ToLower(name)
	removed, remove := strings.CutPrefix(name, "-")
	switch {
	case lower == "host" && (value == "{upstream_hostport}" || value == "{http.reverse_proxy.upstream.hostport}"):
		o.key("proxy_host", quote("upstream"))
	case lower == "host" && (value == "{host}" || value == "{http.request.host}"):
	case lower == "host" && value != "" && !strings.ContainsAny(value, "{} /?#@\"'<>\\"):
		o.key("proxy_host", quote(value))
	case slices.Contains([]string{"x-forwarded-for", "x-real-ip", "x-forwarded-proto", "x-forwarded-host"}, lower) &&
		slices.Contains([]string{"{remote_host}", "{http.request.remote.host}", "{client_ip}", "{scheme}", "{host}"},
			value):
	case remove && fieldName(removed) && value == "":
		o.field(removed, "")
	case lower != "host" && fieldName(name) && !strings.Contains(value, "{") && len(d.words) == 3:
		o.field(name, value)
	case lower != "host" && fieldName(strings.TrimLeft(name, "+?>")):
		name = strings.TrimLeft(name, "+?>")
		o.note(d.line, "header_up %s has no fixed value; the field is removed, so that no client can set it", name)
		o.field(name, "")
	default:
		o.unknown(d)
	}
}

// field adds one of requests; the last one of a name counts.
func (o *caddyProxy) field(name, value string) {
	o.fields = withKey(o.fields, quote(http.CanonicalHeaderKey(name)), quote(value))
}

// headerDown translates a field of responses.
func (o *caddyProxy) headerDown(d *directive) {
	name, value := d.arg(0), d.arg(1)
	if removed, ok := strings.CutPrefix(name, "-"); ok && fieldName(removed) && value == "" {
		o.table("["+o.prefix+".response_headers]", "remove = "+quote(removed))
	} else if fieldName(name) && !strings.Contains(value, "{") && len(d.words) == 3 {
		o.table("["+o.prefix+".response_headers]", "set = { "+quote(name)+" = "+quote(value)+" }")
	} else {
		o.unknown(d)
	}
}

// framing are fields that belong to a connection or a message.
var framing = []string{"connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "keep-alive",
	"host", "proxy-connection", "content-encoding"}

func fieldName(s string) bool {
	return s != "" && !slices.Contains(framing, strings.ToLower(s)) && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// transport translates the block of transport http.
func (o *caddyProxy) transport(d *directive) {
	if d.arg(0) != "http" {
		o.unknown(d)
		return
	}
	for i := range d.block {
		in := &d.block[i]
		v := in.arg(0)
		t, isTime := caddyTime(v)
		switch {
		case in.name() == "tls":
			o.secure = true
		case in.name() == "tls_server_name" && v != "" && !strings.ContainsAny(v, "{}:/ \"\\"):
			o.secure = true
			o.u.key("tls_name", quote(v))
		case in.name() == "dial_timeout" && isTime:
			o.u.key("connect_timeout", quote(t))
		case in.name() == "response_header_timeout" && isTime:
			o.u.key("response_timeout", quote(t))
		case in.name() == "read_timeout" && isTime:
			o.u.key("stall_timeout", quote(t))
		case in.name() == "keepalive" && isTime:
			o.u.key("idle_timeout", quote(t))
		case in.name() == "versions" && slices.Equal(in.words[1:], []string{"h2c"}):
			o.u.key("protocol", quote("h2"))
		case in.name() == "tls_insecure_skip_verify":
			o.secure = true
			o.note(in.line, "tls_insecure_skip_verify is left out: want ca with the certificate of the upstream")
		default:
			o.unknown(in)
		}
	}
}

// caddyTime translates a time such as "10s".
func caddyTime(s string) (string, bool) {
	if strings.TrimRight(s, "0123456789") == "" {
		return "", false
	}
	return nginxTime(s)
}
