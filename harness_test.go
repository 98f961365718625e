package chert

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// patience bounds every wait in the tests for something that must happen. It
// is long because a loaded machine may be slow; nothing passes by waiting it
// out.
const patience = 30 * time.Second

// engines runs f once for each engine that this system has.
func engines(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	run := func(name string, e Engine) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
	if sys.HavePoller {
		run("loops", EngineLoops)
	}
	run("goroutines", EngineGoroutines)
}

// testServer is a running server that ends with its test.
type testServer struct {
	*Server
	t    testing.TB
	addr string
	log  *logBuffer
	errc chan error // what Serve returned
	ctl  control    // the server, or with the oracle engine net/http's
}

// start serves s on a free port of the loopback.
func start(t testing.TB, s *Server) *testServer {
	t.Helper()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, s, l)
}

// startOn serves s on l.
func startOn(t testing.TB, s *Server, l net.Listener) *testServer {
	t.Helper()
	ts := &testServer{Server: s, t: t, addr: l.Addr().String(), log: new(logBuffer), errc: make(chan error, 1), ctl: s}
	if s.ErrorLog == nil {
		s.ErrorLog = log.New(ts.log, "", 0)
	}
	if v := os.Getenv("CHERT_PLACEMENT"); v == "inline" && s.Placement == Adaptive {
		s.Placement = Inline
	}
	if s.Engine == oracle {
		ts.startOracle(l)
		return ts
	}
	addr, serve := throughLayer(t, s, l)
	ts.addr = addr
	go func() { ts.errc <- serve() }()
	t.Cleanup(func() {
		s.Close()
		select {
		case err := <-ts.errc:
			if !errors.Is(err, ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returned %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return after Close")
		}
		// All of it must end, handlers included.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("something did not end after Close: %v", err)
		}
	})
	return ts
}

// logBuffer is an ErrorLog's destination that tests may read meanwhile.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rawConn is a client that speaks bytes.
type rawConn struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

// dial connects to the server.
func (ts *testServer) dial() *rawConn {
	ts.t.Helper()
	nc, err := net.Dial("tcp", ts.addr)
	if err != nil {
		ts.t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(patience))
	ts.t.Cleanup(func() { nc.Close() })
	return &rawConn{nc, ts.t, bufio.NewReader(nc)}
}

// send writes s whole.
func (c *rawConn) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// sendSlowly writes s in pieces of n bytes, each in a segment of its own.
func (c *rawConn) sendSlowly(s string, n int) {
	c.t.Helper()
	for len(s) > 0 {
		k := min(n, len(s))
		c.send(s[:k])
		s = s[k:]
	}
}

// response reads one response to a request of the given method, body
// included.
func (c *rawConn) response(method string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Fatalf("response: %v", err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("response body: %v (got %q)", err, body)
	}
	res.Body.Close()
	return res, string(body)
}

// rest reads to the end of the stream.
func (c *rawConn) rest() string {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if err != nil {
		c.t.Fatalf("rest: %v (got %q)", err, b)
	}
	return string(b)
}

// closed waits until the server has closed, by FIN or reset, with nothing more
// to read.
func (c *rawConn) closed() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		c.t.Fatalf("the connection was not closed (got %q)", b)
	}
	if len(b) > 0 {
		c.t.Fatalf("unexpected bytes before the close: %q", b)
	}
}

// await waits until done is closed or sent to.
func await[T any](t testing.TB, done <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-done:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// eventually polls until f holds.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long until %s", what)
		}
		time.Sleep(time.Millisecond) // polling, not synchronising
	}
}
