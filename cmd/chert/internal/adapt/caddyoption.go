package adapt

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// policies are those of lb_policy.
var policies = map[string]string{"random": "least", "random_choose": "least", "least_conn": "least",
	"round_robin": "round-robin", "weighted_round_robin": "round-robin", "ip_hash": "hash client",
	"client_ip_hash": "hash client",
	"uri_hash":       "hash uri", "first": "least"}

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
		o.table("["+o.prefix+".response_headers]", "remove = "+quote(http.CanonicalHeaderKey(removed)))
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
