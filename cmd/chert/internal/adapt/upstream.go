package adapt

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// An upstream is an [upstream.NAME].
type upstream struct {
	name    string
	servers []string // as they are written in a list of TOML
	keys    []string
	tables  []string
	used    bool
}

func (u *upstream) key(key, value string) { u.keys = withKey(u.keys, key, value) }

func (u *upstream) write(b *strings.Builder) {
	b.WriteString("\n[upstream." + u.name + "]\n")
	b.WriteString("servers = [" + strings.Join(u.servers, ", ") + "]\n")
	for _, line := range u.keys {
		b.WriteString(line + "\n")
	}
	for _, table := range u.tables {
		b.WriteString(table + "\n")
	}
}

// upstreamNamed returns the upstream of a name, nil if there is none.
func (o *output) upstreamNamed(name string) *upstream {
	for _, u := range o.upstreams {
		if u.name == name {
			return u
		}
	}
	return nil
}

// newUpstream adds an upstream, with a name that none has: that of text, in the letters that names may have.
func (o *output) newUpstream(text string) *upstream {
	name := upstreamName(text)
	for o.upstreamNamed(name) != nil {
		name += "_"
	}
	u := &upstream{name: name}
	o.upstreams = append(o.upstreams, u)
	return u
}

func upstreamName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
	if name == "" {
		name = "_"
	}
	return name
}

// A target is where an upstream is, from a URL.
type target struct {
	addr   string // host:port or unix:/path
	name   string // as it was written, without scheme and path
	uri    string // after the address; "" for none
	secure bool
}

// parseTarget reads http://host[:port][/uri] and http://unix:/path:[/uri]. Variables cannot be translated.
func parseTarget(s string) (t target, ok bool) {
	rest, secure := strings.CutPrefix(s, "https://")
	if !secure {
		if rest, ok = strings.CutPrefix(s, "http://"); !ok {
			return t, false
		}
	}
	t.secure = secure
	if strings.ContainsAny(rest, "${}\"\\ \t?#@") || rest == "" {
		return t, false
	}
	if path, unix := strings.CutPrefix(rest, "unix:"); unix {
		path, t.uri, _ = strings.Cut(path, ":")
		t.name, t.addr = "localhost", "unix:"+path
		return t, path != ""
	}
	host := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, t.uri = rest[:i], rest[i:]
	}
	t.name = host
	port := "80"
	if secure {
		port = "443"
	}
	t.addr, ok = withPort(host, port)
	return t, ok
}

// withPort returns host:port, with a port if addr has none.
func withPort(addr, port string) (string, bool) {
	host, own, err := net.SplitHostPort(addr)
	if err != nil {
		host, own = strings.Trim(addr, "[]"), port
	}
	if n, err := strconv.ParseUint(own, 10, 16); err != nil || n == 0 || host == "" {
		return "", false
	}
	if net.ParseIP(host) == nil && strings.ContainsFunc(host, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return "", false
	}
	return net.JoinHostPort(host, own), true
}

// nginxTime translates a time such as "60", "60s", "1m" or "500ms".
func nginxTime(s string) (string, bool) {
	digits := strings.TrimRight(s, "smhd")
	unit := s[len(digits):]
	n, ok := number(digits)
	if !ok || n > 1<<20 {
		return "", false
	}
	switch unit {
	case "", "s", "ms", "m", "h":
		if unit == "" {
			unit = "s"
		}
		return strconv.Itoa(n) + unit, true
	}
	return "", false
}

// upstream reads an upstream block.
func (n *nginx) upstream(d *directive) {
	u := n.newUpstream(d.arg(0))
	if n.blocks == nil {
		n.blocks = make(map[string]*upstream)
	}
	n.blocks[d.arg(0)] = u
	balance, queue := "round-robin", 0
	for i := range d.block {
		in := &d.block[i]
		switch in.name() {
		case "server":
			n.upstreamServer(u, in)
		case "least_conn", "random":
			balance = "least"
		case "least_time":
			balance = "least"
		case "ip_hash":
			balance = "hash client"
		case "hash":
			b, ok := hashKey(in.arg(0))
			if !ok {
				n.note(in.line, "hash %s is left out: want balance = \"hash client|uri|path|header:NAME|cookie:NAME|"+
					"query:NAME\"", in.arg(0))
				continue
			}
			balance = b
		case "sticky":
			if in.arg(0) != "cookie" || in.arg(1) == "" || strings.ContainsAny(in.arg(1), "$ \"\\") {
				n.unknown(in)
				continue
			}
			balance = "sticky " + in.arg(1)
		case "queue":
			if n, ok := number(in.arg(0)); ok {
				queue = n
			}
		case "zone", "keepalive", "keepalive_requests", "keepalive_timeout", "keepalive_time", "resolver",
			"resolver_timeout":
		default:
			n.unknown(in)
		}
	}
	if balance != "least" {
		u.key("balance", quote(balance))
	}
	if queue > 0 && strings.Contains(strings.Join(u.servers, ""), "max_requests") {
		u.key("queue", strconv.Itoa(queue))
	}
	if len(u.servers) == 0 {
		n.note(d.line, "upstream %s has no server", d.arg(0))
	}
}

func (n *nginx) upstreamServer(u *upstream, d *directive) {
	addr, ok := d.arg(0), true
	if !strings.HasPrefix(addr, "unix:") {
		addr, ok = withPort(addr, "80")
	}
	if !ok {
		n.note(d.line, "server %s is left out: want an address and a port", d.arg(0))
		return
	}
	if slices.ContainsFunc(u.servers, func(s string) bool {
		return s == quote(addr) || strings.HasPrefix(s, "{ addr = "+quote(addr))
	}) {
		n.note(d.line, "server %s is there twice: want a weight", d.arg(0))
		return
	}
	var more []string
	for _, w := range d.words[min(2, len(d.words)):] {
		key, value, _ := strings.Cut(w, "=")
		count, isCount := number(value)
		switch {
		case key == "weight" && isCount && count >= 1 && count <= 100:
			more = append(more, "weight = "+value)
		case key == "max_conns" && isCount:
			more = append(more, "max_requests = "+value)
		case w == "backup":
			more = append(more, "backup = true")
		case w == "down":
			more = append(more, "weight = 0")
		case key == "max_fails" && count > 0, key == "fail_timeout", w == "resolve":
			// What chert does by itself, with times of its own.
		default:
			n.note(d.line, "server ... %s is left out", w)
		}
	}
	if len(more) == 0 {
		u.servers = append(u.servers, quote(addr))
		return
	}
	u.servers = append(u.servers, "{ addr = "+quote(addr)+", "+strings.Join(more, ", ")+" }")
}

// hashKey translates a variable.
func hashKey(s string) (string, bool) {
	switch s {
	case "$remote_addr", "$binary_remote_addr":
		return "hash client", true
	case "$request_uri":
		return "hash uri", true
	case "$uri", "$document_uri":
		return "hash path", true
	}
	name := ""
	for _, kind := range [][2]string{{"$cookie_", "cookie:"}, {"$arg_", "query:"}, {"$http_", "header:"}} {
		if rest, ok := strings.CutPrefix(s, kind[0]); ok {
			if name = rest; kind[0] == "$http_" {
				name = strings.ReplaceAll(rest, "_", "-")
			}
			ok = name != "" && !strings.ContainsFunc(name, func(r rune) bool {
				return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
			})
			return "hash " + kind[1] + name, ok
		}
	}
	return "", false
}
