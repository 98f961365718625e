package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chert-http/chert/proxy"
)

// Upstream is a list of servers that requests are forwarded to: an [upstream.NAME], or an
// address that a site or route has instead.
type Upstream struct {
	At      Position
	Options proxy.UpstreamOptions // without TLS
	TLS     *UpstreamTLS          // nil: plain HTTP
}

// UpstreamTLS is how servers that speak TLS are talked to. Upstreams with the same value may
// share connections.
type UpstreamTLS struct {
	ServerName string // "": the host of the address
	CA         string // authorities in PEM; "": the system's
	Cert, Key  string // chert's own certificate, in PEM; "" for none
}

// Config returns the configuration of package tls.
func (t UpstreamTLS) Config() (*tls.Config, error) {
	c := &tls.Config{ServerName: t.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if t.CA != "" {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM([]byte(t.CA))
	}
	if t.Cert != "" {
		own, err := tls.X509KeyPair([]byte(t.Cert), []byte(t.Key))
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// MaxServers is how many servers an upstream may have in the file.
const MaxServers = 256

// upstreams reads [upstream.NAME], which sites and routes name.
func (l *loader) upstreams(t *table, cfg *Config) {
	l.named = make(map[string]*Upstream)
	all := t.table("upstream")
	if all == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(all.m)) {
		u := all.table(name)
		if u == nil {
			continue
		}
		if strings.ContainsFunc(name, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			l.errorf(u.spot.key, "the name %q of an upstream wants letters, digits, - and _", name)
			continue
		}
		up := l.upstream(u, name)
		l.named[name] = up
		cfg.Upstreams = append(cfg.Upstreams, up)
	}
}

func (l *loader) upstream(t *table, name string) *Upstream {
	u := &Upstream{At: t.spot.key}
	o := &u.Options
	o.Name = name
	o.Servers = l.servers(t)
	if s, at, ok := t.str("srv"); ok {
		if o.SRV = s; s == "" || strings.ContainsAny(s, " \t/:@") {
			l.errorf(at, `srv wants a name with SRV records, such as "_http._tcp.app.internal"`)
		}
	}
	switch {
	case t.m["servers"] != nil && t.m["srv"] != nil:
		l.errorf(t.spot.key, "%s has servers and srv; want one of them", t.name)
	case t.m["servers"] == nil && t.m["srv"] == nil:
		l.errorf(t.spot.key, `%s has no servers; want servers = ["127.0.0.1:9000"], or srv`, t.name)
	}
	l.balance(t, &o.Balance)
	o.Check = l.check(t)
	l.health(t, &o.Health)
	l.retry(t, &o.Retry)
	u.TLS = l.upstreamTLS(t)
	if s, at, ok := t.str("protocol"); ok {
		switch s {
		case "h1":
		case "h2":
			o.Protocol = proxy.ProtocolHTTP2
		default:
			l.errorf(at, `protocol wants "h1", or "h2" for servers of gRPC, not %q`, s)
		}
	}
	for _, k := range []struct {
		key string
		to  *time.Duration
	}{{"queue_timeout", &o.QueueTimeout}, {"connect_timeout", &o.ConnectTimeout},
		{"response_timeout", &o.ResponseTimeout}, {"stall_timeout", &o.StallTimeout}, {"idle_timeout", &o.IdleTimeout},
		{"slow_start", &o.SlowStart}} {
		if d, ok := t.duration(k.key); ok {
			*k.to = orNone(d)
		}
	}
	if o.SlowStart > time.Hour {
		l.errorf(t.spot.child("slow_start").value, "slow_start wants an hour at most")
	}
	for _, k := range []struct {
		key  string
		to   *int
		most int64
	}{{"max_requests", &o.MaxRequests, 1 << 20}, {"queue", &o.Queue, 1 << 20}, {"max_idle", &o.MaxIdle, 1 << 20}} {
		if n := t.count(k.key, 0, k.most); n != nil {
			*k.to = orNone(*n)
		}
	}
	if o.Queue > 0 && o.MaxRequests <= 0 && !slices.ContainsFunc(o.Servers, func(s proxy.Server) bool { return s.MaxRequests > 0 }) {
		l.errorf(t.spot.child("queue").key, "queue is for servers that have their max_requests, and there is no limit")
	}
	t.done()
	return u
}

// orNone converts a value for which 0 means none to the form of package proxy.
func orNone[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// servers reads a list of addresses and of tables with addr.
func (l *loader) servers(t *table) (all []proxy.Server) {
	v, spot := t.get("servers")
	var list []any
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		s, err := l.server(v)
		if err != nil {
			l.errorf(spot.value, "servers: %v", err)
		}
		return []proxy.Server{s}
	case []any:
		list = v
	default:
		t.wrongType("servers", spot.value, "a list of strings or tables", v)
		return nil
	}
	if len(list) == 0 || len(list) > MaxServers {
		l.errorf(spot.key, "servers wants from 1 to %d addresses", MaxServers)
	}
	for i, e := range list {
		at := spot.items[i]
		var s proxy.Server
		switch e := e.(type) {
		case string:
			var err error
			if s, err = l.server(e); err != nil {
				l.errorf(at.value, "servers: %v", err)
			}
		case map[string]any:
			one := &table{doc: l.doc, name: "servers of " + t.name, m: e, spot: at}
			s = l.serverTable(one)
		default:
			t.wrongType("servers", at.value, "a list of strings or tables", e)
			continue
		}
		if s.Addr != "" && slices.ContainsFunc(all, func(o proxy.Server) bool { return o.Addr == s.Addr }) {
			l.errorf(at.value, "servers: %q is there twice", s.Addr)
		}
		all = append(all, s)
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(s proxy.Server) bool { return !s.Backup }) {
		l.errorf(spot.key, "servers are all backups; want one that is none")
	}
	return all
}

func (l *loader) serverTable(t *table) (s proxy.Server) {
	text, at, ok := t.str("addr")
	if ok {
		var err error
		if s, err = l.server(text); err != nil {
			l.errorf(at, "addr: %v", err)
		}
	} else if t.m["addr"] == nil {
		l.errorf(t.spot.value, `a table of servers wants addr = "10.0.0.1:8080"`)
	}
	if n := t.count("weight", 0, 100); n != nil {
		s.Weight = orNone(*n)
	}
	if n := t.count("max_requests", 0, 1<<20); n != nil {
		s.MaxRequests = orNone(*n)
	}
	t.boolean("backup", &s.Backup)
	t.done()
	return s
}

// server checks an address: host:port, or unix:/path, which may be relative to the file's folder.
func (l *loader) server(s string) (proxy.Server, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return proxy.Server{}, fmt.Errorf("%q has no path", s)
		}
		return proxy.Server{Addr: "unix:" + l.path(path)}, nil
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		if scheme == "https" {
			return proxy.Server{}, fmt.Errorf("%q: want %q, and tls = true beside servers", s, rest)
		}
		return proxy.Server{}, fmt.Errorf("%q: want %q", s, rest)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return proxy.Server{}, fmt.Errorf(`%q: want an address such as "10.0.0.1:8080", "app.internal:8080" or "unix:/run/app.sock"`, s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return proxy.Server{}, fmt.Errorf("%q: want a port from 1 to 65535", s)
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsFunc(host, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return proxy.Server{}, fmt.Errorf("%q has no valid host", s)
	}
	return proxy.Server{Addr: s}, nil
}

func (l *loader) balance(t *table, to *proxy.Balance) {
	if s, at, ok := t.str("balance"); ok {
		b, err := proxy.ParseBalance(s)
		if err != nil {
			l.errorf(at, "balance: %s", strings.TrimPrefix(err.Error(), "proxy: ParseBalance: "))
		}
		*to = b
	}
	v, spot := t.get("bound")
	var bound float64
	switch v := v.(type) {
	case nil:
		return
	case int64:
		bound = float64(v)
	case float64:
		bound = v
	default:
		t.wrongType("bound", spot.value, "a number", v)
		return
	}
	switch {
	case to.Policy != proxy.PolicyHash && to.Policy != proxy.PolicySticky:
		l.errorf(spot.key, `bound is for balance = "hash ..." and "sticky"`)
	case bound == 0:
		to.Bound = -1
	case !(bound > 1 && bound <= 10):
		l.errorf(spot.value, "bound wants a number of more than 1 and at most 10, such as 1.5, or 0 for none")
	default:
		to.Bound = bound
	}
}

// check reads a path, or a table.
func (l *loader) check(t *table) *proxy.Check {
	if _, ok := t.m["check"].(map[string]any); !ok {
		s, at, ok := t.str("check")
		if !ok {
			return nil
		}
		l.checkPath(s, at)
		return &proxy.Check{Path: s}
	}
	c, t := &proxy.Check{}, t.table("check")
	s, at, ok := t.str("path")
	if c.Path = s; ok {
		l.checkPath(s, at)
	} else if t.m["path"] == nil {
		l.errorf(t.spot.key, `%s has no path; want path = "/healthz"`, t.name)
	}
	if s, at, ok := t.str("proxy_host"); ok {
		if c.Host = s; !isHost(s) {
			l.errorf(at, "proxy_host: %q is no host", s)
		}
	}
	for key, to := range map[string]*time.Duration{"interval": &c.Interval, "timeout": &c.Timeout} {
		if d, ok := t.duration(key); ok {
			if *to = d; d < 10*time.Millisecond {
				l.errorf(t.spot.child(key).value, "%s wants 10ms at least", key)
			}
		}
	}
	for key, to := range map[string]*int{"fall": &c.Fall, "rise": &c.Rise} {
		if n := t.count(key, 1, 100); n != nil {
			*to = *n
		}
	}
	if n := t.count("status", 200, 599); n != nil {
		c.Status = *n
	}
	t.done()
	return c
}

func (l *loader) checkPath(s string, at Position) {
	if !strings.HasPrefix(s, "/") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		l.errorf(at, `check wants a path such as "/healthz", without spaces`)
	}
}

// isHost reports whether s can be a Host field.
func isHost(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/?#@"'<>\`, r)
	})
}

