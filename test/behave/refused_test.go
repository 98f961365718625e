package behave

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/stats"
)

// This file tests how refusals are reported and counted.

// refusalsOf collects the refusals that a server reports.
type refusalsOf struct {
	mu  sync.Mutex
	all []chert.Refusal
}

func (r *refusalsOf) add(one chert.Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *refusalsOf) get() []chert.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]chert.Refusal(nil), r.all...)
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for _, tt := range []struct {
		name, sends  string
		s            *chert.Server
		status       int
		reason, line string
	}{
		{"no request", "\x16\x03\x01\x00\"\\\xff\n", &chert.Server{}, 400, "not an HTTP request", `\x16\x03\x01\x00\x22\x5C\xFF`},
		{"no Host", "GET /a?b HTTP/1.1\r\n\r\n", &chert.Server{}, 400, "missing Host", "GET /a?b HTTP/1.1"},
		{"not a URL", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", &chert.Server{}, 400, "the request target is not a URL", "GET /%zz HTTP/1.1"},
		{"long target", "GET /" + long + " HTTP/1.1\r\n\r\n", &chert.Server{}, 414, "request line too long", "GET /" + long[:256-5]},
		{"long head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + long + "\r\n\r\n", &chert.Server{}, 431, "header section too long", "GET / HTTP/1.1"},
		{"coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", &chert.Server{}, 501, "unknown transfer coding", "POST / HTTP/1.1"},
		{"version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", &chert.Server{}, 505, "unsupported HTTP version", "GET / HTTP/3.0"},
		{"too slow", "GET /slow HTTP/1.1\r\nHo", &chert.Server{ReadHeaderTimeout: servertest.Soon}, 408, "the request's head did not come in time", "GET /slow HTTP/1.1"},
		{"expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", &chert.Server{}, 417, "unknown expectation", "GET / HTTP/1.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
				var told refusalsOf
				srv := &chert.Server{Engine: e, ReadHeaderTimeout: tt.s.ReadHeaderTimeout, Handler: http.NotFoundHandler()}
				srv.Refused = func(r chert.Refusal) {
					// It has been counted when it is reported.
					if got := engines.UpToDate(t, srv).Requests; len(got) != 1 || got[0].Class != tt.status/100 || got[0].N != 1 {
						t.Errorf("counted: %v", got)
					}
					told.add(r)
				}
				s := engines.Start(t, srv)
				c := s.Dial()
				c.Send(tt.sends)
				res, body := c.Response("GET")
				whole := res.Header.Get("Date") != "" && res.ContentLength == int64(len(body))
				if res.StatusCode != tt.status || whole == (tt.status == 501) { // a 501 is net/http's
					t.Errorf("%+v", res)
				}
				servertest.Eventually(t, "a refusal is reported", func() bool { return len(told.get()) > 0 })
				want := chert.Refusal{RemoteAddr: c.LocalAddr().String(), LocalAddr: c.RemoteAddr().String(), Status: tt.status, Reason: tt.reason, Line: tt.line}
				if engines.Layered {
					want.RemoteAddr, want.LocalAddr = told.get()[0].RemoteAddr, told.get()[0].LocalAddr // the relay's
				}
				if got := told.get(); len(got) != 1 || got[0] != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				sn := s.Stats()
				if got := sn.Malformed; len(got) != 1 || got[0] != (stats.Count{Name: tt.reason, N: 1}) {
					t.Errorf("counted: %v", got)
				}
				c.Close()
			}
		})
	}
}

// A connection beyond the limit is reported, counted, and gets a whole
// response.
func TestRefusedForRoom(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for name, tt := range map[string]struct {
			s      *chert.Server
			reason string
		}{
			"connections": {&chert.Server{MaxConns: 1}, "too many connections"},
			"address":     {&chert.Server{MaxConnsPerAddr: 1}, "too many connections from one address"},
			"handlers":    {&chert.Server{MaxHandlers: 1, QueueLength: -1}, "too many requests wait for a handler"},
		} {
			if name == "connections" && engines.Layered {
				continue // the relay's own connection may wait
			}
			var told refusalsOf
			release := make(chan struct{})
			in := make(chan struct{}, 8)
			s := engines.Start(t, &chert.Server{
				Engine: e, Refused: told.add, MaxConns: tt.s.MaxConns, MaxConnsPerAddr: tt.s.MaxConnsPerAddr, MaxHandlers: tt.s.MaxHandlers, QueueLength: tt.s.QueueLength,
				Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in <- struct{}{}; <-release }),
			})
			c := s.Dial()
			c.Send("GET /first HTTP/1.1\r\nHost: a\r\n\r\n")
			servertest.Await(t, in, "the first request")
			other := s.Dial()
			other.Send("GET /second HTTP/1.1\r\nHost: a\r\n\r\n")
			res, body := other.Response("GET")
			if res.StatusCode != 503 || res.Header.Get("Date") == "" || res.ContentLength != int64(len(body)) {
				t.Errorf("%s: %+v", name, res)
			}
			servertest.Eventually(t, "a refusal is reported", func() bool { return len(told.get()) > 0 })
			if res.Header.Get("Retry-After") != "1" || body != "503 Service Unavailable\n" || res.Close == (name == "handlers") {
				t.Errorf("%s: %+v %q", name, res, body)
			}
			got := told.get()[0]
			if got.Status != 503 || got.Reason != tt.reason || got.RemoteAddr == "" || (got.LocalAddr != s.ListenAddr && !engines.Layered) || name == "handlers" && got.Line != "GET /second HTTP/1.1" {
				t.Errorf("%s: %+v", name, got)
			}
			sn := engines.UpToDate(t, s)
			if n := append(sn.Malformed, sn.Connections.Refused...); len(n) != 1 || n[0].Name != tt.reason || n[0].N != 1 {
				t.Errorf("%s: %+v", name, n)
			}
			close(release)
		}
	})
}

