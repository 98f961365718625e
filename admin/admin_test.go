package admin_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/admin"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
	"github.com/chert-http/chert/stats"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// source is a server that has served n requests.
type source struct {
	asked atomic.Int64
	since time.Time

	mu       sync.Mutex
	n        uint64
	requests []stats.Request
	conns    []stats.Connection
}

func newSource() *source { return &source{since: time.Now().Add(-time.Hour)} }

func (s *source) Stats() stats.Snapshot {
	s.asked.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += 100
	snap := stats.Snapshot{At: time.Now(), Since: s.since, Requests: []stats.Requests{{Protocol: "HTTP/1.1", Class: 2, Way: stats.Inline, N: s.n}},
		Routes: []stats.Route{{Pattern: "GET /<b>{id}", Classes: [6]uint64{2: s.n}}}}
	snap.Total.Observe(time.Millisecond, s.n)
	return snap
}

func (s *source) RunningRequests(most int) []stats.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[:min(len(s.requests), most)]
}

func (s *source) OpenConnections(most int) []stats.Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[:min(len(s.conns), most)]
}

func serve(t *testing.T, src stats.Source, o *admin.Options) (base string) {
	t.Helper()
	ts := httptest.NewServer(admin.New(src, o))
	t.Cleanup(ts.Close)
	return ts.URL
}

// do sends a request with fields as "Name: value"; "Host" is the host.
func do(t *testing.T, method, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Set(name, value)
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the metrics") })
	base := serve(t, newSource(), &admin.Options{Metrics: metrics, Title: "<i>mine"})
	for _, tt := range []struct {
		path, kind, body string
		status           int
	}{
		{"/", "text/html; charset=utf-8", "&lt;i&gt;mine", 200},
		{"/style.css", "text/css; charset=utf-8", "--card", 200},
		{"/script.js", "text/javascript; charset=utf-8", "EventSource", 200},
		{"/stats", "application/json", `"Requests"`, 200},
		{"/metrics", "text/plain; charset=utf-8", "the metrics", 200},
		{"/healthz", "text/plain; charset=utf-8", "ok", 200},
		{"/readyz", "text/plain; charset=utf-8", "ready", 200},
		{"/debug/requests", "application/json", `"Requests":[]`, 200},
		{"/setup", "application/json", `{"Addrs":null}`, 200},
		{"/debug/connections", "application/json", `"Connections":[]`, 200},
		{"/debug/pprof/", "text/html; charset=utf-8", "profile?seconds=5", 200},
		{"/debug/pprof/goroutine?debug=1", "text/plain; charset=utf-8", "goroutine profile", 200},
		{"/debug/pprof/heap", "application/octet-stream", "", 200},
		{"/debug/pprof/nothing", "text/plain; charset=utf-8", "no such profile", 404},
		{"/debug/pprof/cmdline", "text/plain; charset=utf-8", "no such profile", 404}, // has secrets of some programs
		{"/other", "text/plain; charset=utf-8", "not found", 404},
	} {
		res, body := do(t, "GET", base+tt.path)
		if res.StatusCode != tt.status || res.Header.Get("Content-Type") != tt.kind || !strings.Contains(body, tt.body) {
			t.Errorf("%s: %d %q %.200q", tt.path, res.StatusCode, res.Header.Get("Content-Type"), body)
		}
		if strings.Contains(body, "<i>mine") {
			t.Errorf("%s has the title as markup", tt.path)
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; ") || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", tt.path, res.Header)
		}
		if res, body := do(t, "HEAD", base+tt.path); body != "" || tt.kind != "application/octet-stream" && res.StatusCode != tt.status {
			t.Errorf("HEAD %s: %d %q", tt.path, res.StatusCode, body)
		}
		if res, _ := do(t, "POST", base+tt.path); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d", tt.path, res.StatusCode)
		}
	}
	if res, _ := do(t, "GET", serve(t, newSource(), nil)+"/metrics"); res.StatusCode != 404 {
		t.Errorf("without metrics: %d", res.StatusCode)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	base := serve(t, newSource(), &admin.Options{Ready: func() bool { return !draining.Load() }})
	if res, _ := do(t, "GET", base+"/readyz"); res.StatusCode != 200 {
		t.Errorf("%d before the drain", res.StatusCode)
	}
	draining.Store(true)
	if res, _ := do(t, "GET", base+"/readyz"); res.StatusCode != 503 {
		t.Errorf("%d during the drain", res.StatusCode)
	}
	if res, _ := do(t, "GET", base+"/healthz"); res.StatusCode != 200 {
		t.Errorf("draining is not unhealthy, but %d", res.StatusCode)
	}
}

