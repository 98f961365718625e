package chert

import (
	"net/http"
	"strings"
	"testing"
	"time"
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
			engines(t, func(t *testing.T, e Engine) {
				fs := faultStart(t, &Server{Engine: e, Handler: faultOK})
				c := fs.dial()
				// All is sent before anything is read: the answer must survive.
				c.send(tt.in)
				c.refused(tt.status)
				// The same behind a request that is fine.
				c = fs.dial()
				c.send(faultGet + tt.in)
				c.status(200)
				c.refused(tt.status)
				fs.settled(2)
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
	engines(t, func(t *testing.T, e Engine) {
		fs := faultStart(t, &Server{Engine: e, Handler: faultOK, MaxHeaderBytes: 1000, MaxHeaderFields: 3})
		c := fs.dial()
		c.send(head(1000))
		c.status(200)
		c.send(head(1001))
		c.refused(431)
		c = fs.dial()
		c.send("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\n\r\n")
		c.status(200)
		c.send("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nA: 2\r\nA: 3\r\n\r\n")
		c.refused(431)
	})
}

// slowHead is a head that never ends, sent a byte at a time.
const slowHead = "GET /slow HTTP/1.1\r\nHost: h\r\nX: "

func TestFaultsHeaderTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		header, idle time.Duration
		before       string // what is sent and answered first
	}{
		{"first request", soon, 0, ""},
		{"second request", soon, 0, faultGet},
		{"second request, idle time is shorter", 2 * soon, soon, faultGet},
		{"second request, no idle time", soon, -1, faultGet},
		{"after many requests", soon, time.Hour, strings.Repeat(faultGet, 50)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
				fs := faultStart(t, &Server{Engine: e, Handler: faultOK, ReadHeaderTimeout: tt.header, IdleTimeout: tt.idle})
				c := fs.dial()
				c.trickle(tt.before+slowHead, "x")
				for range strings.Count(tt.before, "GET") {
					c.status(200)
				}
				c.refused(408)
				fs.settled(1)
			})
		})
	}
}

func TestFaultsReadTimeoutBoundsHead(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		fs := faultStart(t, &Server{Engine: e, Handler: faultOK, ReadTimeout: soon, ReadHeaderTimeout: time.Hour})
		c := fs.dial()
		c.trickle(slowHead, "x")
		c.refused(408)
	})
}

// A head that stays partial must be timed also when it came while a handler
// owned the connection, whose timer is then set for the much longer idle time.
func TestFaultsPartialHeadBehindRequest(t *testing.T) {
	t.Parallel()
	const partial = "GET /partial HTTP/1.1\r\nHos"
	for _, tt := range []struct {
		name  string
		first string // sent before the handler runs
		while string // sent while it runs
	}{
		{"in the request's segment", faultGet + partial, ""},
		{"while the handler runs", faultGet, partial},
		{"behind a pipelined request", faultGet + faultGet + partial, ""},
		{"behind a request that came while the handler ran", faultGet, faultGet + partial},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
				entered, leave := make(chan bool, 4), make(chan bool)
				fs := faultStart(t, &Server{
					Engine: e, ReadHeaderTimeout: soon, IdleTimeout: time.Hour,
					Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						entered <- true
						<-leave
					}),
				})
				c := fs.dial()
				c.send(tt.first)
				await(t, entered, "the handler")
				c.send(tt.while)
				close(leave)
				for range strings.Count(tt.first+tt.while, faultGet) {
					c.status(200)
				}
				c.refused(408)
				fs.settled(1)
			})
		})
	}
}

func TestFaultsFirstRequestNeverComes(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		fs := faultStart(t, &Server{Engine: e, Handler: faultOK, ReadHeaderTimeout: soon, IdleTimeout: time.Hour})
		// No answer: there is no request that it could belong to.
		fs.dial().closed()
		// An empty line is the beginning of a request.
		c := fs.dial()
		c.send("\r\n")
		c.refused(408)
		fs.settled(2)
	})
}
