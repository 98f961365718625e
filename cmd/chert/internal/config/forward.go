package config

import (
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware"
)

// Proxy is where a site or a route forwards requests to, and how.
type Proxy struct {
	Upstream   *Upstream
	Split      []Split // before Upstream, in this order
	Host       string  // "": the client's; "upstream": that of the address; or a name
	Strip      string  // the beginning of the path that is cut off; "" for nothing
	Forwarded  bool    // sends Forwarded (RFC 7239) too
	EarlyData  bool    // forwards requests of early data, marked as such
	Compress   bool
	Hidden     []string          // patterns of paths that are not forwarded, of package filename
	NoDotfiles bool              // nor names that begin with a dot, but for /.well-known/
	Headers    map[string]string // of the request for the upstream, by canonical name; "" removes one
	Rewrite    []middleware.RewriteRule
}

// Split is an upstream for some of the requests. It has either When or Percent.
type Split struct {
	Upstream *Upstream
	When     *middleware.Condition
	Percent  int // of clients
}

// Upstreams returns all upstreams of p.
func (p *Proxy) Upstreams() []*Upstream {
	all := []*Upstream{p.Upstream}
	for _, s := range p.Split {
		all = append(all, s.Upstream)
	}
	return all
}

// proxyKeys are the keys of a site or route that forwards, besides proxy.
var proxyKeys = []string{"proxy_host", "strip", "split", "forwarded", "early_data", "request_headers"}

// sharedKeys are those of files that are for what is forwarded as well.
var sharedKeys = []string{"rewrite", "compression", "hidden", "dotfiles"}

// forward reads proxy and what belongs to it; nil if t has none. o are the options of t for files.
func (l *loader) forward(t *table, cfg *Config, o options, rewrite []middleware.RewriteRule) *Proxy {
	p := &Proxy{Rewrite: rewrite}
	name, at, ok := t.str("proxy")
	if host, hostAt, given := t.str("proxy_host"); given {
		p.Host = host
		if err := CheckProxyHost(host); err != nil {
			l.errorf(hostAt, "proxy_host %v", err)
		}
	}
	t.boolean("forwarded", &p.Forwarded)
	t.boolean("early_data", &p.EarlyData)
	p.Headers = l.fieldsOf(t, "request_headers", checkRequestField)
	p.Split = l.splits(t, cfg)
	if t.m["proxy"] == nil {
		return nil
	}
	// Keys of files, which mean nothing here unless t has them itself.
	p.Compress, p.NoDotfiles = t.m["compression"] == true, t.m["dotfiles"] == false
	if t.m["hidden"] != nil {
		p.Hidden = o.Hidden
	}
	if ok {
		p.Upstream = l.upstreamOf("proxy", name, at, cfg)
	}
	return p
}

// CheckProxyHost checks a Host field for upstreams.
func CheckProxyHost(s string) error {
	if !isHost(s) {
		return errorText(`wants "upstream", which is the address of the server, or a name such as "app.internal"; ` +
			`without it the host is the client's`)
	}
	return nil
}

// misplaced reports the keys of proxy in a table without it.
func (l *loader) misplaced(t *table) {
	for _, key := range proxyKeys {
		if t.m[key] != nil {
			l.errorf(t.spot.child(key).key, "%s is for proxy, and %s has none", key, t.name)
		}
	}
}

// checkRequestField checks a field that is set on requests for an upstream.
func checkRequestField(name, value string) error {
	if http.CanonicalHeaderKey(name) == "Host" {
		return errHostField
	}
	return wire.CheckField(name, value)
}

var errHostField = errorText(`is set by proxy_host`)

type errorText string

func (e errorText) Error() string { return string(e) }

// upstreamOf returns the upstream of a name or an address, nil after an error.
func (l *loader) upstreamOf(key, text string, at Position, cfg *Config) *Upstream {
	if isAddress(text) {
		u, err := l.direct(text, at, cfg)
		if err != nil {
			l.errorf(at, "%s: %v", key, err)
		}
		return u
	}
	u := l.named[text]
	if u == nil {
		var names []string
		for name := range l.named {
			names = append(names, name)
		}
		hint := `; want [upstream.` + text + `] with servers, or an address such as "127.0.0.1:9000"`
		if near := Nearest(text, names); near != "" {
			hint = `; did you mean "` + near + `"?`
		}
		if text == "" {
			hint = `; want the name of one, or an address such as "127.0.0.1:9000"`
		}
		l.errorf(at, "%s: there is no upstream %q%s", key, text, hint)
	}
	return u
}

// splits reads the list of that key.
func (l *loader) splits(t *table, cfg *Config) (all []Split) {
	v, spot := t.get("split")
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		t.wrongType("split", spot.value, `a list, as in [{ upstream = "new", percent = 5 }]`, v)
		return nil
	}
	total := 0
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			t.wrongType("split", spot.items[i].value, "tables", e)
			continue
		}
		one := &table{doc: l.doc, name: "[[" + strings.Trim(t.name, "[]") + ".split]]", m: m, spot: spot.items[i]}
		var s Split
		s.When = l.condition(one)
		if n := one.count("percent", 1, 100); n != nil {
			s.Percent = *n
			total += *n
		}
		name, at, ok := one.str("upstream")
		if ok {
			s.Upstream = l.upstreamOf("upstream", name, at, cfg)
		} else if one.m["upstream"] == nil {
			l.errorf(spot.items[i].value, `split wants upstream = "NAME"`)
		}
		switch {
		case one.m["percent"] != nil && s.When != nil:
			l.errorf(spot.items[i].value, "split has percent and a condition; want one of them")
		case one.m["percent"] == nil && s.When == nil:
			l.errorf(spot.items[i].value, "split wants percent, or a condition: header, cookie, query or from")
		}
		one.done()
		all = append(all, s)
	}
	if total > 100 {
		l.errorf(spot.key, "split has %d percent of the clients; want at most 100", total)
	}
	return all
}

// strip reads whether the path of a route is cut off, and returns it.
func (l *loader) strip(t *table, path string, w *Wildcards) string {
	on := false
	if t.boolean("strip", &on); !on || w == nil {
		return ""
	}
	prefix := strings.TrimSuffix(path[:strings.LastIndexByte(path, '/')+1], "/")
	if !w.Rest && !strings.HasSuffix(path, "/") || len(w.Names) > 1 || strings.ContainsAny(prefix, "{}%") {
		l.errorf(t.spot.child("strip").key, `strip is for a path that ends in a wildcard and has no other, as `+
			`"/api/{rest...}"`)
		return ""
	}
	return prefix // "" for "/{rest...}"
}