// health reads a table; false instead of one is none.
func (l *loader) health(t *table, h *proxy.Health) {
	if v, ok := t.m["health"].(bool); ok {
		t.get("health")
		if h.Off = !v; v {
			l.errorf(t.spot.child("health").value, "health wants a table, or false")
		}
		return
	}
	if t = t.table("health"); t == nil {
		return
	}
	for _, k := range []struct {
		key  string
		to   *int
		most int64
	}{{"consecutive", &h.Consecutive, 1000}, {"percent", &h.Percent, 100}} {
		if n := t.count(k.key, 0, k.most); n != nil {
			*k.to = orNone(*n)
		}
	}
	if n := t.count("least", 1, 1<<20); n != nil {
		h.Least = *n
	}
	for _, k := range []struct {
		key string
		to  *time.Duration
	}{{"within", &h.Within}, {"ejection", &h.Ejection}, {"max_ejection", &h.MaxEjection}} {
		if d, ok := t.duration(k.key); ok {
			if *k.to = d; d == 0 {
				l.errorf(t.spot.child(k.key).value, "%s wants more than 0", k.key)
			}
		}
	}
	t.done()
}

// retry reads what may be sent twice: a list, or false for nothing.
func (l *loader) retry(t *table, r *proxy.Retry) {
	if v, ok := t.m["retry"].(bool); ok {
		t.get("retry")
		if r.Off = !v; v {
			l.errorf(t.spot.child("retry").value, `retry wants false, or a list of "timeouts", "statuses" and "keys"`)
		}
		return
	}
	all, _ := t.list("retry")
	for _, it := range all {
		switch it.text {
		case "timeouts":
			r.Timeouts = true
		case "statuses":
			r.Statuses = true
		case "keys":
			r.Keys = true
		default:
			l.errorf(it.at, `retry wants "timeouts", "statuses" and "keys", not %q`, it.text)
		}
	}
}

