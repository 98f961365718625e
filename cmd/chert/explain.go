package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/chert-http/chert/cmd/chert/internal/config"
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

// proxies returns those that are trusted on the address that the request comes to.
func (o *explainOptions) proxies(cfg *config.Config) (config.Proxies, error) {
	if o.at == "" {
		return cfg.Proxies, nil
	}
	at, _ := parseEndpoint(o.at)
	for _, l := range cfg.Listen {
		// configChecks has accepted the file's.
		if one, _ := parseEndpoint(l.Address); one.same(at) {
			if l.Proxies != nil {
				return *l.Proxies, nil
			}
			return cfg.Proxies, nil
		}
	}
	return config.Proxies{}, fmt.Errorf("--at: the file does not listen on %q", o.at)
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
	proxies, err := o.proxies(cfg)
	if err != nil {
		return err
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
	w := &answer{header: make(http.Header)}
	behind(noted{func(*http.Request) {
		if client := clientOf(r); client != from {
			t.add("trusted_proxies", "the client is "+client)
		}
		if len(cfg.RateLimit.Rates) > 0 {
			t.add("rate_limit", "not counted here")
		}
	}, all}, proxies, false).ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK) // if there is none yet
	if t.forwarded {
		t.add("response", "that of the upstream")
	} else {
		t.add("response", fmt.Sprintf("%d %s, %s", w.status, http.StatusText(w.status), plural(w.n, "byte")))
	}
	names := make([]string, 0, len(w.header))
	for name := range w.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
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
	return nil
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