// What web pages in an operator's browser can send.
func TestGuard(t *testing.T) {
	t.Parallel()
	base := serve(t, newSource(), nil) // on 127.0.0.1
	named := serve(t, newSource(), &admin.Options{Hosts: []string{"Server1.example"}})
	const page = "Sec-Fetch-Dest: document"
	for _, tt := range []struct {
		why, base, path string
		fields          []string
		status          int
	}{
		{"an address", base, "/stats", nil, 200},
		{"a name of this machine", base, "/stats", []string{"Host: localhost:9080"}, 200},
		{"in any case, with a dot", base, "/stats", []string{"Host: LocalHost."}, 200},
		{"one below it", base, "/stats", []string{"Host: chert.localhost:1"}, 200},
		{"IPv6", base, "/stats", []string{"Host: [::1]:9080"}, 200},
		{"rebinding", base, "/stats", []string{"Host: attacker.example:9080"}, 421},
		{"rebinding, no port", base, "/", []string{"Host: attacker.example"}, 421},
		{"looks like an address", base, "/", []string{"Host: 127.0.0.1.attacker.example"}, 421},
		{"looks like localhost", base, "/", []string{"Host: notlocalhost"}, 421},
		{"name with a path of health", base, "/readyz", []string{"Host: attacker.example"}, 421},
		{"configured", named, "/stats", []string{"Host: server1.EXAMPLE:80"}, 200},
		{"another", named, "/stats", []string{"Host: server2.example"}, 421},
		{"fetch of another site", base, "/stats", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"}, 403},
		{"image of another site", base, "/debug/pprof/heap", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"script of another port", base, "/script.js", []string{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"}, 403},
		{"frame of another site", base, "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"}, 403},
		{"link of another site", base, "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", page}, 200},
		{"link to a profile", base, "/debug/pprof/heap", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", page}, 403},
		{"typed", base, "/debug/pprof/heap", []string{"Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate", page}, 200},
		{"its own script", base, "/stats", []string{"Sec-Fetch-Site: same-origin"}, 200},
		{"old browser, another origin", base, "/stats", []string{"Origin: http://attacker.example"}, 403},
		{"opaque origin", base, "/stats", []string{"Origin: null"}, 403},
		{"old browser, image", base, "/debug/pprof/heap", []string{"Referer: http://attacker.example/"}, 403},
		{"old browser, link", base, "/", []string{"Referer: http://wiki.example/"}, 200},
		{"its own origin", base, "/stats", []string{"Origin: " + base}, 200},
	} {
		res, body := do(t, "GET", tt.base+tt.path, tt.fields...)
		if res.StatusCode != tt.status {
			t.Errorf("%s: %d %.100q, want %d", tt.why, res.StatusCode, body, tt.status)
		}
		if res.Header.Get("Access-Control-Allow-Origin") != "" || res.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: %v", tt.why, res.Header)
		}
	}
}

// On an address that others reach any name is accepted, unless names are given.
func TestGuardElsewhere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		local  net.Addr
		hosts  []string
		status int
	}{
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, nil, 200},
		{&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, []string{"a.example"}, 421},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 80}, nil, 421},
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, nil, 200}, // HTTP/3
		{&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}, []string{"a.example"}, 421},
		{&net.UDPAddr{IP: net.IPv6loopback, Port: 80}, nil, 421},
		{&net.UDPAddr{IP: net.IPv6unspecified, Port: 80}, nil, 421},
		{&net.UnixAddr{Name: "/s", Net: "unix"}, nil, 200},
		{nil, nil, 421}, // unknown
	} {
		h := admin.New(newSource(), &admin.Options{Hosts: tt.hosts})
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://b.example/stats", nil)
		if tt.local != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.local))
		}
		h.ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%v %v: %d, want %d", tt.local, tt.hosts, w.Code, tt.status)
		}
	}
}

// Names that clients send appear as text, in both forms.
func TestRequests(t *testing.T) {
	t.Parallel()
	src := newSource()
	now := time.Now()
	for i := range 5 {
		src.requests = append(src.requests, stats.Request{ID: uint64(i), Method: "GET", Target: fmt.Sprintf("/<script>%d", i), Peer: "192.0.2.1:1",
			Began: now.Add(-time.Duration(i) * time.Minute), Stage: "handler", Way: stats.Pooled, Loop: 1})
		src.conns = append(src.conns, stats.Connection{Peer: "192.0.2.1:1", Protocol: "HTTP/1", State: "active", Since: now, Unsent: 1 << 20})
	}
	base := serve(t, src, nil)
	_, body := do(t, "GET", base+"/debug/requests", "Accept: text/html,application/xhtml+xml")
	if strings.Contains(body, "<script>") || !strings.Contains(body, "/&lt;script&gt;4") || !strings.Contains(body, "pooled") {
		t.Errorf("page: %s", body)
	}
	if first, second := strings.Index(body, "script&gt;4"), strings.Index(body, "script&gt;0"); first > second {
		t.Error("the longest is not the first")
	}
	_, body = do(t, "GET", base+"/debug/requests?max=2", "Accept: application/json")
	var list struct{ Requests []stats.Request }
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Requests) != 2 {
		t.Errorf("%v %s", err, body)
	}
	_, body = do(t, "GET", base+"/debug/connections?format=html&max=3")
	if n := strings.Count(body, "1 MiB"); n != 3 || !strings.Contains(body, "There may be more") {
		t.Errorf("%d rows: %s", n, body)
	}
	if _, body = do(t, "GET", base+"/debug/connections?format=json", "Accept: text/html"); !strings.Contains(body, `"Unsent":1048576`) {
		t.Error(body)
	}
}