// upstreamTLS reads tls and what implies it, nil if there is none.
func (l *loader) upstreamTLS(t *table) *UpstreamTLS {
	on := false
	t.boolean("tls", &on)
	c := UpstreamTLS{}
	var at Position
	file := func(key string, to *string) {
		s, spot, ok := t.str(key)
		if !ok {
			return
		}
		at = spot
		data, err := readPart(l.path(s))
		if err != nil {
			l.errorf(spot, "%s: %q: %v", key, s, err)
		}
		*to = string(data)
	}
	file("ca", &c.CA)
	if c.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(c.CA)) {
		l.errorf(at, "ca: the file has no certificate in PEM")
	}
	file("tls_cert", &c.Cert)
	file("tls_key", &c.Key)
	if s, _, ok := t.str("tls_key"); ok {
		l.secret("the key", l.path(s), at)
	}
	if (t.m["tls_cert"] == nil) != (t.m["tls_key"] == nil) {
		l.errorf(t.spot.key, "tls_cert and tls_key go together in %s", t.name)
	} else if c.Cert != "" && c.Key != "" {
		if _, err := tls.X509KeyPair([]byte(c.Cert), []byte(c.Key)); err != nil {
			l.errorf(at, "tls_cert, tls_key: %s", strings.TrimPrefix(err.Error(), "tls: "))
		}
	}
	if s, spot, ok := t.str("tls_name"); ok {
		if c.ServerName = s; !isHost(s) || strings.Contains(s, ":") {
			l.errorf(spot, "tls_name: %q is no name", s)
		}
	}
	if on {
		return &c
	}
	for _, key := range []string{"ca", "tls_cert", "tls_key", "tls_name"} {
		if t.m[key] != nil {
			l.errorf(t.spot.child(key).key, "%s is for servers that speak TLS; want tls = true", key)
		}
	}
	return nil
}

