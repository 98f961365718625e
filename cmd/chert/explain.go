package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/ratelimit"
)

// explainOptions are the flags of "chert check --explain".
type explainOptions struct {
	target string
	method string
	from   string
	at     string
	fields []string

	against string // not of --explain: the file of --against
}

// request makes the request that the flags describe.
func (o *explainOptions) request() (*http.Request, error) {
	u, err := url.Parse(o.target)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--explain: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf(`--explain wants a whole URL, as in "https://example.com/a?b=c", not %q`, o.target)
	case u.User != nil:
		return nil, errors.New(`--explain wants no password in the URL; want --header "Authorization: Basic ..."`)
	}
	peer, err := parsePeer(o.from)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	r, err := http.NewRequest(o.method, o.target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("--method: %w", err)
	}
	for _, line := range o.fields {
		name, value, ok := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case ok && strings.EqualFold(name, "Host"):
			r.Host = value
		case ok && wire.MaySet(name) && !strings.ContainsFunc(value, unicode.IsControl):
			r.Header.Add(name, value)
		default:
			return nil, fmt.Errorf(`--header wants "NAME: VALUE", not %q`, line)
		}
	}
	if u.Path == "" {
		r.URL.Path = "/"
	}
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), peer
	return r, nil
}

// address returns where the request comes to: one of the addresses of the file, the zero Listen for no certain one, or
// where it redirects plain HTTP.
func (o *explainOptions) address(cfg *config.Config, scheme string) (l config.Listen, redirects bool, err error) {
	if o.at == "" {
		return l, cfg.HTTPRedirect != "" && scheme == "http", nil
	}
	at, err := parseEndpoint(o.at)
	if err != nil {
		return l, false, fmt.Errorf("--at: %w", err)
	}
	is := func(text string) bool {
		e, err := parseEndpoint(text)
		return err == nil && e.same(at)
	}
	i := slices.IndexFunc(cfg.Listen, func(l config.Listen) bool { return is(l.Address) })
	switch {
	case i >= 0:
		return cfg.Listen[i], false, nil
	case is(cfg.HTTPRedirect):
		return l, true, nil
	}
	return l, false, fmt.Errorf("--at: the file does not listen on %q", o.at)
}

// upgradeOf returns what responds at http_redirect.
func upgradeOf(cfg *config.Config) (http.Handler, error) {
	var hosts vhost.Table[*tlsSite] // of which only the names matter
	for _, spec := range tlsSpecs(cfg) {
		for _, h := range spec.hosts {
			hosts.Add(h, nil)
		}
	}
	encrypted, plain := "0", "0" // as server.manage
	if cfg.Listen == nil {
		encrypted = defaultListen.port()
	}
	for _, l := range cfg.Listen {
		if e, err := parseEndpoint(l.Address); err == nil && e.port() != "" && !l.Plain {
			encrypted = e.port()
			break
		}
	}
	if e, err := parseEndpoint(cfg.HTTPRedirect); err == nil && e.port() != "" {
		plain = e.port()
	}
	return withErrorPages(&upgrade{hosts: &hosts, port: encrypted, own: plain}, cfg.Errors)
}

// parsePeer returns the RemoteAddr of a client with an address, or of one on a unix socket.
func parsePeer(s string) (string, error) {
	if s == "unix" {
		return "@", nil
	}
	if a, err := netip.ParseAddr(s); err == nil {
		return net.JoinHostPort(a.String(), "0"), nil
	}
	return "", fmt.Errorf(`want an address such as "192.0.2.1", or "unix", not %q`, s)
}

// trace is what happens to one request: a line for each step. The handlers that buildSites
// makes with it are those that serve, with a note before and after each.
type trace struct {
	lines     [][2]string
	forwarded bool // the response would be an upstream's
}

func (t *trace) add(what, result string) { t.lines = append(t.lines, [2]string{what, result}) }

