package main

import (
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/examples/internal/engines"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/basicauth"
	"github.com/chert-http/chert/middleware/jwt"
	"github.com/chert-http/chert/ratelimit"
)

// An entry is a middleware. It is tested by itself in each shape on each
// engine: its effect, and that it passes on the abilities of the response
// writer.
type entry struct {
	name string
	// mw admits requests with fields, which come in pairs.
	mw     func(t *testing.T) wrapper
	fields []string
	// effect checks the middleware's purpose, on sites that start makes.
	effect func(t *testing.T, start func(mw wrapper) *site)
}

// always is a middleware that has nothing to close.
func always(mw wrapper) func(*testing.T) wrapper {
	return func(*testing.T) wrapper { return mw }
}

var matrix = []entry{
	logEntry("AccessLog, combined", middleware.AccessLogOptions{}, `127.0.0.1 - - [`, `"GET /page HTTP/1.1" 200 4200 "-" "test"`, `"GET /teapot HTTP/1.1" 418 3 "-" "test"`, `"GET /hijack HTTP/1.1" 101 - `),
	logEntry("AccessLog, common", middleware.AccessLogOptions{Format: middleware.LogCommon}, `"GET /page HTTP/1.1" 200 4200`+"\n", `"GET /teapot HTTP/1.1" 418 3`+"\n"),
	logEntry("AccessLog, text", middleware.AccessLogOptions{Format: middleware.LogText}, `path=/page status=200 bytes=4200 `, `path=/teapot status=418 bytes=3 `, `path=/hijack status=101 bytes=0 `),
	logEntry("AccessLog, JSON", middleware.AccessLogOptions{Format: middleware.LogJSON}, `"path":"/page","status":200,"bytes":4200,`, `"path":"/teapot","status":418,"bytes":3,`),
	{name: "AccessLog, Logger", mw: always(loggerTo(io.Discard)), effect: func(t *testing.T, start func(mw wrapper) *site) {
		var out output
		logged(t, start(loggerTo(&out)), &out, func() {}, `msg=request method=GET path=/page status=200 bytes=4200 `, `path=/teapot status=418 bytes=3 `)
	}},
	{name: "Recover", mw: always(middleware.Recover(nil)), effect: recovers},
	{name: "RequestID", mw: always(middleware.RequestID(nil)), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(middleware.RequestID(nil))
		res, body := s.Do(t, "GET", "/who", nil)
		if id := res.Header.Get("X-Request-Id"); len(id) != 32 || !strings.HasSuffix(body, " "+id) {
			t.Errorf("got %q, the handler %q", id, body)
		}
	}},
	{name: "RealIP", mw: always(realIP), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(realIP)
		s.Expect(t, "GET", "/who", "", 200, " 198.51.100.7:0 ", "X-Forwarded-For", "192.0.2.1, 198.51.100.7")
	}},
	{name: "Bearer", mw: always(bearer), fields: []string{"Authorization", "Bearer secret"}, effect: func(t *testing.T, start func(mw wrapper) *site) {
		admits(t, start(bearer), `Bearer realm="restricted"`, "Bearer secret", "Bearer another")
	}},
	{name: "jwt", mw: tokens, fields: []string{"Authorization", "Bearer " + token(jwtSecret)}, effect: func(t *testing.T, start func(mw wrapper) *site) {
		admits(t, start(tokens(t)), `Bearer realm="restricted"`, "Bearer "+token(jwtSecret), "Bearer "+token(strings.Repeat("y", 32)))
	}},
	{name: "basicauth", mw: passwords, fields: []string{"Authorization", basic("secret")}, effect: func(t *testing.T, start func(mw wrapper) *site) {
		admits(t, start(passwords(t)), `Basic realm="restricted", charset="UTF-8"`, basic("secret"), basic("another"))
	}},
	{name: "BodyLimit", mw: always(middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 1 << 20})), effect: limits},
	{name: "Timeout", mw: always(middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Hour})), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(middleware.Timeout(&middleware.TimeoutOptions{Limit: 10 * time.Millisecond}))
		s.Expect(t, "GET", "/slow", "", 504, "Gateway Timeout\n")
		s = start(middleware.Timeout(&middleware.TimeoutOptions{Limit: time.Hour}))
		if res := s.Expect(t, "GET", "/page", "", 200, page); res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("got %v", res.Header)
		}
	}},
	{name: "InFlight", mw: always(middleware.InFlight(&middleware.InFlightOptions{Max: 100})), effect: full},
	{name: "Compress", mw: always(middleware.Must(middleware.Compress(nil))), effect: compresses},
	{name: "CORS", mw: always(cors), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(cors)
		res := s.Expect(t, "OPTIONS", "/page", "", 204, "", "Origin", "https://a.example", "Access-Control-Request-Method", "PUT")
		if h := res.Header; h.Get("Access-Control-Allow-Origin") != "https://a.example" || !strings.Contains(h.Get("Access-Control-Allow-Methods"), "PUT") {
			t.Errorf("preflight: got %v", h)
		}
		res = s.Expect(t, "GET", "/page", "", 200, page, "Origin", "https://a.example")
		if h := res.Header; h.Get("Access-Control-Allow-Origin") != "https://a.example" || h.Get("Vary") != "Origin" {
			t.Errorf("got %v", h)
		}
		res = s.Expect(t, "GET", "/page", "", 200, page, "Origin", "https://b.example")
		if h := res.Header; h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("another origin: got %v", h)
		}
	}},
	{name: "SecurityHeaders", mw: always(middleware.SecurityHeaders(nil)), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(middleware.SecurityHeaders(nil))
		for _, path := range []string{"/page", "/teapot"} {
			res, _ := s.Do(t, "GET", path, nil)
			if h := res.Header; h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: got %v", path, h)
			}
		}
	}},
	{name: "ETag", mw: always(middleware.ETag(nil)), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(middleware.ETag(nil))
		res := s.Expect(t, "GET", "/page", "", 200, page)
		tag := res.Header.Get("Etag")
		if res = s.Expect(t, "GET", "/page", "", 304, "", "If-None-Match", tag); tag == "" || res.Header.Get("Etag") != tag {
			t.Errorf("%q, then %v", tag, res.Header)
		}
		s.Expect(t, "GET", "/page", "", 412, "Precondition Failed\n", "If-Match", `"another"`)
	}},
	{name: "RateLimit", mw: always(rate(1e6)), effect: func(t *testing.T, start func(mw wrapper) *site) {
		s := start(rate(2))
		for range 2 {
			s.Expect(t, "GET", "/page", "", 200, page)
		}
		res, _ := s.Do(t, "GET", "/page", nil)
		if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
			t.Errorf("got %d %v", res.StatusCode, res.Header)
		}
	}},
}

