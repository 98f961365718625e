package behave

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The tests of this file use listeners and connections of a program's own, in
// ways that programs written for net/http's server rely on; most derive from
// Go's own tests of it.

// alikeOthers is alike for listeners of an unknown type.
func alikeOthers(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// ownListener is a user's own listener. It keeps what its Accept returns: the
// connection that the wrapped listener has accepted, or one that wraps it.
type ownListener struct {
	net.Listener
	wrap  func(net.Conn) net.Conn // nil: unchanged
	conns chan net.Conn
}

func newOwnListener(t *testing.T, wrap func(net.Conn) net.Conn) *ownListener {
	return &ownListener{servertest.ListenTCP(t), wrap, make(chan net.Conn, 64)}
}

func (l *ownListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if l.wrap != nil {
		c = l.wrap(c)
	}
	l.conns <- c
	return c, nil
}

// ownConn is a connection of a user's own.
type ownConn struct{ net.Conn }

// wrappings are what Accept of a user's listener may return.
var wrappings = map[string]func(net.Conn) net.Conn{
	"as it is": nil,
	"wrapped":  func(c net.Conn) net.Conn { return &ownConn{c} },
}

// Hooks and handlers receive the very connection that Accept has returned.
func TestOwnListener(t *testing.T) {
	t.Parallel()
	for name, wrap := range wrappings {
		for _, withContext := range []bool{false, true} { // with it, any connection is on a goroutine
			t.Run(fmt.Sprintf("%s,ConnContext=%v", name, withContext), func(t *testing.T) {
				t.Parallel()
				alikeOthers(t, func(t *testing.T, e chert.Engine) { ownListenerSees(t, e, wrap, withContext) })
			})
		}
	}
}

func ownListenerSees(t *testing.T, e chert.Engine, wrap func(net.Conn) net.Conn, withContext bool) {
	type step struct {
		conn  net.Conn
		state string
	}
	type connKey struct{}
	steps := make(chan step, 64)
	running := make(chan struct{})
	l := newOwnListener(t, wrap)
	s := &chert.Server{Engine: e,
		ConnState: func(c net.Conn, s http.ConnState) { steps <- step{c, s.String()} },
		Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if withContext {
				steps <- step{r.Context().Value(connKey{}).(net.Conn), "handler"}
			}
			switch r.URL.Path {
			case "/wait":
				running <- struct{}{}
				<-r.Context().Done()
			case "/hijack":
				got, _, err := w.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				steps <- step{got, "got"}
				got.Close()
			}
		}),
	}
	if withContext {
		s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			steps <- step{c, "context"}
			return context.WithValue(ctx, connKey{}, c)
		}
	}
	ts := engines.StartOn(t, s, l)
	for _, tt := range []struct {
		path string
		end  func(c net.Conn) // what the owner of the connection does
		want string
	}{
		{"/", func(c net.Conn) { c.Close() }, "context new active handler idle closed"},
		{"/", func(c net.Conn) {
			// The server sets one too, after the hook.
			servertest.Eventually(t, "the connection is closed", func() bool {
				c.SetReadDeadline(time.Unix(1, 0))
				return len(steps) > 0
			})
		}, "context new active handler idle closed"},
		{"/wait", func(c net.Conn) { c.Close() }, "context new active handler closed"},
		{"/hijack", func(net.Conn) {}, "context new active handler hijacked got"},
	} {
		want := tt.want
		if !withContext {
			want = strings.NewReplacer("context ", "", "handler ", "").Replace(want)
		}
		c := ts.Dial()
		c.Send("GET " + tt.path + " HTTP/1.1\r\nHost: h\r\n\r\n")
		nc := servertest.Await(t, l.conns, "Accept")
		seen := ""
		see := func() {
			s := servertest.Await(t, steps, "a hook")
			if s.conn != nc {
				t.Errorf("%s: %s: another connection, a %T", tt.path, s.state, s.conn)
			}
			seen = strings.TrimPrefix(seen+" "+s.state, " ")
		}
		switch tt.path {
		case "/":
			c.Response("GET")
			for !strings.HasSuffix(seen, "idle") {
				see()
			}
		case "/wait":
			servertest.Await(t, running, "the handler")
		}
		tt.end(nc)
		for len(seen) < len(want) {
			see()
		}
		if seen != want {
			t.Errorf("%s: saw %s, want %s", tt.path, seen, want)
		}
		c.Close()
	}
	select {
	case s := <-steps:
		t.Errorf("%s is one too many", s.state)
	default:
	}
}

