package config

import (
	"maps"
	"slices"
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

// MaxServers is how many servers an upstream may have in the file.
const MaxServers = 256

// upstreams reads [upstream.NAME], which sites and routes name.
func (l *loader) upstreams(t *table, cfg *Config) {
	l.named = make(map[string]*Upstream)
	if v, spot := t.get("upstream"); isTables(v) {
		l.errorf(spot.key, "%s", errNoName)
		return
	}
	all := t.table("upstream")
	if all == nil {
		return
	}
	if key, ok := scalar(all.m); ok {
		l.errorf(all.spot.child(key).key, "%s", errNoName)
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

// errNoName is about keys of an upstream that has none.
const errNoName = `an upstream has a name: want [upstream.app] with servers, and proxy = "app"`

// scalar returns the first key of m whose value is no table.
func scalar(m map[string]any) (key string, ok bool) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if _, isTable := m[key].(map[string]any); !isTable {
			return key, true
		}
	}
	return "", false
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
	if u.TLS = l.upstreamTLS(t); u.TLS != nil && u.TLS.ServerName == "" && t.m["tls_name"] == nil &&
		slices.ContainsFunc(o.Servers, func(s proxy.Server) bool { return strings.HasPrefix(s.Addr, "unix:") }) {
		l.errorf(t.spot.child("tls").key, "tls to a unix socket needs tls_name, the name that the certificate must "+
			"have")
	}
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
	limited := func(s proxy.Server) bool { return s.MaxRequests > 0 }
	if o.Queue > 0 && o.MaxRequests <= 0 && !slices.ContainsFunc(o.Servers, limited) {
		l.errorf(t.spot.child("queue").key, "queue is for servers that have their max_requests, and there is no limit")
	}
	if o.Queue <= 0 && t.m["queue_timeout"] != nil {
		l.errorf(t.spot.child("queue_timeout").key, "queue_timeout is for a queue, and there is none")
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
