package faults

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

func TestFaultsHeadTooLarge(t *testing.T) {
	t.Parallel()
	const start = "GET / HTTP/1.1\r\nHost: h\r\n"
	kib := "X-F: " + strings.Repeat("v", 1<<10-7) + "\r\n"
	for _, tt := range []struct {
		name   string
		in     string
		status int
	}{
		{"1 MiB of fields", start + strings.Repeat(kib, 1<<10) + "\r\n", 431},
		{"one huge field", start + "X: " + strings.Repeat("v", 1<<20) + "\r\n\r\n", 431},
		{"a field that does not end", start + "X: " + strings.Repeat("v", 1<<20), 431},
		{"a name that does not end", start + strings.Repeat("n", 1<<20), 431},
		{"a target that is too long", "GET /" + strings.Repeat("p", 1<<20) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
		{"a target that does not end", "GET /" + strings.Repeat("p", 1<<20), 414},
		{"a method that does not end", strings.Repeat("M", 1<<20), 414},
		{"too many fields", start + strings.Repeat("A: b\r\n", 200) + "\r\n", 431},
		{"too many fields, no end", start + strings.Repeat("A: b\r\n", 200), 431},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK})
				c := fs.Dial()
				// All is sent before anything is read: the response must
				// survive.
				c.Send(tt.in)
				c.Refused(tt.status)
				// The same after a valid request.
				c = fs.Dial()
				c.Send(servertest.GET + tt.in)
				c.Status(200)
				c.Refused(tt.status)
				fs.Settled(2)
			})
		})
	}
}

func TestFaultsHeadLimitsAreExact(t *testing.T) {
	t.Parallel()
	head := func(n int) string {
		const a, z = "GET / HTTP/1.1\r\nHost: h\r\nX: ", "\r\n\r\n"
		return a + strings.Repeat("v", n-len(a)-len(z)) + z
	}
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, MaxHeaderBytes: 1000, MaxHeaderFields: 3})
		c := fs.Dial()
		c.Send(head(1000))
		c.Status(200)
		c.Send(head(1001))
		c.Refused(431)
		c = fs.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\n\r\n")
		c.Status(200)
		c.Send("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\nA: 3\r\n\r\n")
		c.Refused(431)
	})
}

// slowHead is a head that never ends, sent a byte at a time.
const slowHead = "GET /slow HTTP/1.1\r\nHost: h\r\nX: "

func TestFaultsHeaderTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		header, idle time.Duration
		before       string // sent and served first
	}{
		{"first request", servertest.Soon, 0, ""},
		{"second request", servertest.Soon, 0, servertest.GET},
		{"second request, idle time is shorter", 2 * servertest.Soon, servertest.Soon, servertest.GET},
		{"second request, no idle time", servertest.Soon, -1, servertest.GET},
		{"after many requests", servertest.Soon, time.Hour, strings.Repeat(servertest.GET, 50)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, ReadHeaderTimeout: tt.header, IdleTimeout: tt.idle})
				c := fs.Dial()
				c.Trickle(tt.before+slowHead, "x")
				for range strings.Count(tt.before, "GET") {
					c.Status(200)
				}
				c.Refused(408)
				fs.Settled(1)
			})
		})
	}
}

func TestFaultsReadTimeoutBoundsHead(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, ReadTimeout: servertest.Soon, ReadHeaderTimeout: time.Hour})
		c := fs.Dial()
		c.Trickle(slowHead, "x")
		c.Refused(408)
	})
}

// A head that stays partial must be timed also if it arrived while a handler
// owned the connection, whose timer is then set for the much longer idle time.
func TestFaultsPartialHeadBehindRequest(t *testing.T) {
	t.Parallel()
	const partial = "GET /partial HTTP/1.1\r\nHos"
	for _, tt := range []struct {
		name  string
		first string // sent before the handler runs
		while string // sent while it runs
	}{
		{"in the request's segment", servertest.GET + partial, ""},
		{"while the handler runs", servertest.GET, partial},
		{"behind a pipelined request", servertest.GET + servertest.GET + partial, ""},
		{"behind a request that came while the handler ran", servertest.GET, servertest.GET + partial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				entered, leave := make(chan bool, 4), make(chan bool)
				fs := engines.StartCounting(t, &chert.Server{
					Engine: e, ReadHeaderTimeout: servertest.Soon, IdleTimeout: time.Hour,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						entered <- true
						<-leave
					}),
				})
				c := fs.Dial()
				c.Send(tt.first)
				servertest.Await(t, entered, "the handler")
				c.Send(tt.while)
				close(leave)
				for range strings.Count(tt.first+tt.while, servertest.GET) {
					c.Status(200)
				}
				c.Refused(408)
				fs.Settled(1)
			})
		})
	}
}

func TestFaultsFirstRequestNeverComes(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, ReadHeaderTimeout: servertest.Soon, IdleTimeout: time.Hour})
		// No response: there is no request that it could belong to.
		fs.Dial().Ended()
		// An empty line is the beginning of a request.
		c := fs.Dial()
		c.Send("\r\n")
		c.Refused(408)
		fs.Settled(2)
	})
}