// All methods of a user's connection are called: it may count, or encrypt.
func TestOwnConnIsUsed(t *testing.T) {
	t.Parallel()
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		shift := func(c net.Conn) net.Conn { return shifting{c} }
		ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/file":
				http.ServeFile(w, r, "doc.go")
			case "/hijack":
				echo(t, w)
			default:
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				w.Write(b)
			}
		})}, newOwnListener(t, shift))
		c := servertest.Wrap(t, shifting{ts.Dial().Conn})
		body := string(servertest.Pattern(200_000))
		c.SendAside("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n" + body)
		if _, got := c.Response("POST"); got != body {
			t.Errorf("got %s", servertest.Brief(got))
		}
		want, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		if _, got := c.Get("/file"); got != string(want) {
			t.Errorf("got %s", servertest.Brief(got))
		}
		c.Send("GET /hijack HTTP/1.1\r\nHost: h\r\n\r\nahead")
		c.Want(switched + "ahead")
	})
}

// shifting adds 1 to every byte that it sends, and subtracts it again.
type shifting struct{ net.Conn }

func (s shifting) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	for i := range p[:n] {
		p[i]--
	}
	return n, err
}

func (s shifting) Write(p []byte) (int, error) {
	b := make([]byte, len(p))
	for i, c := range p {
		b[i] = c + 1
	}
	return s.Conn.Write(b)
}

// An address that is known late, as from a proxy's first line, delays only its
// own connection.
func TestOwnConnRemoteAddrBlocks(t *testing.T) {
	t.Parallel()
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		asked, release := make(chan struct{}, 1), make(chan struct{})
		first := true
		l := newOwnListener(t, func(c net.Conn) net.Conn {
			if !first {
				return c
			}
			first = false
			return &lateAddr{Conn: c, asked: asked, release: release}
		})
		ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, r.RemoteAddr) })}, l)
		late := ts.Dial()
		late.Send(servertest.GET)
		servertest.Await(t, asked, "a call for the address")
		for range 3 {
			c := ts.Dial()
			if _, body := c.Get("/"); body != c.LocalAddr().String() {
				t.Errorf("got %q", body)
			}
		}
		close(release)
		if _, body := late.Response("GET"); body != "192.0.2.1:80" {
			t.Errorf("got %q", body)
		}
	})
}

// lateAddr knows its client's address late.
type lateAddr struct {
	net.Conn
	asked   chan struct{}
	release chan struct{}
}

func (c *lateAddr) RemoteAddr() net.Addr {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	<-c.release
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
}

// A connection may have no deadlines and say so, as a channel of
// golang.org/x/crypto/ssh does, and no addresses.
func TestOwnConnWithout(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"deadlines": func(c net.Conn) net.Conn { return noDeadlines{c} },
		"addresses": func(c net.Conn) net.Conn { return &nowhere{c} },
		"both":      func(c net.Conn) net.Conn { return nowhere{noDeadlines{c}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alikeOthers(t, func(t *testing.T, e chert.Engine) {
				running := make(chan struct{})
				ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					running <- struct{}{}
					b, err := io.ReadAll(r.Body)
					fmt.Fprint(w, string(b), " ", err, " ", r.RemoteAddr == "", " ", r.Context().Value(http.LocalAddrContextKey) == nil)
				})}, newOwnListener(t, wrap))
				want := fmt.Sprint("hello <nil> ", name != "deadlines", " ", name != "deadlines")
				c := ts.Dial()
				for range 3 {
					for _, tt := range []struct{ lines, body string }{
						{"Transfer-Encoding: chunked", servertest.Chunks("hello", 2)},
						{"Content-Length: 5", "hello"},
					} {
						c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n\r\n")
						servertest.Await(t, running, "the handler")
						c.Send(tt.body)
						if _, body := c.Response("POST"); body != want {
							t.Fatalf("got %q, want %q", body, want)
						}
					}
				}
			})
		})
	}
}