// One profile at a time: a client cannot make the server take many. It ends when its
// client goes.
func TestOneProfile(t *testing.T) {
	t.Parallel()
	base := serve(t, newSource(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil { // the other one may be first
			req, err := http.NewRequestWithContext(ctx, "GET", base+"/debug/pprof/block?seconds=60", nil)
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultTransport.RoundTrip(req); err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}
	}()
	status := func() int {
		res, _ := do(t, "GET", base+"/debug/pprof/goroutine")
		return res.StatusCode
	}
	servertest.Eventually(t, "a second profile is refused", func() bool { return status() == 503 })
	cancel()
	servertest.Await(t, done, "the first profile")
	servertest.Eventually(t, "another profile can be taken", func() bool { return status() == 200 })
}

// Queries of clients may contain secrets.
func TestNoQueries(t *testing.T) {
	t.Parallel()
	src := newSource()
	src.requests = []stats.Request{{Method: "GET", Target: "/reset?token=secret", Stage: "write", Began: time.Now().Add(-time.Hour)}}
	base := serve(t, src, nil)
	for _, path := range []string{"/debug/requests", "/debug/requests?format=html"} {
		if _, body := do(t, "GET", base+path); strings.Contains(body, "secret") || !strings.Contains(body, "/reset?...") {
			t.Errorf("%s: %s", path, body)
		}
	}
	res, err := http.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for r := bufio.NewReader(res.Body); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "secret") {
			t.Error(line)
		}
		if strings.Contains(line, "/reset") {
			break
		}
	}
}

// reluctant records whether each Write of a profile has a deadline.
type reluctant struct {
	*httptest.ResponseRecorder
	armed   bool
	unbound int
}

func (r *reluctant) SetWriteDeadline(t time.Time) error {
	r.armed = !t.IsZero() && time.Until(t) < time.Minute
	return nil
}

func (r *reluctant) Write(p []byte) (int, error) {
	if !r.armed {
		r.unbound++
	}
	r.armed = false
	return r.ResponseRecorder.Write(p)
}

// A client that does not read cannot prevent other profiles.
func TestProfileHasDeadlines(t *testing.T) {
	t.Parallel()
	h := admin.New(newSource(), nil)
	for _, path := range []string{"heap", "goroutine?debug=1"} {
		w := &reluctant{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/debug/pprof/"+path, nil))
		if w.Code != 200 || w.Body.Len() == 0 || w.unbound > 0 || w.armed {
			t.Errorf("%s: %d, %d bytes, %d writes without a deadline", path, w.Code, w.Body.Len(), w.unbound)
		}
	}
}

// watch waits for the first line of the events.
func watch(t *testing.T, base string) {
	t.Helper()
	res, err := http.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if _, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

func TestTooManyViewers(t *testing.T) {
	t.Parallel()
	base := serve(t, newSource(), nil)
	for range 64 {
		watch(t, base)
	}
	res, err := http.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
		t.Errorf("the 65th: %d", res.StatusCode)
	}
}

// The state of upstreams and stores is sent as it is, and none as an empty list.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]*admin.Options{
		`"upstreams":[],"stores":[]}`: nil,
		`"upstreams":[{"name":"app","balance":"least","panic":false,"queue":0,"max_queue":0,`: {Upstreams: func() []proxy.UpstreamStatus {
			return []proxy.UpstreamStatus{{Name: "app", Balance: "least"}}
		}},
		`"stores":[{"name":"topics","away":true,"streams":2,"read":7,"published":5,"failed":1,"waiting":3,"cuts":4,"gaps":6}]}`: {
			Stores: func() []stats.Store {
				return []stats.Store{{Name: "topics", Away: true, Streams: 2, Read: 7, Published: 5, Failed: 1, Waiting: 3,
					Cuts: 4, Gaps: 6}}
			}},
	} {
		res, body := do(t, "GET", serve(t, newSource(), o)+"/upstreams")
		body = strings.Join(strings.Fields(body), "")
		if res.StatusCode != 200 || !strings.HasPrefix(body, `{"at":"20`) || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %s", res.StatusCode, body, want)
		}
	}
}
