package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/static"
)

// inLog is h in a log, as a server has it.
func inLog(access *middleware.AccessLog, h http.Handler) http.Handler {
	l := &logs{top: access}
	return l.around(l.ofFile(h))
}

// ask sends a request on the fast path.
func ask(h direct.Handler, method, host, target string) (x *direct.Exchange, ok bool) {
	path, query, _ := strings.Cut(target, "?")
	x = new(direct.Exchange)
	x.Wire().Reset(wire.Request{
		Method: method, Target: []byte(target), Path: []byte(path), RawQuery: []byte(query), Host: []byte(host),
		RemoteAddr: "192.0.2.1:1234", Fields: wire.FieldsOf(nil),
	})
	if ok = h.ServeDirect(x); ok {
		sent(x)
	}
	return x, ok
}

// sent notifies the watcher of the response, as a server does.
func sent(x *direct.Exchange) {
	status := x.Wire().Status()
	d := wire.Delivery{Status: status, Body: x.Wire().Size(), Complete: true}
	if x.Method() == "HEAD" || status == 304 {
		d.Body = 0
	}
	if w := x.Wire().TakeWatcher(); w != nil {
		w.Sent(d)
	}
}

// watched is a recorder that notifies watchers of the delivery.
type watched struct {
	*httptest.ResponseRecorder
	watcher wire.Watcher
}

func (w *watched) Watch(watcher wire.Watcher) bool {
	w.watcher = watcher
	return true
}

// askPlain sends a request on the ordinary path, as a server does.
func askPlain(h http.Handler, r *http.Request) {
	w := &watched{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, r)
	d := wire.Delivery{Status: w.Code, Body: int64(w.Body.Len()), Complete: true}
	if r.Method == "HEAD" {
		d.Body = 0
	}
	w.watcher.Sent(d)
}

// Counting and logging a request does not allocate.
func TestFrontAllocates(t *testing.T) {
	page := direct.NewResponse(200, nil, []byte("page"))
	s := newSites(nil)
	for _, p := range []vhost.Pattern{"example.com", "*.example.org"} {
		s.add([]vhost.Pattern{p}, page)
	}
	f := &front{}
	f.replace(newGeneration(s, nil))
	var x direct.Exchange
	for _, host := range []string{"example.com:80", "WWW.example.org", "unknown"} {
		req := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), Host: []byte(host), RemoteAddr: "192.0.2.1:1234"}
		if n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(req)
			if !f.ServeDirect(&x) {
				t.Error("not direct")
			}
			sent(&x)
		}); n != 0 {
			t.Errorf("%s: %v allocations", host, n)
		}
	}
}

func TestFrontCounts(t *testing.T) {
	t.Parallel()
	mux := direct.HandlerFunc(func(x *direct.Exchange) {
		switch string(x.Path()) {
		case "/404":
			x.SetStatus(404)
		case "/503":
			x.SetStatus(503)
		case "/304":
			x.SetStatus(304)
		}
		x.WriteString("12345")
	})
	f := &front{}
	f.replace(newGeneration(mux, nil))
	for _, r := range []struct{ method, path string }{
		{"GET", "/"}, {"HEAD", "/"}, {"GET", "/404"}, {"GET", "/503"}, {"GET", "/304"},
	} {
		if _, ok := ask(f, r.method, "x", r.path); !ok {
			t.Errorf("%v got no response", r)
		}
		askPlain(f, httptest.NewRequest(r.method, r.path, nil))
	}
	// Both ways count alike: 10 requests, the bodies of GET without 304's.
	text := f.tally.summary(0, static.Stats{Hits: 3, Misses: 1}, 0)
	lines := strings.Split(text, "\n")
	if lines[0] != "chert: 10 requests and 30B in 0s" || lines[1] != "chert: 2 answered 4xx, 2 answered 5xx; 75.0 % from the cache" ||
		!strings.HasPrefix(lines[2], `chert: slowest: `) || len(lines) != 4 || lines[3] != "" {
		t.Errorf("%s", text)
	}
}

func TestSummaryOfNothing(t *testing.T) {
	t.Parallel()
	var none tally
	if got := none.summary(90e9, static.Stats{}, 0); got != "chert: 0 requests and 0B in 1m30s\n" {
		t.Errorf("%q", got)
	}
}

