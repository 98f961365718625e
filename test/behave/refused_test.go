package behave

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
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
		{"too slow", "GET /slow HTTP/1.1\r\nHo", &chert.Server{ReadHeaderTimeout: 50 * time.Millisecond}, 408, "the request's head did not come in time", "GET /slow HTTP/1.1"},
		{"expectation", "GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n", &chert.Server{}, 417, "unknown expectation", "GET / HTTP/1.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, e := range []chert.Engine{chert.EngineAuto, chert.EngineGoroutines} {
				var told refusalsOf
				s := engines.Start(t, &chert.Server{Engine: e, Refused: told.add, ReadHeaderTimeout: tt.s.ReadHeaderTimeout, Handler: http.NotFoundHandler()})
				c := s.Dial()
				c.Send(tt.sends)
				res, body := c.Response("GET")
				if res.StatusCode != tt.status || res.Header.Get("Date") == "" || res.ContentLength != int64(len(body)) {
					t.Errorf("%+v", res)
				}
				servertest.Eventually(t, "a refusal is reported", func() bool { return len(told.get()) > 0 })
				want := chert.Refusal{RemoteAddr: c.LocalAddr().String(), Status: tt.status, Reason: tt.reason, Line: tt.line}
				if engines.Layered {
					want.RemoteAddr = told.get()[0].RemoteAddr // the relay's
				}
				if got := told.get(); len(got) != 1 || got[0] != want {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				sn := s.Stats()
				if got := sn.Malformed; len(got) != 1 || got[0] != (stats.Count{Name: tt.reason, N: 1}) {
					t.Errorf("counted: %v", got)
				}
				if got := sn.Requests; len(got) != 1 || got[0].Class != tt.status/100 || got[0].N != 1 {
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
			got := told.get()[0]
			if got.Status != 503 || got.Reason != tt.reason || got.RemoteAddr == "" || name == "handlers" && got.Line != "GET /second HTTP/1.1" {
				t.Errorf("%s: %+v", name, got)
			}
			sn := s.Stats()
			if n := append(sn.Malformed, sn.Connections.Refused...); len(n) != 1 || n[0].Name != tt.reason || n[0].N != 1 {
				t.Errorf("%s: %+v", name, n)
			}
			close(release)
		}
	})
}

// Plain HTTP on a TLS port.
func TestRefusedPlain(t *testing.T) {
	var told refusalsOf
	cert, _ := servertest.Certificate(t)
	s := &chert.Server{Refused: told.add, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.ServeTLS(l, "", "") }()
	defer func() { s.Close(); <-done }()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := servertest.Wrap(t, nc)
	c.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	b, _ := io.ReadAll(nc)
	if got := string(b); !strings.HasPrefix(got, "HTTP/1.0 400 ") || !strings.Contains(got, "\r\nDate: ") || !strings.Contains(got, "\r\nContent-Length: 48\r\n") {
		t.Errorf("%q", got)
	}
	servertest.Eventually(t, "a refusal is reported", func() bool { return len(told.get()) == 1 })
	if got := told.get()[0]; got.Status != 400 || got.Reason != "client sent an HTTP request to an HTTPS server" {
		t.Errorf("%+v", got)
	}
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
