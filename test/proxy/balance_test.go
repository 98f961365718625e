package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/freeport"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

// named returns servers that answer with their number.
func named(t testing.TB, n int) (all []*origin, addrs []string) {
	for i := range n {
		o := start(t, each(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", i)))
		all, addrs = append(all, o), append(addrs, o.addr())
	}
	return all, addrs
}

func ask(c *servertest.Client, path string, fields ...string) (string, *http.Response) {
	c.Send(servertest.Ask("GET "+path, fields...))
	res, body := c.Response("GET")
	return body, res
}

// TestPolicies tests which servers get the requests of one client.
func TestPolicies(t *testing.T) {
	t.Run("round robin", func(t *testing.T) {
		_, addrs := named(t, 3)
		s := &setup{}
		s.up.Balance.Policy = proxy.PolicyRoundRobin
		s.up.Servers = []proxy.Server{{Addr: addrs[0], Weight: 2}, {Addr: addrs[1]}, {Addr: addrs[2], Weight: -1}}
		c := s.start(t, chert.EngineGoroutines).Dial()
		got := ""
		for range 6 {
			body, _ := ask(c, "/")
			got += body
		}
		if got != "010010" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("backup", func(t *testing.T) {
		all, addrs := named(t, 2)
		s := &setup{}
		s.up.Servers = []proxy.Server{{Addr: addrs[0]}, {Addr: addrs[1], Backup: true}}
		c := s.start(t, chert.EngineGoroutines).Dial()
		if body, _ := ask(c, "/"); body != "0" {
			t.Errorf("got %s", body)
		}
		all[0].close()
		if body, _ := ask(c, "/"); body != "1" {
			t.Errorf("got %s", body)
		}
	})
	for _, policy := range []string{"hash client", "hash uri", "hash path", "hash header:X-User", "hash cookie:u", "hash query:u"} {
		t.Run(policy, func(t *testing.T) {
			_, addrs := named(t, 5)
			s := &setup{}
			var err error
			if s.up.Balance, err = proxy.ParseBalance(policy); err != nil {
				t.Fatal(err)
			}
			c := s.start(t, chert.EngineGoroutines, addrs...).Dial()
			homes, same := map[string]bool{}, true
			for u := range 20 {
				one := ""
				for n := range 3 {
					body, _ := ask(c, fmt.Sprintf("/%d?u=%d", u, u), fmt.Sprintf("X-User: %d", u), fmt.Sprintf("Cookie: n=%d; u=%d", n, u))
					if n == 0 {
						one = body
					}
					same = same && body == one
				}
				homes[one] = true
			}
			if want := policy != "hash client"; !same || (len(homes) > 1) != want {
				t.Errorf("the same server each time: %v; homes %v", same, homes)
			}
		})
	}
}

// TestSticky: a client stays at its server; one that drains keeps its sessions, and gets no new
// ones; a session whose server is gone goes elsewhere.
func TestSticky(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		all, addrs := named(t, 3)
		s := &setup{}
		s.up.Balance.Policy = proxy.PolicySticky
		ts := s.start(t, e, addrs...)
		c := ts.Dial()
		home, res := ask(c, "/")
		cookie := res.Header.Get("Set-Cookie")
		name, _, _ := strings.Cut(cookie, ";")
		if !strings.HasPrefix(cookie, "chert-server=") || !strings.HasSuffix(cookie, "; Path=/; HttpOnly; SameSite=Lax") {
			t.Fatalf("cookie %q", cookie)
		}
		var i int
		fmt.Sscan(home, &i)
		stays := func() {
			t.Helper()
			for range 5 {
				if body, res := ask(c, "/", "Cookie: "+name); body != home || res.Header.Get("Set-Cookie") != "" {
					t.Fatalf("server %s, then %s, %q", home, body, res.Header.Get("Set-Cookie"))
				}
			}
		}
		stays()
		if err := s.o.Upstream.Drain(addrs[i], true); err != nil {
			t.Fatal(err)
		}
		stays()
		for range 10 {
			if body, _ := ask(c, "/"); body == home {
				t.Errorf("a new session at a server that drains")
			}
		}
		if st := s.pool.Status()[0].Servers[i]; !st.Draining || st.State != "draining" {
			t.Errorf("%+v", st)
		}
		s.o.Upstream.Drain(addrs[i], false)
		all[i].close()
		if body, res := ask(c, "/", "Cookie: "+name); body == home || res.StatusCode != 200 {
			t.Errorf("%s from %s", res.Status, body)
		}
		if body, res := ask(c, "/", "Cookie: chert-server=x"); res.Header.Get("Set-Cookie") == "" {
			t.Errorf("no new cookie, from %s", body)
		}
	})
}

// TestSlowStart: a server that drained gets a small part of its share when it is back.
func TestSlowStart(t *testing.T) {
	t.Parallel()
	_, addrs := named(t, 2)
	s := &setup{}
	s.up.Balance.Policy = proxy.PolicyRoundRobin
	s.up.SlowStart = time.Hour
	c := s.start(t, chert.EngineGoroutines, addrs...).Dial()
	for _, want := range []int{10, 2} { // an eleventh
		got := 0
		for range 20 {
			if body, _ := ask(c, "/"); body == "1" {
				got++
			}
		}
		if got != want {
			t.Errorf("%d of 20 requests, want %d", got, want)
		}
		for _, on := range []bool{true, false} {
			if err := s.o.Upstream.Drain(addrs[1], on); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestEjection: a server that fails gets no requests; the log says why and until when; a
// probe brings it back.
func TestEjection(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		_, addrs := named(t, 2)
		bad := freeport.Addr(t)
		s := &setup{}
		s.up.Balance.Policy = proxy.PolicyRoundRobin
		s.up.Health = proxy.Health{Consecutive: 3, Ejection: 20 * time.Millisecond}
		s.up.SlowStart = -1
		ts := s.start(t, e, bad, addrs[0], addrs[1])
		c := ts.Dial()
		for range 12 {
			if _, res := ask(c, "/"); res.StatusCode != 200 {
				t.Fatal(res.Status, s.log)
			}
		}
		if got := s.log.String(); strings.Count(got, "-> ejected: consecutive failures, connection refused, until ") != 1 {
			t.Errorf("log %s", got)
		}
		l, err := net.Listen("tcp", bad)
		if err != nil {
			t.Fatal(err)
		}
		startOn(t, l, each(ok))
		servertest.Eventually(t, "the server to be up", func() bool {
			if _, res := ask(c, "/"); res.StatusCode != 200 {
				t.Fatal(res.Status, s.log)
			}
			return s.pool.Status()[0].Servers[0].State == "up"
		})
	})
}

// TestPanic: if all servers are ejected, they are used nevertheless.
func TestPanic(t *testing.T) {
	o := start(t, each("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"))
	s := &setup{}
	s.up.Health.Consecutive = 2
	c := s.start(t, chert.EngineGoroutines, o.addr()).Dial()
	for range 6 {
		if _, res := ask(c, "/"); res.StatusCode != 503 || res.Header.Get("Proxy-Status") != "" {
			t.Errorf("%s %v", res.Status, res.Header)
		}
	}
	if st := s.pool.Status()[0]; !st.Panic || st.Servers[0].State != "ejected" || st.Servers[0].Cause != "consecutive failures: status 503" {
		t.Errorf("%+v", st)
	}
}

// TestCheck: a server whose checks fail gets nothing, even if no other is left.
func TestCheck(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	status, heads := 200, map[string]bool{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/healthz" {
			heads[r.Host+" "+r.UserAgent()] = true
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(up.Close)
	addr := up.Listener.Addr().String()
	s := &setup{}
	s.up.Check = &proxy.Check{Path: "/healthz", Host: "app", Interval: 10 * time.Millisecond, Timeout: servertest.Patience}
	c := s.start(t, chert.EngineGoroutines, addr).Dial()
	check := func(want string) {
		t.Helper()
		servertest.Eventually(t, want, func() bool { return s.pool.Status()[0].Servers[0].Check == want })
	}
	check("passing")
	if _, res := ask(c, "/"); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	mu.Lock()
	status = 500
	mu.Unlock()
	check("failing")
	if _, res := ask(c, "/"); res.StatusCode != 503 || res.Header.Get("Proxy-Status") != "chert; error=destination_unavailable" {
		t.Error(res.Status, res.Header)
	}
	if st := s.pool.Status()[0].Servers[0]; st.Cause != "checks failed: unexpected status" {
		t.Errorf("%+v", st)
	}
	mu.Lock()
	status = 200
	mu.Unlock()
	check("passing")
	if _, res := ask(c, "/"); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	mu.Lock()
	defer mu.Unlock()
	if !heads["app chert-check"] || len(heads) != 1 {
		t.Errorf("%v", heads)
	}
}

// TestReload: an Upstream that is made before another is closed has its servers' state and
// connections.
func TestReload(t *testing.T) {
	alike(t, func(t *testing.T, e chert.Engine) {
		all, addrs := named(t, 2)
		s := &setup{}
		s.up.Balance = proxy.Balance{Policy: proxy.PolicyHash, Key: proxy.ByPath()}
		var current *proxy.Upstream
		var mu sync.Mutex
		s.o.Choose = func(*http.Request) *proxy.Upstream {
			mu.Lock()
			defer mu.Unlock()
			return current
		}
		c := s.start(t, e, addrs[0]).Dial()
		ask(c, "/")
		o := s.up
		o.Servers = append([]proxy.Server(nil), proxy.Server{Addr: addrs[0]}, proxy.Server{Addr: addrs[1]})
		next, err := s.pool.Upstream(&o)
		if err != nil {
			t.Fatal(err)
		}
		if m := proxy.Moved(s.o.Upstream, next); m != 0.5 {
			t.Errorf("%v moves", m)
		}
		mu.Lock()
		current = next
		mu.Unlock()
		s.o.Upstream.Close()
		s.o.Upstream.Close()
		for i := range 20 {
			if _, res := ask(c, "/"+fmt.Sprint(i)); res.StatusCode != 200 {
				t.Fatal(res.Status, s.log)
			}
		}
		if all[0].dials() != 1 {
			t.Errorf("%d connections", all[0].dials())
		}
		st := s.pool.Status()
		if len(st) != 1 || st[0].Servers[0].State != "up" || st[0].Servers[0].Requests < 2 {
			t.Errorf("%+v", st)
		}
		next.Close()
		if _, res := ask(c, "/"); res.StatusCode != 503 {
			t.Error(res.Status)
		}
	})
}

// TestUnix forwards to a unix socket.
func TestUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no unix sockets: %v", err)
	}
	o := startOn(t, l, each(ok))
	s := &setup{o: proxy.Options{Host: "upstream"}}
	c := s.start(t, chert.EngineGoroutines, "unix:"+path).Dial()
	for range 2 {
		if _, res := ask(c, "/"); res.StatusCode != 200 {
			t.Fatal(res.Status, s.log)
		}
	}
	if o.dials() != 1 || !strings.Contains(o.received(), "\r\nHost: localhost\r\n") {
		t.Errorf("%d connections, %q", o.dials(), o.received())
	}
	o.close()
	if _, res := ask(c, "/"); res.Header.Get("Proxy-Status") != "chert; error=connection_refused" {
		t.Error(res.Status, res.Header, s.log)
	}
}

// TestTLS tests what is verified of a server, and what it learns.
func TestTLS(t *testing.T) {
	cert, roots := servertest.Certificate(t)
	var mu sync.Mutex
	seen := ""
	serve := func(e chert.Engine, auth tls.ClientAuthType, protocols *http.Protocols) string {
		l := servertest.ListenTCP(t)
		engines.StartTLS(t, &chert.Server{Engine: e, Protocols: protocols, TLSConfig: &tls.Config{ClientAuth: auth},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				seen = fmt.Sprintf("%s sni=%s certs=%d", r.Proto, r.TLS.ServerName, len(r.TLS.PeerCertificates))
				io.WriteString(w, "ok")
			})}, l, cert)
		return l.Addr().String()
	}
	plain := serve(chert.EngineLoops, tls.NoClientCert, nil)
	mutual := serve(chert.EngineGoroutines, tls.RequireAnyClientCert, nil)
	for _, c := range []struct {
		name, addr string
		tls        *tls.Config
		protocol   proxy.Protocol
		want       string
	}{
		{"own authority", plain, &tls.Config{RootCAs: roots}, 0, "HTTP/1.1 sni= certs=0"},
		{"name", plain, &tls.Config{RootCAs: roots, ServerName: "example.com"}, 0, "HTTP/1.1 sni=example.com certs=0"},
		{"HTTP/2", plain, &tls.Config{RootCAs: roots, ServerName: "example.com"}, proxy.ProtocolHTTP2, "HTTP/2.0 sni=example.com certs=0"},
		{"client certificate", mutual, &tls.Config{RootCAs: roots, ServerName: "example.com", Certificates: []tls.Certificate{cert}}, 0, "HTTP/1.1 sni=example.com certs=1"},
		{"unknown authority", plain, &tls.Config{RootCAs: x509.NewCertPool()}, 0, "tls_certificate_error"},
		{"another name", plain, &tls.Config{RootCAs: roots, ServerName: "example.net"}, 0, "tls_certificate_error"},
		{"unknown authority, HTTP/2", plain, &tls.Config{RootCAs: x509.NewCertPool()}, proxy.ProtocolHTTP2, "tls_certificate_error"},
		{"no client certificate", mutual, &tls.Config{RootCAs: roots, ServerName: "example.com"}, 0, "tls_alert_received"},
		{"speaks no TLS", start(t, each(ok)).addr(), &tls.Config{RootCAs: roots, ServerName: "example.com"}, 0, "tls_protocol_error"},
	} {
		for _, e := range []chert.Engine{chert.EngineGoroutines, chert.EngineAuto} {
			t.Run(fmt.Sprint(c.name, " ", e), func(t *testing.T) {
				s := &setup{placement: chert.PlacementInline}
				s.up.TLS, s.up.Protocol = c.tls, c.protocol
				client := s.start(t, e, c.addr).Dial()
				for range 2 {
					mu.Lock()
					seen = ""
					mu.Unlock()
					_, res := ask(client, "/")
					mu.Lock()
					got := seen + strings.TrimPrefix(res.Header.Get("Proxy-Status"), "chert; error=")
					mu.Unlock()
					if got != c.want {
						t.Errorf("got %q, want %q; log %s", got, c.want, s.log)
					}
				}
				if st := s.pool.Status()[0].Servers[0]; c.want[0] == 'H' && st.Dials != 1 {
					t.Errorf("%d connections", st.Dials)
				}
			})
		}
	}
}

// TestReport tests what a log learns of a request.
func TestReport(t *testing.T) {
	o := start(t, each(ok))
	s := &setup{}
	s.up.Balance.Policy = proxy.PolicyRoundRobin
	h := s.handler(t, freeport.Addr(t), o.addr())
	var report proxy.Report
	ts := engines.Start(t, &chert.Server{Engine: chert.EngineGoroutines, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		report = proxy.Report{}
		h.ServeHTTP(w, r.WithContext(proxy.WithReport(r.Context(), &report)))
		w.Header().Set("X", "y")
	})})
	c := ts.Dial()
	ask(c, "/")
	servertest.Eventually(t, "the report", func() bool { return report.Total > 0 })
	if r := report; r.Upstream != "app" || r.Server != o.addr() || r.Tries != 2 || r.Reused || r.Err != nil || r.Connect == 0 || r.FirstByte == 0 {
		t.Errorf("%+v", r)
	}
}