func TestSlowest(t *testing.T) {
	t.Parallel()
	var f tally
	f.count(0, 200, 1)
	f.slow("GET", "/a", 5e6)
	f.slow("GET", "/b\n\u202e\xff", 1234567890)
	f.slow("GET", "/c", 6e6)
	if got := f.summary(0, static.Stats{}, 0); !strings.HasSuffix(got, "\nchert: slowest: GET \"/b\\n\\u202e\\xff\" in 1.23s\n") {
		t.Errorf("%q", got)
	}
	f.slow("GET", "/"+strings.Repeat("x", 1000), 2e12)
	if got := f.summary(0, static.Stats{}, 0); len(got) > 400 || !strings.Contains(got, `xxx"... in 33m20s`) {
		t.Errorf("%q", got)
	}
}

// A handler without a fast path, or one that declines, is called on the ordinary path, and counted once.
func TestFrontPlain(t *testing.T) {
	t.Parallel()
	f := &front{}
	f.replace(newGeneration(http.NotFoundHandler(), nil))
	if _, ok := ask(f, "GET", "x", "/"); ok {
		t.Error("a plain handler responded directly")
	}
	f.replace(newGeneration(declining{}, nil))
	if _, ok := ask(f, "GET", "x", "/"); ok {
		t.Error("a handler that declines responded directly")
	}
	askPlain(f, httptest.NewRequest("GET", "/", nil))
	if got := f.tally.summary(0, static.Stats{}, 0); !strings.HasPrefix(got, "chert: 1 request and 5B ") {
		t.Errorf("%q", got)
	}
}

type declining struct{}

func (declining) ServeDirect(*direct.Exchange) bool { return false }

func (declining) ServeHTTP(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "plain") }

// Both ways log the same.
func TestFrontLogsDirect(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newLog(&out)
	f := &front{}
	f.replace(newGeneration(inLog(logJSON.access(l), direct.NewResponse(404, nil, []byte("none"))), nil))
	if _, ok := ask(f, "GET", "x", "/a b?secret"); !ok {
		t.Error("not direct")
	}
	l.Close()
	line, err := parseJSON(out.String())
	if err != nil {
		t.Fatal(err)
	}
	line.Time, line.Latency = "", nil
	want := requestLine{Level: "INFO", Msg: "request", Method: "GET", Host: "x", Path: "/a b", Remote: "192.0.2.1", Proto: "HTTP/1.1", Status: 404, Bytes: 4}
	if !reflect.DeepEqual(line, want) {
		t.Errorf("got  %+v\nwant %+v", line, want)
	}
}

// gate is a writer that waits until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	buf  bytes.Buffer
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(p)
}

// While the log's reader is stuck, no request is served on the fast path, memory does not grow, and no line is lost.
func TestFullLogWaits(t *testing.T) {
	t.Parallel()
	g := &gate{open: make(chan struct{})}
	l := newLog(g)
	f := &front{}
	f.replace(newGeneration(inLog(logText.access(l), direct.NewResponse(200, nil, nil)), nil))
	n := 0
	until(t, func() bool {
		_, ok := ask(f, "GET", "x", "/"+strings.Repeat("x", 10000))
		if ok {
			n++
		}
		return !ok
	})
	done := make(chan struct{})
	go func() {
		f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)) // waits
		close(done)
	}()
	close(g.open)
	<-done
	l.Close()
	if got := strings.Count(g.buf.String(), "\n"); got != n+1 {
		t.Errorf("%d lines of %d requests", got, n+1)
	}
	l.Write([]byte("late\n"))
	if !strings.HasSuffix(g.buf.String(), "\nlate\n") {
		t.Error("a line after close is lost")
	}
}

// closing is a handler that notices requests after it was closed.
type closing struct {
	closed atomic.Bool
	late   *atomic.Int64
}

func (c *closing) ServeDirect(x *direct.Exchange) bool {
	for range 10 {
		if c.closed.Load() {
			c.late.Add(1)
		}
	}
	return true
}

func (c *closing) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.ServeDirect(nil) }

// A generation is not closed while a request uses it, however often it is replaced.
func TestReplaceUnderLoad(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	f := &front{}
	current := &closing{late: &late}
	f.replace(newGeneration(current, nil))
	var stop atomic.Bool
	var users sync.WaitGroup
	for i := range 4 {
		users.Go(func() {
			for !stop.Load() {
				if i%2 == 0 {
					ask(f, "GET", "x", "/")
				} else {
					f.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
				}
			}
		})
	}
	for range 200 {
		next := &closing{late: &late}
		old := f.now.Swap(newGeneration(next, nil))
		until(t, old.idle)
		current.closed.Store(true)
		current = next
	}
	stop.Store(true)
	users.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d requests saw a closed handler", n)
	}
}

// A replaced generation is forgotten, but the counts of its cache are kept.
func TestRetire(t *testing.T) {
	t.Parallel()
	f := &front{}
	for range 20 {
		h, err := static.New(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		f.replace(newGeneration(h, nil, h))
	}
	until(t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.old) == 0
	})
	f.now.Load().close()
}