// note adds a line before a handler.
func (t *trace) note(what, result string, h direct.Handler) direct.Handler {
	if t == nil {
		return h
	}
	return noted{func(*http.Request) { t.add(what, result) }, h}
}

// path adds a line with the path that a folder is asked for.
func (t *trace) path(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return noted{func(r *http.Request) { t.add("path", r.URL.Path) }, h}
}

// noted calls before for each request, which it does not leave to the fast path.
type noted struct {
	before func(*http.Request)
	http.Handler
}

// ServeDirect implements direct.Handler.
func (noted) ServeDirect(*direct.Exchange) bool { return false }

// ServeHTTP implements http.Handler.
func (n noted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.before(r)
	n.Handler.ServeHTTP(w, r)
}

// step returns a middleware that tells whether it has passed a request on.
func (t *trace) step(s step) func(http.Handler) http.Handler {
	if t == nil {
		return s.wrap
	}
	return func(next http.Handler) http.Handler {
		passed := false
		inner := s.wrap(noted{func(*http.Request) {
			passed = true
			t.add(s.name, "passed")
		}, next})
		answer := func(w http.ResponseWriter, r *http.Request) {
			if inner.ServeHTTP(w, r); !passed {
				t.add(s.name, "answered")
			}
		}
		return noted{func(*http.Request) { passed = false }, http.HandlerFunc(answer)}
	}
}

// explain prints what happens to the request of o: the steps that the handlers of cfg
// take, which have served it to nobody.
func explain(cfg *config.Config, o *explainOptions, out io.Writer) error {
	r, err := o.request()
	if err != nil {
		return err
	}
	at, redirects, err := o.address(cfg, r.URL.Scheme)
	if err != nil {
		return err
	}
	if r.URL.Scheme == "https" && !at.Plain {
		r.TLS = &tls.ConnectionState{HandshakeComplete: true}
	}
	proxies := cfg.Proxies
	if at.Proxies != nil {
		proxies = *at.Proxies
	}
	t := new(trace)
	all, err := buildSites(cfg, nil, limiter{store: ratelimit.NewMemory(nil)}, nil, nil,
		slog.New(slog.DiscardHandler), t)
	if err != nil {
		return err
	}
	defer all.close()
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{})))
	from := clientOf(r)
	t.add("request", fmt.Sprintf("%s %s from %s", r.Method, o.target, from))
	h := behind(noted{func(*http.Request) {
		if client := clientOf(r); client != from {
			t.add("trusted_proxies", "the client is "+client)
		}
		if len(cfg.RateLimit.Rates) > 0 {
			t.add("rate_limit", "not counted here")
		}
	}, all}, proxies, false)
	if redirects {
		if h, err = upgradeOf(cfg); err != nil {
			return err
		}
		t.add("http_redirect", cfg.HTTPRedirect)
	}
	w := &answer{header: make(http.Header)}
	h.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK) // if there is none yet
	t.print(w, out)
	return nil
}

// print prints the steps, and the response.
func (t *trace) print(w *answer, out io.Writer) {
	if t.forwarded {
		t.add("response", "that of the upstream")
	} else {
		t.add("response", fmt.Sprintf("%d %s, %s", w.status, http.StatusText(w.status), plural(w.n, "byte")))
	}
	for _, name := range slices.Sorted(maps.Keys(w.header)) {
		for _, value := range w.header[name] {
			t.add("", name+": "+value)
		}
	}
	width := 0
	for _, line := range t.lines {
		width = max(width, len(line[0]))
	}
	for _, line := range t.lines {
		fmt.Fprintf(out, "%-*s  %s\n", width, line[0], line[1])
	}
}

// clientOf returns the address of a request's client, for people.
func clientOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return "a unix socket"
}

// answer is a response that is counted and dropped.
type answer struct {
	header http.Header
	status int
	n      int
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status, a.header = status, a.header.Clone()
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.n += len(p)
	return len(p), nil
}