// A request beyond MaxHandlers has been counted when it is reported, over HTTP/1 and HTTP/2, by a handler that the
// fast path serves and by others.
func TestRefusedForRoomCounted(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for name, two := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
			for way, h := range map[string]func(http.Handler) http.Handler{
				"plain":  func(h http.Handler) http.Handler { return h },
				"direct": func(h http.Handler) http.Handler { return declines{h} },
			} {
				told := make(chan chert.Refusal, 1)
				release, in := make(chan struct{}), make(chan struct{}, 1)
				srv := &chert.Server{
					Engine: e, MaxHandlers: 1, QueueLength: -1, Protocols: new(http.Protocols),
					Handler: h(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { in <- struct{}{}; <-release })),
				}
				srv.Protocols.SetHTTP1(!two)
				srv.Protocols.SetUnencryptedHTTP2(two)
				srv.Refused = func(r chert.Refusal) {
					if got := engines.UpToDate(t, srv).Requests; len(got) != 1 || got[0].Class != 5 || got[0].N != 1 {
						t.Errorf("%s, %s: counted: %v", name, way, got)
					}
					told <- r
				}
				s := engines.Start(t, srv)
				transport := &http.Transport{Protocols: srv.Protocols}
				t.Cleanup(transport.CloseIdleConnections)
				client := http.Client{Transport: transport}
				first := make(chan error, 1)
				go func() {
					res, err := client.Get("http://" + s.ListenAddr + "/first")
					if err == nil {
						res.Body.Close()
					}
					first <- err
				}()
				servertest.Await(t, in, "the first request")
				res, err := client.Get("http://" + s.ListenAddr + "/second")
				if err != nil {
					t.Fatal(err)
				}
				if res.Body.Close(); res.StatusCode != 503 || res.Header.Get("Retry-After") == "" {
					t.Errorf("%s, %s: %+v", name, way, res)
				}
				if got := <-told; got.Status != 503 || got.Line != "GET /second "+name {
					t.Errorf("%s, %s: %+v", name, way, got)
				}
				close(release)
				if err := <-first; err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// declines is a direct handler that has every request served on the ordinary path.
type declines struct{ http.Handler }

func (declines) ServeDirect(*direct.Exchange) bool { return false }

// Plain HTTP on a TLS port.
func TestRefusedPlain(t *testing.T) {
	cert, _ := servertest.Certificate(t)
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		var told refusalsOf
		s := engines.StartTLS(t, &chert.Server{Engine: e, Refused: told.add}, servertest.ListenTCP(t), cert)
		c := s.Dial()
		c.Send(servertest.GET)
		got := c.UpToEnd()
		if !strings.HasPrefix(got, "HTTP/1.0 400 ") || !strings.Contains(got, "\r\nDate: ") || !strings.Contains(got, "\r\nContent-Length: 48\r\n") {
			t.Errorf("%q", got)
		}
		servertest.Eventually(t, "a refusal is reported", func() bool { return len(told.get()) == 1 })
		want := chert.Refusal{RemoteAddr: c.LocalAddr().String(), LocalAddr: s.ListenAddr, Status: 400, Reason: "client sent an HTTP request to an HTTPS server"}
		if got := told.get()[0]; got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

// Of a flood a bounded part is reported, with the number of those omitted; all
// are counted. A slow hook delays no request, and has returned when Shutdown
// does.
func TestRefusedFlood(t *testing.T) {
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		var told refusalsOf
		var once sync.Once
		release := make(chan struct{})
		s := engines.Start(t, &chert.Server{Engine: e, Handler: http.NotFoundHandler(), Refused: func(r chert.Refusal) {
			once.Do(func() { <-release })
			told.add(r)
		}})
		const n = 500
		began := time.Now()
		for range n {
			c := s.Dial()
			c.Send("GET / HTTP/1.1\r\n\r\n")
			if res, _ := c.Response("GET"); res.StatusCode != 400 {
				t.Fatal(res.Status)
			}
			c.Close()
		}
		close(release)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		seconds := int(time.Since(began)/time.Second) + 1
		var single, omitted int
		for _, r := range told.get() {
			if omitted += int(r.Omitted); r.Omitted == 0 {
				single++
			}
		}
		if single+omitted != n || single > 20*(seconds+1) || omitted == 0 {
			t.Errorf("%d reported, %d omitted", single, omitted)
		}
		if got := s.Stats().Malformed; len(got) != 1 || got[0].N != n {
			t.Errorf("%+v", got)
		}
	})
}
