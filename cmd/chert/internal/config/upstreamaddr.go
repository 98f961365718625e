package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/proxy"
)

// server checks an address: host:port, or unix:/path, which may be relative to the file's folder.
func (l *loader) server(s string) (proxy.Server, error) {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return proxy.Server{}, fmt.Errorf("%q has no path", s)
		}
		return proxy.Server{Addr: "unix:" + l.path(path)}, nil
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		switch scheme {
		case "http":
			return proxy.Server{}, fmt.Errorf("%q: want %q", s, rest)
		case "https":
			return proxy.Server{}, fmt.Errorf("%q: want %q, and tls = true beside servers", s, rest)
		}
		return proxy.Server{}, fmt.Errorf("%q: requests are forwarded over HTTP, not %s", s, scheme)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return proxy.Server{}, fmt.Errorf(`%q: want an address such as "10.0.0.1:8080", "app.internal:8080" or `+
			`"unix:/run/app.sock"`, s)
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

// direct returns the upstream of an address that a site or route has in place of a name. All that
// have the same one share it.
func (l *loader) direct(text string, at Position, cfg *Config) (*Upstream, error) {
	rest, secure := strings.CutPrefix(text, "https://")
	rest, plain := strings.CutPrefix(rest, "http://")
	if secure || plain {
		rest = strings.TrimSuffix(rest, "/")
		if strings.ContainsAny(rest, "/?#@") {
			return nil, fmt.Errorf("%q: want a host and a port; paths are kept, and strip = true removes that of the "+
				"route", text)
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