type noDeadlines struct{ net.Conn }

var errNoDeadlines = errors.New("deadlines are not supported")

func (noDeadlines) SetDeadline(time.Time) error      { return errNoDeadlines }
func (noDeadlines) SetReadDeadline(time.Time) error  { return errNoDeadlines }
func (noDeadlines) SetWriteDeadline(time.Time) error { return errNoDeadlines }

type nowhere struct{ net.Conn }

func (nowhere) LocalAddr() net.Addr  { return nil }
func (nowhere) RemoteAddr() net.Addr { return nil }

// EngineLoops takes the sockets of the connections that any listener returns, and
// does not serve connections that are not sockets themselves.
func TestOwnListenerOnLoops(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		if e != chert.EngineLoops {
			return
		}
		states := make(chan net.Conn, 16)
		l := newOwnListener(t, nil)
		ts := engines.StartOn(t, &chert.Server{Engine: e,
			ConnState: func(c net.Conn, s http.ConnState) {
				if s == http.StateNew {
					states <- c
				}
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, r.RemoteAddr) }),
		}, l)
		c := ts.Dial()
		for range 2 {
			if _, body := c.Get("/"); body != c.LocalAddr().String() {
				t.Errorf("got %q", body)
			}
		}
		accepted, seen := servertest.Await(t, l.conns, "Accept"), servertest.Await(t, states, "ConnState")
		if accepted == seen {
			t.Error("it is not on a loop")
		}
		// The one that was accepted is not in use any more.
		if err := accepted.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("SetDeadline gave %v", err)
		}
		c.Get("/")
		for name, wrap := range map[string]func(net.Conn) net.Conn{"*behave.ownConn": wrappings["wrapped"], "*tls.Conn": func(c net.Conn) net.Conn { return tls.Server(c, nil) }} {
			l := newOwnListener(t, wrap)
			end := make(chan error, 1)
			go func() { end <- ts.Serve(l) }()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if err := servertest.Await(t, end, "Serve"); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Serve returned %v", err)
			}
			servertest.Wrap(t, nc).Ended()
		}
		m := servertest.NewMemory()
		end := make(chan error, 1)
		go func() { end <- ts.Serve(m) }()
		nc := m.Dial(t)
		if err := servertest.Await(t, end, "Serve"); err == nil || !strings.Contains(err.Error(), "*net.pipe") {
			t.Errorf("Serve returned %v", err)
		}
		servertest.Wrap(t, nc).Ended()
		c.Get("/") // the others are still served
	})
}

// accepts counts how many of some looks find a goroutine in Accept.
type accepts struct{ looks, n atomic.Int32 }

func (a *accepts) look(addr string) {
	a.looks.Add(1)
	nc, err := net.Dial("tcp", addr)
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		a.n.Add(1)
	}
}

// check fails if that was found often. A few times it may have been another
// test's server, on a port that was free again.
func (a *accepts) check(t *testing.T) {
	t.Helper()
	if n := a.n.Load(); n > 2 {
		t.Errorf("%d of %d times connections were not refused", n, a.looks.Load())
	}
}

// Close of a net.Conn may take long; the server's lock is not held meanwhile.
func TestSlowCloseHoldsUpNobody(t *testing.T) {
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		release, closing := make(chan struct{}), make(chan struct{}, 8)
		m := servertest.NewMemory()
		ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: memoryEcho(t)}, m)
		client, server := net.Pipe()
		defer client.Close()
		m.Conns <- &slowClose{Conn: server, closing: closing, release: release}
		servertest.Wrap(t, client).Get("/")
		go ts.Control.Close()
		<-closing
		defer close(release)
		if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
			t.Error(err)
		}
		ts.Served <- http.ErrServerClosed
	})
}

type slowClose struct {
	net.Conn
	closing chan struct{}
	release chan struct{}
}

func (c *slowClose) Close() error {
	c.closing <- struct{}{}
	<-c.release
	return c.Conn.Close()
}