func TestMatrix(t *testing.T) {
	for _, e := range matrix {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			for _, shape := range shapes {
				t.Run(shape.name, func(t *testing.T) {
					engines.Each(t, func(t *testing.T, engine engines.Engine) {
						start := func(mw wrapper) *site {
							a := &app{entered: make(chan struct{}), leave: make(chan struct{})}
							return &site{a, engine.Start(t, shape.make(t, a, mw))}
						}
						s := start(e.mw(t))
						s.flushes(t, e.fields)
						s.hijacks(t, e.fields)
						s.Expect(t, "GET", "/controller", "", 200, "<nil>", e.fields...)
						s.together(t, e.fields)
						e.effect(t, start)
					})
				})
			}
		})
	}
}

// together sends requests from several clients concurrently, for the race
// detector.
func (s *site) together(t *testing.T, fields []string) {
	t.Helper()
	failed := make(chan error)
	for range 4 {
		go func() {
			for range 5 {
				req, _ := http.NewRequest("GET", s.URL+"/page", nil)
				for i := 0; i < len(fields); i += 2 {
					req.Header.Set(fields[i], fields[i+1])
				}
				res, err := s.Client.Do(req)
				if err == nil {
					var b []byte
					if b, err = io.ReadAll(res.Body); err == nil && (res.StatusCode != 200 || len(b) != len(page)) {
						err = fmt.Errorf("got %d, %d bytes", res.StatusCode, len(b))
					}
					res.Body.Close()
				}
				if err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range 4 {
		if err := engines.Await(t, failed, "a response"); err != nil {
			t.Error(err)
		}
	}
}

var (
	realIP = middleware.Must(middleware.RealIP(&middleware.RealIPOptions{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}))
	bearer = middleware.Must(middleware.Bearer(&middleware.BearerOptions{Tokens: map[string]string{"ann": "secret"}}))
	cors   = middleware.Must(middleware.CORS(&middleware.CORSOptions{Origins: []string{"https://a.example"}, Methods: []string{"PUT"}}))
)

func rate(n int64) wrapper {
	return ratelimit.Must(ratelimit.New(&ratelimit.Options{Rules: []ratelimit.Rule{{Name: "all", Rate: ratelimit.Rate{Count: n, Per: time.Hour}}}}))
}

func loggerTo(w io.Writer) wrapper {
	return middleware.NewAccessLog(&middleware.AccessLogOptions{Logger: slog.New(slog.NewTextHandler(w, nil))}).Wrap
}

// logEntry is an access log whose lines must contain all of want.
func logEntry(name string, o middleware.AccessLogOptions, want ...string) entry {
	make := func(w io.Writer) *middleware.AccessLog {
		o := o
		o.Output = w
		return middleware.NewAccessLog(&o)
	}
	return entry{name: name,
		mw: func(t *testing.T) wrapper {
			l := make(io.Discard)
			t.Cleanup(func() { l.Close() })
			return l.Wrap
		},
		effect: func(t *testing.T, start func(mw wrapper) *site) {
			var out output
			l := make(&out)
			logged(t, start(l.Wrap), &out, func() { l.Close() }, want...)
		}}
}

// logged sends a request to be logged, and checks out when the line is there.
func logged(t *testing.T, s *site, out *output, done func(), want ...string) {
	t.Helper()
	s.Expect(t, "GET", "/page", "", 200, page, "User-Agent", "test")
	s.Expect(t, "GET", "/teapot", "", 418, "tea", "User-Agent", "test")
	s.hijacks(t, nil)
	s.Close()
	done()
	for _, w := range want {
		if !strings.Contains(out.String(), w) {
			t.Errorf("%q is not in\n%s", w, out.String())
		}
	}
}

func recovers(t *testing.T, start func(mw wrapper) *site) {
	var seen atomic.Int64
	s := start(middleware.Recover(&middleware.RecoverOptions{Handle: func(any, []byte) { seen.Add(1) }}))
	for range 2 {
		s.Expect(t, "GET", "/panic", "", 500, "Internal Server Error\n")
	}
	s.Expect(t, "GET", "/page", "", 200, page)
	if seen.Load() != 2 {
		t.Errorf("%d panics were seen", seen.Load())
	}
}

// admits checks that good is admitted as ann, and that nothing else is.
func admits(t *testing.T, s *site, challenge, good, bad string) {
	t.Helper()
	for _, fields := range [][]string{nil, {"Authorization", bad}} {
		res, _ := s.Do(t, "GET", "/who", nil, fields...)
		if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != 401 || !strings.HasPrefix(got, challenge) {
			t.Errorf("%v: got %d %q", fields, res.StatusCode, got)
		}
	}
	for range 2 { // the second time it may be cached
		res, body := s.Do(t, "GET", "/who", nil, "Authorization", good)
		if res.StatusCode != 200 || !strings.HasPrefix(body, "ann ") {
			t.Errorf("got %d %q", res.StatusCode, body)
		}
	}
}

var jwtSecret = strings.Repeat("x", 32)

// token is ann's.
func token(secret string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	signed := part(`{"alg":"HS256"}`) + "." + part(fmt.Sprintf(`{"sub":"ann","exp":%d}`, time.Now().Add(time.Hour).Unix()))
	h := hmac.New(sha256.New, []byte(secret))
	io.WriteString(h, signed)
	return signed + "." + part(string(h.Sum(nil)))
}

func tokens(t *testing.T) wrapper {
	v, err := jwt.New(&jwt.Options{Keys: []jwt.Key{{Algorithm: "HS256", Key: []byte(jwtSecret)}}, AnyIssuer: true, AnyAudience: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v.Wrap
}

func basic(password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+password))
}

func passwords(t *testing.T) wrapper {
	// bcrypt of "secret", of the least cost.
	a, err := basicauth.New(&basicauth.Options{Users: map[string]string{"ann": "$2a$04$yB7xt9t8tdKnanZo/9HK8.16viLFPO150pGUs7QPtQ2yr.7GMHEaO"}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func limits(t *testing.T, start func(mw wrapper) *site) {
	s := start(middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 1000}))
	for n, status := range map[int]int{0: 200, 1000: 200, 1001: 413} {
		body, want := strings.Repeat("x", n), "Request Entity Too Large\n"
		if status == 200 {
			want = body
		}
		s.Expect(t, "POST", "/echo", body, status, want)
		// A body of unknown length.
		if res, got := s.Do(t, "POST", "/echo", io.MultiReader(strings.NewReader(body))); res.StatusCode != status || got != want {
			t.Errorf("%d bytes in chunks: got %d %.50q", n, res.StatusCode, got)
		}
	}
}

func full(t *testing.T, start func(mw wrapper) *site) {
	s := start(middleware.InFlight(&middleware.InFlightOptions{Max: 1}))
	held := make(chan error)
	go func() {
		res, err := s.Client.Get(s.URL + "/hold")
		if err == nil {
			res.Body.Close()
		}
		held <- err
	}()
	engines.Await(t, s.entered, "the first request")
	res, _ := s.Do(t, "GET", "/page", nil)
	if res.StatusCode != 503 || res.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %v", res.StatusCode, res.Header)
	}
	s.leave <- struct{}{}
	if err := engines.Await(t, held, "its response"); err != nil {
		t.Error(err)
	}
}

func compresses(t *testing.T, start func(mw wrapper) *site) {
	s := start(middleware.Must(middleware.Compress(nil)))
	res, coded := s.Do(t, "GET", "/page", nil, "Accept-Encoding", "gzip")
	if h := res.Header; h.Get("Content-Encoding") != "gzip" || h.Get("Vary") != "Accept-Encoding" || len(coded) > len(page)/10 {
		t.Errorf("got %v, %d bytes", h, len(coded))
	}
	z, err := gzip.NewReader(bytes.NewReader([]byte(coded)))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); string(b) != page || err != nil {
		t.Errorf("got %d bytes, %v", len(b), err)
	}
	// Events pass through compression too.
	res = s.open(t, "/events", []string{"Accept-Encoding", "gzip"})
	defer res.Body.Close()
	if z, err = gzip.NewReader(res.Body); err != nil {
		t.Fatal(err)
	}
	s.events(t, z)
}
