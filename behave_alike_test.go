package chert

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// oracle stands for net/http in place of an engine: a test that runs on it too
// says of its expectations that they are net/http's.
const oracle Engine = 255

// alike runs f once for each engine and once on net/http itself.
func alike(t *testing.T, f func(t *testing.T, e Engine)) {
	t.Helper()
	engines(t, f)
	t.Run("nethttp", func(t *testing.T) {
		t.Parallel()
		f(t, oracle)
	})
}

// unlike begins the reason of a case that chert and net/http mean to do
// differently.
const unlike = "unlike net/http: "

// control is what tests do with a running server, ours or net/http's.
type control interface {
	Serve(net.Listener) error
	Close() error
	Shutdown(context.Context) error
	SetKeepAlivesEnabled(bool)
	RegisterOnShutdown(func())
}

// startOracle serves with net/http what ts was given.
func (ts *testServer) startOracle(l net.Listener) {
	s := ts.Server.asHTTP()
	s.SetKeepAlivesEnabled(!ts.Server.noKeepAlives.Load())
	ts.ctl = s
	go func() { ts.errc <- s.Serve(l) }()
	ts.t.Cleanup(func() {
		s.Close()
		await(ts.t, ts.errc, "net/http to end")
	})
}

type hf = http.HandlerFunc

// exchange sends s on a connection of its own, at once or byte by byte, and
// returns all that comes back. A reset ends the answer like a FIN.
func (ts *testServer) exchange(s string, slowly bool) string {
	ts.t.Helper()
	c := ts.dial()
	defer c.Close()
	if slowly {
		c.sendSlowly(s, 1)
	} else {
		c.send(s)
	}
	return c.upToEnd()
}

// upToEnd reads until the server has closed, in whatever way.
func (c *rawConn) upToEnd() string {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		c.t.Fatalf("upToEnd: %v (got %q)", err, b)
	}
	return string(b)
}

// line reads up to and with the next LF.
func (c *rawConn) line() string {
	c.t.Helper()
	s, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("line: %v (got %q)", err, s)
	}
	return s
}

// newRaw makes a client of a connection that was made otherwise.
func newRaw(t testing.TB, nc net.Conn) *rawConn { return &rawConn{nc, t, bufio.NewReader(nc)} }

// head reads a response's head as it is.
func (c *rawConn) head() string {
	c.t.Helper()
	var b strings.Builder
	for {
		l := c.line()
		b.WriteString(l)
		if l == "\r\n" {
			return b.String()
		}
	}
}

// expect reads exactly want.
func (c *rawConn) expect(want string) {
	c.t.Helper()
	b := make([]byte, len(want))
	n, err := io.ReadFull(c.r, b)
	if string(b[:n]) != want {
		c.t.Fatalf("got %q (%v), want %q", b[:n], err, want)
	}
}

// get sends a GET with further header lines and reads the answer.
func (c *rawConn) get(path string, lines ...string) (*http.Response, string) {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(append(lines, "\r\n"), "\r\n"))
	return c.response("GET")
}

var dateLine = regexp.MustCompile(`Date: [A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n`)

// undated removes the Date lines from an answer.
func undated(s string) string { return dateLine.ReplaceAllString(s, "") }

// brief shortens what a failure prints.
func brief(s string) string {
	if len(s) <= 700 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q ... %q (%d bytes)", s[:400], s[len(s)-200:], len(s))
}

// pattern is n bytes of which no two stretches are alike. They are shared: do
// not write to them.
func pattern(n int) []byte { return numbers()[:n:n] }

var numbers = sync.OnceValue(func() []byte {
	b := make([]byte, 0, 9<<20)
	for i := 0; len(b) < 8<<20; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), ',')
	}
	return b
})

// chunks puts s into chunks of n bytes with the last chunk behind it.
func chunks(s string, n int) string {
	var b strings.Builder
	for len(s) > 0 {
		k := min(n, len(s))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", k, s[:k])
		s = s[k:]
	}
	return b.String() + "0\r\n\r\n"
}

// reset closes c with RST.
func (c *rawConn) reset() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Close()
}

// closeWrite sends FIN and goes on reading.
func (c *rawConn) closeWrite() {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// waitDone fails if ctx does not end in good time.
func waitDone(t testing.TB, ctx context.Context, what string) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Errorf("waited too long until %s", what)
	}
}
