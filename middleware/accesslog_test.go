package middleware

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

var moment = time.Date(2026, 11, 21, 4, 5, 6, 5e8, time.FixedZone("", 3600))

// newTestLog returns a log with a fixed wall clock and a latency of 1500 us.
func newTestLog(o AccessLogOptions) *AccessLog {
	l := NewAccessLog(&o)
	l.stamp.now = func() time.Time { return moment }
	var at time.Duration
	l.mono = func() time.Duration { at += 1500 * time.Microsecond; return at }
	return l
}

func TestAccessLogLines(t *testing.T) {
	const from = "192.0.2.1 - - [21/Nov/2026:04:05:06 +0100] "
	long := strings.Repeat("a", 5000)
	for _, tt := range []struct {
		name string
		o    AccessLogOptions
		r    *http.Request
		want string
	}{
		{"combined", AccessLogOptions{}, request("GET", "/a", "", "User-Agent", "ua", "Referer", "http://r/"), from + `"GET /a HTTP/1.1" 200 5 "http://r/" "ua"`},
		{"nothing said", AccessLogOptions{}, request("GET", "/a", ""), from + `"GET /a HTTP/1.1" 200 5 "-" "-"`},
		{"common", AccessLogOptions{Format: LogCommon}, request("GET", "/a", "", "User-Agent", "ua"), from + `"GET /a HTTP/1.1" 200 5`},
		{"HEAD has no body", AccessLogOptions{Format: LogCommon}, request("HEAD", "/a", ""), from + `"HEAD /a HTTP/1.1" 200 -`},
		{"no query", AccessLogOptions{}, request("GET", "/a?token=x", "", "Referer", "http://r/?secret"), from + `"GET /a HTTP/1.1" 200 5 "http://r/" "-"`},
		{"query", AccessLogOptions{Query: true}, request("GET", "/a?b=c", "", "Referer", "http://r/?q"), from + `"GET /a?b=c HTTP/1.1" 200 5 "http://r/?q" "-"`},
		{"latency", AccessLogOptions{Format: LogCommon, Latency: true}, request("GET", "/a", ""), from + `"GET /a HTTP/1.1" 200 5 1500`},
		{"id", AccessLogOptions{Format: LogCommon, RequestID: true}, request("GET", "/id", ""), from + `"GET /id HTTP/1.1" 200 5 my-id`},
		{"no id", AccessLogOptions{Format: LogCommon, RequestID: true}, request("GET", "/", ""), from + `"GET / HTTP/1.1" 200 5 -`},
		{"forged", AccessLogOptions{}, request("GET", "/", "", "User-Agent", "a\" \\ \x1b[2J\x7f\xc3\xa4\t"), from + `"GET / HTTP/1.1" 200 5 "-" "a\x22 \x5C \x1B[2J\x7F\xC3\xA4\x09"`},
		{"forged lines", AccessLogOptions{}, request("GET", "/", "", "Referer", "a\r\n127.0.0.1 - - \"GET\""), from + `"GET / HTTP/1.1" 200 5 "a\x0D\x0A127.0.0.1 - - \x22GET\x22" "-"`},
		{"long", AccessLogOptions{}, request("GET", "/", "", "User-Agent", long), from + `"GET / HTTP/1.1" 200 5 "-" "` + long[:4096] + `..."`},
		{"vhost", AccessLogOptions{Format: LogVhostCombined}, request("GET", "http://a.example:8080/", "", "User-Agent", "ua"), "a.example:8080 " + from + `"GET http://a.example:8080/ HTTP/1.1" 200 5 "-" "ua"`},
		{"vhost without a port", AccessLogOptions{Format: LogVhostCombined}, request("GET", "/", ""), "example.com:80 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"vhost, TLS", AccessLogOptions{Format: LogVhostCombined}, encrypted(request("GET", "/", "")), "example.com:443 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"vhost, another port", AccessLogOptions{Format: LogVhostCombined, Port: 444}, request("GET", "/", ""), "example.com:444 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"vhost, another port of TLS", AccessLogOptions{Format: LogVhostCombined, Port: 444}, encrypted(request("GET", "/", "")), "example.com:444 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"vhost, IPv6", AccessLogOptions{Format: LogVhostCombined}, at(request("GET", "/", ""), "[2001:db8::1]"), "[2001:db8::1]:80 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"vhost, IPv6 and port", AccessLogOptions{Format: LogVhostCombined}, at(request("GET", "/", ""), "[2001:db8::1]:81"), "[2001:db8::1]:81 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"no vhost", AccessLogOptions{Format: LogVhostCombined}, at(request("GET", "/", ""), ""), "-:80 " + from + `"GET / HTTP/1.1" 200 5 "-" "-"`},
		{"forged vhost", AccessLogOptions{Format: LogVhostCombined, Latency: true}, at(request("GET", "/", ""), "a b\x9b:\n1"), `a\x20b\x9B:\x0A1 ` + from + `"GET / HTTP/1.1" 200 5 "-" "-" 1500`},
		{"404", AccessLogOptions{Format: LogCommon}, request("GET", "/404", ""), from + `"GET /404 HTTP/1.1" 404 5`},
		{"304", AccessLogOptions{Format: LogCommon}, request("GET", "/304", ""), from + `"GET /304 HTTP/1.1" 304 -`},
	} {
		h := direct.HandlerFunc(func(x *direct.Exchange) {
			switch string(x.Path()) {
			case "/404":
				x.SetStatus(404)
			case "/304":
				x.SetStatus(304)
			case "/id":
				x.SetHeader("X-Request-Id", "my-id")
			}
			x.WriteString("hello")
		})
		for _, way := range []string{"plain", "direct"} {
			var out bytes.Buffer
			tt.o.Output = &out
			l := newTestLog(tt.o)
			if way == "plain" {
				plain(l.Wrap(h), tt.r)
			} else {
				directly(t, l.Wrap(h), tt.r)
			}
			if out.Len() != 0 {
				t.Errorf("%s: written at once: %q", tt.name, out.String())
			}
			if err := l.Close(); err != nil || out.String() != tt.want+"\n" {
				t.Errorf("%s, %s: %v\ngot  %q\nwant %q", tt.name, way, err, out.String(), tt.want)
			}
		}
	}
}

