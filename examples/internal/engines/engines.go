package engines

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/chertest"
)

// Patience bounds every wait for something that must happen; no test passes by
// reaching it.
const Patience = 30 * time.Second

// Engine is one of the servers.
type Engine struct{ name string }

// NetHTTP is the engine that the others are compared with.
var NetHTTP = Engine{"nethttp"}

// In the order of the subtests. Where chert has event loops, its default is to
// use them.
var all = []Engine{{"loops"}, {"goroutines"}, NetHTTP}

// Each runs f once on each engine.
func Each(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) { f(t, e) })
	}
}

// Server is a running server of any engine. It ends with its test.
type Server struct {
	URL  string
	Addr string
	// Client closes its idle connections when the server ends.
	Client *http.Client
	// Shutdown is that of chert.Server or http.Server.
	Shutdown func(context.Context) error
	close    func()
}

// Option changes a server before it starts. The argument has the fields that
// chert.Server and http.Server share, as far as the tests need them.
type Option func(*Fields)

// Fields are set on either server.
type Fields struct {
	WriteTimeout time.Duration
	OnShutdown   func()
	ErrorLog     *log.Logger
}

// Start serves h until the test ends.
func (e Engine) Start(t *testing.T, h http.Handler, options ...Option) *Server {
	t.Helper()
	// Panics are intentional here; their log is noise.
	f := Fields{ErrorLog: log.New(io.Discard, "", 0)}
	for _, o := range options {
		o(&f)
	}
	if e == NetHTTP {
		s := httptest.NewUnstartedServer(h)
		s.Config.WriteTimeout, s.Config.ErrorLog = f.WriteTimeout, f.ErrorLog
		if f.OnShutdown != nil {
			s.Config.RegisterOnShutdown(f.OnShutdown)
		}
		s.Start()
		t.Cleanup(s.Close)
		return &Server{s.URL, s.Listener.Addr().String(), s.Client(), s.Config.Shutdown, s.Close}
	}
	s := chertest.NewUnstartedServer(h)
	if e.name == "goroutines" {
		s.Config.Engine = chert.EngineGoroutines
	}
	s.Config.WriteTimeout, s.Config.ErrorLog = f.WriteTimeout, f.ErrorLog
	if f.OnShutdown != nil {
		s.Config.RegisterOnShutdown(f.OnShutdown)
	}
	s.Start()
	t.Cleanup(s.Close)
	return &Server{s.URL, s.Listener.Addr().String(), s.Client(), s.Config.Shutdown, s.Close}
}

// Close ends the server before the test does, and waits for its requests.
func (s *Server) Close() { s.close() }

// WS returns the address with the scheme of WebSockets.
func (s *Server) WS(path string) string { return "ws://" + s.Addr + path }

// Do sends a request and reads the whole response. A body may be nil.
func (s *Server) Do(t *testing.T, method, path string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := s.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: body: %v (got %.100q)", method, path, err, b)
	}
	return res, string(b)
}

// Expect sends a request and fails unless status and body are as given. The
// fields of header come in pairs.
func (s *Server) Expect(t *testing.T, method, path, body string, status int, want string, header ...string) *http.Response {
	t.Helper()
	res, got := s.Do(t, method, path, reader(body), header...)
	if res.StatusCode != status || got != want {
		t.Errorf("%s %s: got %d %.200q, want %d %.200q", method, path, res.StatusCode, got, status, want)
	}
	return res
}

// Dial connects for a test that sends and reads raw bytes.
func (s *Server) Dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(Patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// Await waits until done is closed or sent to.
func Await[T any](t testing.TB, done <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-done:
	case <-time.After(Patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// Eventually polls until f holds.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
		time.Sleep(time.Millisecond) // polling, not synchronising
	}
}
