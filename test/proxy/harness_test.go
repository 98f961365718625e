package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/proxy"
)

func TestMain(m *testing.M) { servertest.Main(m, servertest.UseTCP) }

// origin is a server that is a script.
type origin struct {
	t     testing.TB
	l     net.Listener
	serve func(c *conn)

	mu       sync.Mutex
	conns    []*conn
	accepted int
	wait     sync.WaitGroup
}

// conn is a connection to an origin. Its methods are for serve.
type conn struct {
	net.Conn
	o    *origin
	n    int // of the connections, from 0 on
	r    *bufio.Reader
	seen bytes.Buffer // what r has read, under o.mu
}

// start returns an origin whose connections are served by serve.
func start(t testing.TB, serve func(c *conn)) *origin {
	return startOn(t, servertest.ListenTCP(t), serve)
}

func startOn(t testing.TB, l net.Listener, serve func(c *conn)) *origin {
	o := &origin{t: t, l: l, serve: serve}
	o.wait.Add(1)
	go o.accept()
	t.Cleanup(o.close)
	return o
}

func (o *origin) close() {
	o.l.Close()
	o.mu.Lock()
	for _, c := range o.conns {
		c.Close()
	}
	o.mu.Unlock()
	o.wait.Wait()
}

func (o *origin) addr() string { return o.l.Addr().String() }

func (o *origin) accept() {
	defer o.wait.Done()
	for {
		nc, err := o.l.Accept()
		if err != nil {
			return
		}
		o.mu.Lock()
		c := &conn{Conn: nc, o: o, n: o.accepted}
		o.accepted++
		o.conns = append(o.conns, c)
		o.mu.Unlock()
		c.r = bufio.NewReader(io.TeeReader(nc, locked{c}))
		o.wait.Add(1)
		go func() {
			defer o.wait.Done()
			defer nc.Close()
			o.serve(c)
		}()
	}
}

type locked struct{ c *conn }

func (l locked) Write(p []byte) (int, error) {
	l.c.o.mu.Lock()
	defer l.c.o.mu.Unlock()
	return l.c.seen.Write(p)
}

// dials returns the number of connections.
func (o *origin) dials() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.accepted
}

// settle waits until all connections that were made before have been accepted: it makes one more, which is the last.
func (o *origin) settle(t testing.TB) {
	before := o.dials()
	nc, err := net.Dial("tcp", o.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	its := func(c *conn) bool { return c.RemoteAddr().String() == nc.LocalAddr().String() }
	servertest.Eventually(t, "the last connection to be accepted", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.ContainsFunc(o.conns[before:], its)
	})
}

// received returns all bytes of all connections.
func (o *origin) received() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var b strings.Builder
	for _, c := range o.conns {
		b.Write(c.seen.Bytes())
	}
	return b.String()
}

// head reads a head, and returns "" at the end.
func (c *conn) head() string {
	var b strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			return ""
		}
		b.WriteString(line)
		if line == "\r\n" {
			return b.String()
		}
	}
}

// request reads a request; false at the end.
func (c *conn) request() (*http.Request, string, bool) {
	r, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, "", false
	}
	b, err := io.ReadAll(r.Body)
	return r, string(b), err == nil
}

func (c *conn) put(s string) { io.WriteString(c, s) }

// wait waits for ch, or for the end of the test: one that fails does not send any more. A nil ch is for the end alone.
func (c *conn) wait(ch <-chan bool) {
	select {
	case <-ch:
	case <-c.o.t.Context().Done():
	}
}

// each answers all requests of all connections with one response.
func each(response string) func(c *conn) {
	return func(c *conn) {
		for {
			if _, _, ok := c.request(); !ok {
				return
			}
			c.put(response)
		}
	}
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// log collects what the proxy logs.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// setup is a proxy in a test.
type setup struct {
	up   proxy.UpstreamOptions
	o    proxy.Options
	pool *proxy.Pool
	log  *log
	// placement is PlacementInline where connections are counted: after a request that a busy machine has held up, a loop
	// leaves others like it to goroutines, which have connections of their own.
	placement chert.Placement
}

// handler returns a proxy for servers.
func (s *setup) handler(t testing.TB, addrs ...string) http.Handler {
	t.Helper()
	s.log = &log{}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.pool = proxy.NewPool(&proxy.PoolOptions{Logger: logger})
	t.Cleanup(func() { s.pool.Close() })
	if s.up.Name == "" {
		s.up.Name = "app"
	}
	if s.up.ConnectTimeout == 0 {
		s.up.ConnectTimeout = servertest.Patience // many handshakes at a time take long on a busy machine
	}
	for _, a := range addrs {
		s.up.Servers = append(s.up.Servers, proxy.Server{Addr: a})
	}
	u, err := s.pool.Upstream(&s.up)
	if err != nil {
		t.Fatal(err)
	}
	s.o.Upstream, s.o.Logger = u, logger
	h, err := proxy.New(&s.o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// start serves the proxy.
func (s *setup) start(t testing.TB, e chert.Engine, addrs ...string) *engines.Server {
	return engines.Start(t, &chert.Server{
		Engine: e, Placement: s.placement, Handler: s.handler(t, addrs...), DisableGeneralOptionsHandler: true,
	})
}

// over returns l for servers that speak TLS, or l itself.
func over(t testing.TB, secure bool, l net.Listener) net.Listener {
	if !secure {
		return l
	}
	cert, _ := servertest.Certificate(t)
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}})
}

// startOver is start for servers that speak TLS, or do not.
func startOver(t testing.TB, secure bool, serve func(c *conn)) *origin {
	return startOn(t, over(t, secure, servertest.ListenTCP(t)), serve)
}

// startAt is startOver for an address of freeport, where one may have been before.
func startAt(t testing.TB, addr string, secure bool, serve func(c *conn)) *origin {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		panic(err) // any goroutine may call it
	}
	return startOn(t, over(t, secure, l), serve)
}

// over has the proxy speak TLS to its servers, or not.
func (s *setup) over(t testing.TB, secure bool) {
	if secure {
		_, roots := servertest.Certificate(t)
		s.up.TLS = &tls.Config{RootCAs: roots, ServerName: "example.com"}
	}
}

// overEach runs f for servers that speak TLS, and for others.
func overEach(t *testing.T, f func(t *testing.T, secure bool)) {
	t.Run("plain", func(t *testing.T) { f(t, false) })
	t.Run("tls", func(t *testing.T) { f(t, true) })
}

// alike runs f on each engine and on net/http.
func alike(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	t.Parallel()
	engines.Alike(t, f)
}