// at returns r with another Host.
func at(r *http.Request, host string) *http.Request { r.Host = host; return r }

// encrypted returns r over TLS.
func encrypted(r *http.Request) *http.Request { r.TLS = new(tls.ConnectionState); return r }

func TestAccessLogHost(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "2001:db8::1": "2001:db8::1", "": "", "@": "@", "[::1]": "[::1]", "x": "x",
	} {
		if got := hostOf(in); got != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestAccessLogStructured(t *testing.T) {
	var out bytes.Buffer
	l := newTestLog(AccessLogOptions{Format: LogJSON, Output: &out, Query: true})
	r := request("GET", "/a?b=c", "", "User-Agent", "x\n{}")
	directly(t, l.Wrap(hello), r)
	plain(l.Wrap(hello), r)
	l.Close()
	for line := range strings.Lines(out.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		delete(got, "time")
		want := `map[bytes:5 host:example.com latency:1.5e+06 level:INFO method:GET msg:request path:/a proto:HTTP/1.1 query:b=c remote:192.0.2.1 status:200 user_agent:x` + "\n{}]"
		if fmt.Sprint(got) != want {
			t.Errorf("got %v", got)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
	out.Reset()
	l = newTestLog(AccessLogOptions{Format: LogText, Output: &out})
	directly(t, l.Wrap(hello), r)
	l.Close()
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg=request method=GET path=/a status=200 bytes=5 latency=1.5ms`) || !strings.Contains(got, `user_agent="x\n{}"`) {
		t.Errorf("got %q", got)
	}
	out.Reset()
	l = newTestLog(AccessLogOptions{Logger: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if directly(t, l.Wrap(hello), r); out.Len() != 0 {
		t.Errorf("got %q", out.String())
	}
}

func TestAccessLogPanic(t *testing.T) {
	var out bytes.Buffer
	l := newTestLog(AccessLogOptions{Format: LogCommon, Output: &out})
	h := direct.HandlerFunc(func(x *direct.Exchange) { x.WriteString("x"); panic("on purpose") })
	panics(func() { plain(l.Wrap(h), request("GET", "/p", "")) })
	panics(func() { directly(t, l.Wrap(h), request("GET", "/d", "")) })
	panics(func() {
		plain(l.Wrap(hf(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); panic("late") })), request("GET", "/l", ""))
	})
	plain(l.Wrap(hf(func(w http.ResponseWriter, r *http.Request) {})), request("GET", "/e", ""))
	l.Close()
	for _, want := range []string{`"GET /p HTTP/1.1" 500 -`, `"GET /d HTTP/1.1" 500 -`, `"GET /l HTTP/1.1" 201 -`, `"GET /e HTTP/1.1" 200 -`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, out.String())
		}
	}
}

// declines is a direct handler that declines every exchange.
type declines struct{ http.Handler }

func (declines) ServeDirect(*direct.Exchange) bool { return false }

func TestAccessLogDeclined(t *testing.T) {
	var out bytes.Buffer
	l := newTestLog(AccessLogOptions{Output: &out})
	if _, ok := directly(t, l.Wrap(declines{hello}), request("GET", "/", "")); ok {
		t.Error("answered")
	}
	if l.Close(); out.Len() != 0 {
		t.Errorf("logged what the ordinary path will log: %q", out.String())
	}
}

// The user's name is set inside of the log, also through other writers.
func TestAccessLogUser(t *testing.T) {
	for _, way := range []string{"plain", "direct"} {
		var out bytes.Buffer
		l := newTestLog(AccessLogOptions{Format: LogCommon, Output: &out})
		h := Chain(hello, l.Wrap, Recover(nil), Must(Bearer(&BearerOptions{Tokens: map[string]string{"mal lory": "t0ken"}})))
		if r := request("GET", "/", "", "Authorization", "Bearer t0ken"); way == "plain" {
			plain(h, r)
		} else {
			directly(t, h, r)
		}
		if l.Close(); !strings.HasPrefix(out.String(), `192.0.2.1 - mal\x20lory [`) {
			t.Errorf("%s: got %q", way, out.String())
		}
	}
}

// A buffered line is written after a second, and no timer remains.
func TestAccessLogFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out locked
		l := NewAccessLog(&AccessLogOptions{Output: &out})
		plain(l.Wrap(hello), request("GET", "/", ""))
		time.Sleep(999 * time.Millisecond) // fake time
		synctest.Wait()
		if out.Len() != 0 {
			t.Error("written early")
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if out.Len() == 0 {
			t.Error("not written")
		}
		n := out.Len()
		time.Sleep(time.Minute)
		plain(l.Wrap(hello), request("GET", "/", ""))
		time.Sleep(time.Minute)
		synctest.Wait()
		if out.Len() != 2*n {
			t.Error("not written again")
		}
		l.Close()
		plain(l.Wrap(hello), request("GET", "/", ""))
		if out.Len() != 3*n {
			t.Error("lost after Close")
		}
	})
}

type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *locked) Len() int                    { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Len() }
func (l *locked) Reset()                      { l.mu.Lock(); defer l.mu.Unlock(); l.b.Reset() }
func (l *locked) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// Many concurrent requests, with tiny buffers and unbuffered: no line is lost or
// mixed with another.
func TestAccessLogConcurrently(t *testing.T) {
	t.Parallel()
	line := regexp.MustCompile(`^192\.0\.2\.1 - - \[[^]]+\] "GET /(\d+)/(\d+) HTTP/1\.1" 200 5 "-" "-"$`)
	for _, buffer := range []int{-1, 1, 300, 0} {
		var out locked
		l := NewAccessLog(&AccessLogOptions{Output: &out, BufferSize: buffer})
		h := l.Wrap(hello)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 200 {
					r := request("GET", fmt.Sprintf("/%d/%d", i, j), "")
					if j%2 == 0 {
						plain(h, r)
					} else {
						directly(t, h, r)
					}
				}
			})
		}
		wg.Wait()
		if err := l.Close(); err != nil || l.Lost() != 0 {
			t.Errorf("%v, %d lost", err, l.Lost())
		}
		next := map[string]int{}
		for s := range strings.Lines(out.String()) {
			m := line.FindStringSubmatch(strings.TrimSuffix(s, "\n"))
			if m == nil {
				t.Fatalf("buffer %d: %q", buffer, s)
			}
			if want := fmt.Sprint(next[m[1]]); m[2] != want {
				t.Errorf("buffer %d: of %s line %s, want %s", buffer, m[1], m[2], want)
			}
			next[m[1]]++
		}
		for i := range 8 {
			if n := next[fmt.Sprint(i)]; n != 200 {
				t.Errorf("buffer %d: %d lines of %d", buffer, n, i)
			}
		}
	}
}

type failing struct{ n int }

func (f failing) Write(p []byte) (int, error) { return min(f.n, len(p)), errors.New("disk full") }

func TestAccessLogLost(t *testing.T) {
	l := NewAccessLog(&AccessLogOptions{Output: failing{10}})
	for range 3 {
		plain(l.Wrap(hello), request("GET", "/", ""))
	}
	if err := l.Close(); err == nil || l.Lost() != 3 {
		t.Errorf("%v, %d", err, l.Lost())
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// An Output that panics in a goroutine that recovers does not make later
// requests wait.
func TestAccessLogOutputPanics(t *testing.T) {
	var out strings.Builder
	broken := true
	l := NewAccessLog(&AccessLogOptions{BufferSize: -1, Output: writerFunc(func(p []byte) (int, error) {
		if broken {
			panic("on purpose")
		}
		return out.Write(p)
	})})
	h := l.Wrap(plainHello)
	if !panics(func() { plain(h, request("GET", "/first", "")) }) {
		t.Error("no panic")
	}
	broken = false
	done := make(chan struct{})
	go func() { defer close(done); plain(h, request("GET", "/second", "")) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the next request waits")
	}
	if !strings.Contains(out.String(), "/second") {
		t.Errorf("got %q", out.String())
	}
}

// An Output that is stuck makes requests wait when both buffers are full, and
// nothing is lost when it continues.
func TestAccessLogBackPressure(t *testing.T) {
	pr, pw := io.Pipe()
	l := NewAccessLog(&AccessLogOptions{Output: pw, BufferSize: 200})
	h := l.Wrap(hello)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { plain(h, request("GET", "/", "")) })
	}
	done := make(chan int)
	go func() {
		b, _ := io.ReadAll(pr)
		done <- bytes.Count(b, []byte("\n"))
	}()
	wg.Wait()
	l.Close()
	pw.Close()
	if n := <-done; n != 50 {
		t.Errorf("%d lines", n)
	}
}

func TestAccessLogAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, o := range []AccessLogOptions{{}, {Format: LogCommon}, {Latency: true, RequestID: true}} {
		o.Output = io.Discard
		l := NewAccessLog(&o)
		h := l.Wrap(hello).(direct.Handler)
		var x direct.Exchange
		r := request("GET", "/a/b?c", "", "User-Agent", "curl/8.0", "Referer", "http://example.com/")
		body := wire.Request{Method: "GET", Target: []byte(r.RequestURI), Fields: wire.FieldsOf(r.Header), RemoteAddr: r.RemoteAddr}
		if n := testing.AllocsPerRun(2000, func() { x.Wire().Reset(body); h.ServeDirect(&x); sent(x.Wire().Finish()) }); n != 0 {
			t.Errorf("%+v: %v allocations", o, n)
		}
		// The ordinary path: the response writer.
		p := l.Wrap(hf(func(w http.ResponseWriter, r *http.Request) {}))
		rec := httptest.NewRecorder()
		if n := testing.AllocsPerRun(2000, func() { p.ServeHTTP(rec, r) }); n > 1 {
			t.Errorf("%+v: %v allocations on the ordinary path", o, n)
		}
		l.Close()
	}
}

func TestAccessLogServers(t *testing.T) {
	var out locked
	l := NewAccessLog(&AccessLogOptions{Format: LogCommon, Output: &out})
	var logged sync.WaitGroup // a server does not wait for hijacked connections
	logs := l.Wrap(hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hijack" {
			c, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			rw.WriteString("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
			rw.Flush()
			c.Close()
			return
		}
		io.WriteString(w, "hello")
	}))
	logged.Add(4)
	h := hf(func(w http.ResponseWriter, r *http.Request) {
		defer logged.Done()
		logs.ServeHTTP(w, r)
	})
	servers(t, h, func(t *testing.T, url string, c *http.Client) {
		for _, path := range []string{"/a", "/hijack"} {
			res, err := c.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
	logged.Wait()
	l.Close()
	if got := out.String(); strings.Count(got, `"GET /a HTTP/1.1" 200 5`) != 2 || strings.Count(got, `"GET /hijack HTTP/1.1" 101 -`) != 2 {
		t.Errorf("got\n%s", got)
	}
}

func benchmarkRequest() (*direct.Exchange, wire.Request) {
	h := http.Header{
		"User-Agent": {"Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0"}, "Accept": {"text/html"},
		"Authorization": {"Bearer 0123456789abcdef0123456789abcdef"},
	}
	return new(direct.Exchange), wire.Request{
		Method: "GET", Target: []byte("/users/17"), Path: []byte("/users/17"), Host: []byte("example.com"),
		RemoteAddr: "192.0.2.1:1234", PeerIP: "192.0.2.1", Fields: wire.FieldsOf(h), Time: wire.Clock(), // as of a loop
	}
}

// Flint's published figure for its logger: 497 ns, 3 allocations.
func BenchmarkAccessLog(b *testing.B) {
	nothing := direct.HandlerFunc(func(x *direct.Exchange) {})
	for name, o := range map[string]AccessLogOptions{
		"common": {Format: LogCommon}, "combined": {}, "combined-latency": {Latency: true}, "text": {Format: LogText}, "json": {Format: LogJSON},
	} {
		b.Run(name, func(b *testing.B) {
			o.Output = io.Discard
			l := NewAccessLog(&o)
			defer l.Close()
			h := l.Wrap(nothing).(direct.Handler)
			x, r := benchmarkRequest()
			x.Wire().Reset(r)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%32 == 0 { // as a loop does before it turns to 32 connections
					x.Wire().SetTime(wire.Clock())
				}
				h.ServeDirect(x)
				x.Wire().TakeWatcher().Sent(wire.Delivery{Status: 200, Complete: true})
			}
		})
	}
	b.Run("plain", func(b *testing.B) {
		l := NewAccessLog(&AccessLogOptions{Output: io.Discard})
		defer l.Close()
		h := l.Wrap(hf(func(http.ResponseWriter, *http.Request) {}))
		r, w := request("GET", "/users/17", ""), httptest.NewRecorder()
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(w, r)
		}
	})
}
