package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/ratelimit"
)

// fuzzedRoutes are routes of one site: a path, and what else the route has. Each is for some
// requests that another one would have without it.
var fuzzedRoutes = [][2]string{
	{"/{$}", ""}, {"/a", "methods = ['HEAD']"}, {"/a", ""}, {"/a/{x}", "methods = ['GET']"}, {"/a/{x}", "methods = ['POST', 'PUT']"},
	{"/a/{x}/b", ""}, {"/a/c/b", "header = { X-V = '2' }"}, {"/a/c/b", "header = { X-V = '*' }\ncookie = { c = 'd' }"},
	{"/a/c/b", "cookie = { c = '*' }"}, {"/a/c/b", ""}, {"/a/{rest...}", "from = '10.2.0.0/16'"}, {"/a/{rest...}", "query = { q = '*' }"},
	{"/a/{rest...}", ""}, {"/a/{rest...}", "from = 'unix'\nquery = { q = '1' }"}, {"/{x}", ""}, {"/%2f/{x}", ""}, {"/b/{x}/{y...}", ""},
	{"/c/{x}", "methods = ['GET']\nheader = { X-V = '2' }"}, {"/c/{x}", "methods = ['GET']"}, {"/c/{x}", "methods = ['HEAD']"},
	{"/d", "methods = ['DELETE']"},
}

// fuzzedSite returns a configuration with fuzzedRoutes, each of which sets a field as
// --explain names it, and two addresses, of which one trusts a proxy.
func fuzzedSite() string {
	text := "listen = [':8081', { address = ':8082', trusted_proxies = '10.0.0.1' }]\n[[site]]\nhosts = '*'\n"
	for _, r := range fuzzedRoutes {
		line := strings.Count(text, "\n") + 1
		text += "[[site.route]]\npath = '" + r[0] + "'\nrespond = 200\nheaders = { X-Route = '" + r[0] + " in line " +
			strconv.Itoa(line) + "' }\n" + r[1] + "\n"
	}
	return text
}

// servedBy returns the status and the route of a request that h serves, as a server does it: on
// the fast path if that takes it.
func servedBy(h http.Handler, r *http.Request) (status int, route string) {
	if d, ok := h.(direct.Handler); ok {
		var x direct.Exchange
		x.Wire().Reset(wire.Request{Method: r.Method, Target: []byte(r.RequestURI), Path: []byte(r.URL.Path),
			RawQuery: []byte(r.URL.RawQuery), Host: []byte(r.Host), RemoteAddr: r.RemoteAddr, Fields: wire.FieldsOf(r.Header)})
		if d.ServeDirect(&x) {
			for f := range x.Wire().ResponseFields {
				if f.Name == "X-Route" {
					route = f.Value
				}
			}
			status = x.Wire().Status()
			x.Wire().Drop()
			return status, route
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header().Get("X-Route")
}

// FuzzExplain compares the route that --explain names with the one that serves, for any
// path, method, client, address and fields.
func FuzzExplain(f *testing.F) {
	file := filepath.Join(f.TempDir(), "c.toml")
	write(f, file, fuzzedSite())
	cfg, err := config.Load(file, configChecks)
	if err != nil {
		f.Fatal(err)
	}
	all, err := buildSites(cfg, nil, limiter{store: ratelimit.NewMemory(nil)}, nil, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(all.close)
	methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get"}
	clients := []string{"127.0.0.1", "10.2.3.4", "10.0.0.1", "unix", "2001:db8::1"}
	for _, path := range []string{"", "a", "a/b", "a/c/b", "a//b", "a/%2e%2e/b", "%2f/a", "x/", "b/%62/c/d", "a/{x}", "%41", "a/c/d?q=1",
		"a/c/b?q=1&q=2", "a/c/d?q", "a/c/d?%71=%31", "c/a", "d", "a/d/e?a;q=1"} {
		for i := range methods {
			f.Add(path, byte(i), byte(i), i&1 == 0, []string{"", "2", "3"}[i%3], []string{"c=d", "", "c=e; b=\"x\""}[i%3], "10.2.0.9")
		}
	}
	f.Fuzz(func(t *testing.T, path string, method, client byte, proxied bool, version, cookie, forwarded string) {
		o := &explainOptions{target: "http://a.example/" + path, method: methods[int(method)%len(methods)],
			from: clients[int(client)%len(clients)], at: ":8081"}
		h := http.Handler(all)
		if proxied {
			o.at, h = ":8082", behind(all, *cfg.Listen[1].Proxies, false)
		}
		for name, value := range map[string]string{"X-V": version, "Cookie": cookie, "X-Forwarded-For": forwarded} {
			if value != "" {
				o.fields = append(o.fields, name+": "+value)
			}
		}
		r, err := o.request()
		if err != nil {
			return
		}
		status, want := servedBy(h, r)
		var out strings.Builder
		if err := explain(cfg, o, &out); err != nil {
			t.Fatal(err)
		}
		named := ""
		for line := range strings.Lines(out.String()) {
			if route, ok := strings.CutPrefix(line, "route "); ok {
				if named != "" {
					t.Fatalf("two routes:\n%s", out.String())
				}
				named = strings.TrimSpace(route)
			}
		}
		if want == "" {
			if status/100 != 3 && status != http.StatusNotFound && status != http.StatusMethodNotAllowed && o.method != "OPTIONS" {
				t.Fatalf("%d and no route", status)
			}
			want = "none"
		}
		if named != want {
			t.Errorf("%+v is served by %q\n%s", o, want, out.String())
		}
	})
}

// All routes of FuzzExplain are reached.
func TestFuzzedRoutes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.toml")
	write(t, file, fuzzedSite())
	cfg, err := config.Load(file, configChecks)
	if err != nil {
		t.Fatal(err)
	}
	all := openSites(t, cfg)
	reached := make(map[string]bool)
	for _, target := range []string{"", "a", "a/b", "a/c/b", "a/d/b", "a/d/e", "a/d/e?q=1", "x", "%2f/x", "b/c/d", "c/x", "d"} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
			for _, from := range []string{"127.0.0.1", "10.2.3.4", "unix"} {
				for _, fields := range [][]string{nil, {"X-V: 2"}, {"X-V: 3", "Cookie: c=d"}, {"Cookie: b=c; c=e"}} {
					o := &explainOptions{target: "http://a.example/" + target, method: method, from: from, fields: fields}
					r, err := o.request()
					if err != nil {
						t.Fatal(err)
					}
					_, route := servedBy(all, r)
					reached[route] = true
				}
			}
		}
	}
	delete(reached, "")
	// The last one with a condition is behind a wider one with the same path.
	if len(reached) != len(fuzzedRoutes)-1 {
		t.Errorf("%d of %d: %v", len(reached), len(fuzzedRoutes), reached)
	}
}