// direct returns the upstream of an address that a site or route has in place of a name. All that
// have the same one share it.
func (l *loader) direct(text string, at Position, cfg *Config) (*Upstream, error) {
	rest, secure := strings.CutPrefix(text, "https://")
	rest, plain := strings.CutPrefix(rest, "http://")
	if secure || plain {
		rest = strings.TrimSuffix(rest, "/")
		if strings.ContainsAny(rest, "/?#@") {
			return nil, fmt.Errorf("%q: want a host and a port; paths are kept, and strip = true removes that of the route", text)
		}
		if _, _, err := net.SplitHostPort(rest); err != nil {
			port := "80"
			if secure {
				port = "443"
			}
			rest = net.JoinHostPort(strings.Trim(rest, "[]"), port)
		}
	}
	s, err := l.server(rest)
	if err != nil {
		return nil, err
	}
	u := &Upstream{At: at}
	u.Options.Servers = []proxy.Server{s}
	if secure {
		u.TLS = &UpstreamTLS{}
	}
	key := s.Addr
	if secure {
		key = "https://" + key
	}
	if old := l.byAddr[key]; old != nil {
		return old, nil
	}
	u.Options.Name = l.freeName(s.Addr)
	if l.byAddr == nil {
		l.byAddr = make(map[string]*Upstream)
	}
	l.byAddr[key] = u
	cfg.Upstreams = append(cfg.Upstreams, u)
	return u, nil
}

// freeName makes a name of an address that no upstream has: a token, without the colons and slashes.
func (l *loader) freeName(addr string) string {
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, strings.Trim(addr, "["))
	taken := func(name string) bool {
		if l.named[name] != nil {
			return true
		}
		for _, u := range l.byAddr {
			if u.Options.Name == name {
				return true
			}
		}
		return false
	}
	for taken(name) {
		name += "_"
	}
	return name
}

// isAddress reports whether the value of proxy is an address, and not a name.
func isAddress(s string) bool { return strings.ContainsAny(s, ":/") }

// NewUpstream returns the upstream of addresses on a command line: as those of proxy, or a port of this
// machine. balance and check are as in the file; "" is the default.
func NewUpstream(addrs []string, balance, check string) (*Upstream, error) {
	l, cfg := &loader{doc: &doc{}}, &Config{}
	var u *Upstream
	for _, text := range addrs {
		addr := strings.TrimPrefix(text, ":")
		if _, err := strconv.ParseUint(addr, 10, 16); err == nil {
			addr = net.JoinHostPort("127.0.0.1", addr)
		}
		if path, ok := strings.CutPrefix(addr, "unix:"); ok && path != "" {
			path, err := filepath.Abs(path)
			if err != nil {
				return nil, err
			}
			addr = "unix:" + path
		}
		one, err := l.direct(addr, Position{}, cfg)
		switch {
		case err != nil:
			return nil, err
		case u == nil:
			u = one
		case (u.TLS == nil) != (one.TLS == nil):
			return nil, fmt.Errorf("%q: either all addresses are https, or none", text)
		case slices.Contains(u.Options.Servers, one.Options.Servers[0]):
			return nil, fmt.Errorf("%q is there twice", text)
		default:
			u.Options.Servers = append(u.Options.Servers, one.Options.Servers[0])
		}
	}
	if len(addrs) > 1 {
		u.Options.Name = "upstream"
	}
	var err error
	if u.Options.Balance, err = proxy.ParseBalance(balance); err != nil {
		return nil, fmt.Errorf("--balance: %s", strings.TrimPrefix(err.Error(), "proxy: ParseBalance: "))
	}
	if check != "" {
		if l.checkPath(check, Position{}); len(l.problems) > 0 {
			return nil, errors.New("--" + l.problems[0].Message)
		}
		u.Options.Check = &proxy.Check{Path: check}
	}
	return u, nil
}