func TestSitesByHost(t *testing.T) {
	t.Parallel()
	s := newSites(nil)
	s.add([]vhost.Pattern{"a.example"}, direct.NewResponse(200, nil, []byte("a")))
	s.add([]vhost.Pattern{"*.b.example", "::1"}, direct.NewResponse(200, nil, []byte("b")))
	for host, want := range map[string]int{
		"a.example": 200, "A.EXAMPLE.:80": 200, "x.b.example": 200, "[::1]:8080": 200,
		"b.example": 421, "": 421, "other": 421,
	} {
		x, ok := ask(s, "GET", host, "/")
		rec := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		s.ServeHTTP(rec, r)
		if !ok || x.Wire().Status() != want || rec.Code != want {
			t.Errorf("%q: direct %d, plain %d, want %d", host, x.Wire().Status(), rec.Code, want)
		}
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	tests := []struct{ to, host, target, want string }{
		{"https://example.com/", "x", "/a?b", "https://example.com/"},
		{"https://example.com{uri}", "x", "/a?b", "https://example.com/a?b"},
		{"https://example.com/old{uri}", "x", "/", "https://example.com/old/"},
		{"https://example.com{uri}", "x", "//evil.example/", "https://example.com//evil.example/"},
		{"https://example.com{uri}", "x", "/a%0d%0ab%20", "https://example.com/a%0d%0ab%20"},
		{"https://example.com{uri}", "x", "/\xc3\xa4\"<>{host}", "https://example.com/%C3%A4%22%3C%3E%7Bhost%7D"},
		{"https://example.com{uri}", "x", "*", "https://example.com/"}, // OPTIONS *
		{"https://{host}{uri}", "Example.com:8080", "/a", "https://example.com/a"},
		{"https://{host}{uri}", "[::1]:8080", "/a", "https://[::1]/a"},
		{"https://{host}.example{uri}", "x", "/{uri}", "https://x.example/%7Buri%7D"},
		{"https://{host}{uri}", "evil.example/x", "/a", ""}, // 421: it would go elsewhere
		{"https://{host}{uri}", "a@evil.example", "/a", ""},
		{"https://{host}{uri}", "", "/a", ""},
	}
	for _, tt := range tests {
		d := &redirect{target(t, tt.to, nil), 308}
		x, ok := ask(d, "GET", tt.host, tt.target)
		want := 308
		if tt.want == "" {
			want = 421
		}
		if got := x.Wire().GetHeader("Location"); !ok || x.Wire().Status() != want || got != tt.want {
			t.Errorf("%s of %q %q: %d %q, want %q", tt.to, tt.host, tt.target, x.Wire().Status(), got, tt.want)
		}
	}
	// The absolute form reaches the ordinary path only.
	r := httptest.NewRequest("GET", "http://old.example/a%20b?c", nil)
	rec := httptest.NewRecorder()
	(&redirect{target(t, "https://new.example{uri}", nil), 301}).ServeHTTP(rec, r)
	if got := rec.Header().Get("Location"); rec.Code != 301 || got != "https://new.example/a%20b?c" {
		t.Errorf("%d %q", rec.Code, got)
	}
}

func target(t testing.TB, to string, w *config.Wildcards) config.Target {
	t.Helper()
	parsed, err := config.ParseTarget(to, w)
	if err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	return parsed
}

func TestShards(t *testing.T) {
	t.Parallel()
	seen := make(map[int]bool)
	for _, remote := range []string{"", "@", "1", "\xff\xff\xff\xff", "[::1]:80"} {
		if n := shardOf(remote); n < 0 || n >= shards {
			t.Errorf("%q: %d", remote, n)
		}
	}
	for port := 32768; port < 32868; port += 2 {
		seen[shardOf("127.0.0.1:"+fmt.Sprint(port))] = true
	}
	if len(seen) != shards {
		t.Errorf("%d of %d shards are used", len(seen), shards)
	}
}

// What front and sites add to a direct response.
func BenchmarkFront(b *testing.B) {
	page := direct.NewResponse(200, nil, []byte("page"))
	s := newSites(nil)
	s.add([]vhost.Pattern{"example.com", "*.example.org"}, page)
	f := &front{}
	f.replace(newGeneration(s, nil))
	for name, h := range map[string]direct.Handler{"bare": page, "front": f} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var port atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				var x direct.Exchange
				req := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), Host: []byte("example.com:8080")}
				req.RemoteAddr = fmt.Sprint("192.0.2.1:", 1000+2*port.Add(1))
				x.Wire().Reset(req)
				for pb.Next() {
					h.ServeDirect(&x)
					sent(&x)
				}
			})
		})
	}
}
