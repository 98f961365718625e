package behave

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// The tests of this file are of what programs rely on that were written for
// net/http's server, beyond what its documentation says: Go's own tests of it
// were the source of most.

// TestServerIsNetHTTPs compares the fields and methods of the two servers.
func TestServerIsNetHTTPs(t *testing.T) {
	t.Parallel()
	theirs, ours := reflect.TypeFor[http.Server](), reflect.TypeFor[chert.Server]()
	for i := range theirs.NumField() {
		f := theirs.Field(i)
		if !f.IsExported() {
			continue
		}
		if g, ok := ours.FieldByName(f.Name); !ok || g.Type != f.Type {
			t.Errorf("field %s is a %v, want %v", f.Name, g.Type, f.Type)
		}
	}
	signature := func(m reflect.Method) string {
		s := m.Name
		for i := 1; i < m.Type.NumIn(); i++ { // 0 is the receiver
			s += fmt.Sprint(" ", m.Type.In(i))
		}
		s += fmt.Sprint(" ", m.Type.IsVariadic(), " gives")
		for i := range m.Type.NumOut() {
			s += fmt.Sprint(" ", m.Type.Out(i))
		}
		return s
	}
	theirs, ours = reflect.PointerTo(theirs), reflect.PointerTo(ours)
	for i := range theirs.NumMethod() {
		m := theirs.Method(i)
		if g, ok := ours.MethodByName(m.Name); !ok || signature(g) != signature(m) {
			t.Errorf("method %s is missing or not %s", m.Name, signature(m))
		}
	}
}

// functions are the package's functions for serving, ours and net/http's.
type functions struct {
	serve     func(net.Listener, http.Handler) error
	serveTLS  func(l net.Listener, h http.Handler, certFile, keyFile string) error
	listen    func(addr string, h http.Handler) error
	listenTLS func(addr, certFile, keyFile string, h http.Handler) error
}

var bothFunctions = map[string]functions{
	"chert":   {chert.Serve, chert.ServeTLS, chert.ListenAndServe, chert.ListenAndServeTLS},
	"nethttp": {http.Serve, http.ServeTLS, http.ListenAndServe, http.ListenAndServeTLS},
}

// defaultPath is answered by http.DefaultServeMux.
const defaultPath = "/chert-tests-default"

var onDefaultMux = sync.OnceFunc(func() {
	http.HandleFunc(defaultPath, func(w http.ResponseWriter, r *http.Request) { put(w, "default") })
})

func TestFunctions(t *testing.T) {
	t.Parallel()
	onDefaultMux()
	certFile, keyFile, roots := servertest.CertFiles(t)
	mine := hf(func(w http.ResponseWriter, r *http.Request) { put(w, "mine") })
	for name, f := range bothFunctions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, secure := range []bool{false, true} {
				for want, h := range map[string]http.Handler{"mine": mine, "default": nil} {
					l := servertest.ListenTCP(t)
					end := make(chan error, 1)
					go func() {
						if secure {
							end <- f.serveTLS(l, h, certFile, keyFile)
						} else {
							end <- f.serve(l, h)
						}
					}()
					c := servertest.Dial(t, l.Addr().String())
					if secure {
						c, _ = servertest.TLSOver(t, c.Conn, roots)
					}
					if res, body := c.Get(defaultPath); res.StatusCode != 200 || body != want {
						t.Errorf("got %v %q, want %q", res.Status, body, want)
					}
					l.Close()
					if err := servertest.Await(t, end, "the function"); !errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
						t.Errorf("it returned %v", err)
					}
					c.Get(defaultPath) // still served
					c.Close()
				}
			}
			taken := servertest.ListenTCP(t)
			defer taken.Close()
			if err := f.listen(taken.Addr().String(), mine); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("ListenAndServe returned %v", err)
			}
			if err := f.listenTLS(taken.Addr().String(), certFile, keyFile, mine); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("ListenAndServeTLS returned %v", err)
			}
			// Without a certificate nothing is served; the listener is its owner's.
			if err := f.serveTLS(taken, mine, "no-such-file", keyFile); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("ServeTLS returned %v", err)
			}
			if err := f.listenTLS("127.0.0.1:0", certFile, "no-such-file", mine); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("ListenAndServeTLS returned %v", err)
			}
			if err := taken.Close(); err != nil {
				t.Errorf("ServeTLS has closed the listener: %v", err)
			}
		})
	}
}

// Nobody can end what ListenAndServe began, so it runs in a process of its own.
func TestFunctionsListen(t *testing.T) {
	t.Parallel()
	_, _, roots := servertest.CertFiles(t)
	for name := range bothFunctions {
		for _, secure := range []string{"plain", "secure"} {
			t.Run(name+","+secure, func(t *testing.T) {
				t.Parallel()
				child := servertest.StartChild(t, "TestFunctionsChild", "listen "+name+" "+secure)
				for range 2 {
					c := servertest.Dial(t, child.Addr)
					if secure == "secure" {
						c, _ = servertest.TLSOver(t, c.Conn, roots)
					}
					for range 2 {
						if _, body := c.Get("/"); body != "from the child" {
							t.Errorf("got %q", body)
						}
					}
				}
			})
		}
	}
}

func TestFunctionsChild(t *testing.T) {
	var name, secure string
	if n, _ := fmt.Sscanf(os.Getenv(servertest.ChildEnv), "listen %s %s", &name, &secure); n != 2 {
		t.Skip("a part of TestFunctionsListen")
	}
	log.SetOutput(io.Discard) // below, TLS is not spoken at first
	certFile, keyFile, _ := servertest.CertFiles(t)
	h := hf(func(w http.ResponseWriter, r *http.Request) { put(w, "from the child") })
	for {
		l := servertest.ListenTCP(t)
		addr := l.Addr().String()
		l.Close()
		end := make(chan error, 1)
		go func() {
			if f := bothFunctions[name]; secure == "secure" {
				end <- f.listenTLS(addr, certFile, keyFile, h)
			} else {
				end <- f.listen(addr, h)
			}
		}()
		for {
			select {
			case err := <-end:
				if !errors.Is(err, syscall.EADDRINUSE) {
					t.Fatal(err)
				}
			default:
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				nc.Close()
				fmt.Println("addr", addr)
				io.Copy(io.Discard, os.Stdin) // until the parent ends this
				return
			}
			break // somebody else has taken the port
		}
	}
}

// The methods listen on any port of any address, until Shutdown.
func TestListenAndServeShutdown(t *testing.T) {
	t.Parallel()
	certFile, keyFile, roots := servertest.CertFiles(t)
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, addr := range []string{":0", "127.0.0.1:0", "localhost:0"} {
			for _, secure := range []bool{false, true} {
				if secure && e == chert.EngineLoops {
					continue
				}
				opened := make(chan net.Addr, 1)
				ctl := engines.ControlOf(&chert.Server{Engine: e, Addr: addr,
					BaseContext: func(l net.Listener) context.Context {
						opened <- l.Addr()
						return context.Background()
					},
					Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "hi") }),
				})
				end := make(chan error, 1)
				go func() {
					if secure {
						end <- ctl.ListenAndServeTLS(certFile, keyFile)
					} else {
						end <- ctl.ListenAndServe()
					}
				}()
				var port int
				select {
				case a := <-opened:
					port = a.(*net.TCPAddr).Port
				case err := <-end:
					t.Fatal(err)
				case <-time.After(servertest.Patience):
					t.Fatal("nobody listens")
				}
				c := servertest.Dial(t, net.JoinHostPort("localhost", fmt.Sprint(port)))
				if secure {
					c, _ = servertest.TLSOver(t, c.Conn, roots)
				}
				if _, body := c.Get("/"); body != "hi" {
					t.Errorf("got %q", body)
				}
				if err := ctl.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				if err := servertest.Await(t, end, "ListenAndServe"); err != chert.ErrServerClosed {
					t.Errorf("it returned %v", err)
				}
				c.Ended()
				if err := ctl.ListenAndServe(); err != chert.ErrServerClosed {
					t.Errorf("the second ListenAndServe returned %v", err)
				}
			}
		}
		taken := servertest.ListenTCP(t)
		defer taken.Close()
		ctl := engines.ControlOf(&chert.Server{Engine: e, Addr: taken.Addr().String()})
		if err := ctl.ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if err := ctl.ListenAndServeTLS(certFile, keyFile); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServeTLS returned %v", err)
		}
	})
}

// alikeOthers is alike for listeners of a type that the server does not know.
func alikeOthers(t *testing.T, f func(t *testing.T, e chert.Engine)) {
	t.Helper()
	for name, e := range map[string]chert.Engine{"auto": chert.EngineAuto, "goroutines": chert.EngineGoroutines, "nethttp": engines.NetHTTP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// ownListener is a listener of a user's own. It keeps what its Accept returns:
// the connection that the listener below has accepted, or one that wraps it.
type ownListener struct {
	net.Listener
	wrap  func(net.Conn) net.Conn // nil: as it is
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

// Hooks and handlers see the very connection that Accept has returned.
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
		end  func(c net.Conn) // what Accept's owner does
		want string
	}{
		{"/", func(c net.Conn) { c.Close() }, "context new active handler idle closed"},
		{"/", func(c net.Conn) {
			// The server sets one too, behind the hook.
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

// The methods of a user's connection are called, all of them: it may count, or
// encrypt.
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

// shifting adds 1 to every byte that it sends, and takes it off again.
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

// An address that comes late, as from a proxy's first line, holds up its own
// connection only.
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
		servertest.Await(t, asked, "somebody to ask for the address")
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

// lateAddr knows its client late.
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

// A listener that gives one connection and then ends: when Serve returns,
// ConnState knows of that connection.
func TestStateNewBeforeServeReturns(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]func(t *testing.T) (net.Listener, func() net.Conn){
		"pipe": func(t *testing.T) (net.Listener, func() net.Conn) {
			m := servertest.NewMemory()
			return m, func() net.Conn { return m.Dial(t) }
		},
		"socket": func(t *testing.T) (net.Listener, func() net.Conn) {
			l := newOwnListener(t, nil)
			return l, func() net.Conn { return servertest.Dial(t, l.Addr().String()).Conn }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alikeOthers(t, func(t *testing.T, e chert.Engine) {
				for range 20 {
					l, dial := l(t)
					// Without synchronisation: the race detector would tell.
					seen := 0
					s := &chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) {
						if st == http.StateNew {
							seen++
						}
					}}
					end := make(chan error, 1)
					ctl := engines.ControlOf(s)
					go func() { end <- ctl.Serve(&onceListener{Listener: l}) }()
					c := dial()
					if err := servertest.Await(t, end, "Serve"); err != io.EOF {
						t.Errorf("Serve returned %v", err)
					}
					if seen != 1 {
						t.Errorf("StateNew was seen %d times", seen)
					}
					// It is served on.
					servertest.Wrap(t, c).Get("/")
					c.Close()
				}
			})
		})
	}
}

// onceListener accepts one connection.
type onceListener struct {
	net.Listener
	accepted bool
}

func (l *onceListener) Accept() (net.Conn, error) {
	if l.accepted {
		return nil, io.EOF
	}
	l.accepted = true
	return l.Listener.Accept()
}

// EngineLoops takes the sockets out of whatever a listener returns, and does
// not serve what is none.
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
		c.Get("/") // the others are served on
	})
}

// accepts counts those of some looks that find somebody who accepts.
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

// Functions of RegisterOnShutdown run when nobody is accepted any more; also
// those registered on the server that requests know.
func TestShutdownHooks(t *testing.T) {
	t.Parallel()
	for name, listen := range map[string]func(t *testing.T, s *chert.Server) net.Listener{
		"Server.Listen": func(t *testing.T, s *chert.Server) net.Listener {
			l, err := s.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			return l
		},
		"net.Listen": func(t *testing.T, _ *chert.Server) net.Listener { return servertest.ListenTCP(t) },
		"own":        func(t *testing.T, _ *chert.Server) net.Listener { return newOwnListener(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				var accepted accepts
				for range 5 {
					servers := make(chan *http.Server, 1)
					s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
						servers <- r.Context().Value(http.ServerContextKey).(*http.Server)
					})}
					ts := engines.StartOn(t, s, listen(t, s))
					idle := ts.Dial()
					idle.Get("/")
					called := make(chan string, 4)
					hook := func(name string) func() {
						return func() {
							accepted.look(ts.ListenAddr)
							called <- name
						}
					}
					ts.Control.RegisterOnShutdown(hook("the server's"))
					servertest.Await(t, servers, "the handler").RegisterOnShutdown(hook("the context's"))
					if err := ts.Control.Shutdown(context.Background()); err != nil {
						t.Error(err)
					}
					if a, b := servertest.Await(t, called, "a hook"), servertest.Await(t, called, "the other hook"); a == b {
						t.Errorf("%s was called twice", a)
					}
					idle.Ended()
				}
				accepted.check(t)
			})
		})
	}
}

// When Close has returned, nobody is accepted.
func TestCloseRefuses(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		var accepted accepts
		for range 10 {
			ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})})
			ts.Dial().Get("/")
			if err := ts.Control.Close(); err != nil {
				t.Error(err)
			}
			accepted.look(ts.ListenAddr)
		}
		accepted.check(t)
	})
}

// A ConnState hook may end its server. Shutdown may have to wait for the very
// connection whose hook calls it, so it is given a context or a goroutine.
func TestEndFromConnState(t *testing.T) {
	t.Parallel()
	ends := map[string]func(c engines.Control) error{
		"Close": func(c engines.Control) error { return c.Close() },
		"Shutdown": func(c engines.Control) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := c.Shutdown(ctx); err != nil && err != context.Canceled {
				return err
			}
			return nil
		},
		"Shutdown in a goroutine": func(c engines.Control) error {
			go c.Shutdown(context.Background())
			return nil
		},
	}
	for how, end := range ends {
		for _, at := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed} {
			t.Run(how+" at "+at.String(), func(t *testing.T) {
				t.Parallel()
				engines.Alike(t, func(t *testing.T, e chert.Engine) {
					if e == engines.NetHTTP && at == http.StateNew && how != "Shutdown in a goroutine" {
						return // it is called by Serve, which Close and Shutdown wait for
					}
					var ts *engines.Server
					var once sync.Once
					ended := make(chan error, 1)
					ready := make(chan struct{})
					s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {}),
						ConnState: func(_ net.Conn, st http.ConnState) {
							if st == at {
								<-ready
								once.Do(func() { ended <- end(ts.Control) })
							}
						}}
					ts = engines.Start(t, s)
					close(ready)
					c := ts.Dial()
					c.Send(servertest.GET)
					if at == http.StateClosed {
						c.CloseWrite()
					}
					if err := servertest.Await(t, ended, how); err != nil {
						t.Error(err)
					}
					c.UpToEnd()
					if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
						t.Errorf("Serve returned %v", err)
					}
					ts.Served <- http.ErrServerClosed // for start's cleanup
				})
			})
		}
	}
}

// The preface of HTTP/2 reaches the handler, which may take the connection
// over; if it does not, nothing can follow.
func TestHTTP2Preface(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		hijack := true
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			got := fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.URL.Path, " ", r.Proto, " ", r.ProtoMajor, " ", r.ProtoMinor, " ",
				r.Close, " ", r.ContentLength, " ", len(r.Header), " ", r.Host, " ", r.TransferEncoding)
			if got != "PRI * * HTTP/2.0 2 0 true -1 0  []" {
				t.Errorf("the request is %q", got)
			}
			if !hijack {
				put(w, "no")
				return
			}
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			b := make([]byte, len("SM\r\n\r\nmore"))
			if _, err := io.ReadFull(rw, b); err != nil || string(b) != "SM\r\n\r\nmore" {
				t.Errorf("read %q, %v", b, err)
			}
			put(nc, "yes")
		})})
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"
		for _, slowly := range []bool{false, true} {
			if got := ts.Exchange(preface, slowly); got != "yes" {
				t.Errorf("slowly=%v: got %q", slowly, got)
			}
		}
		// Behind another request too.
		c := ts.Dial()
		hijack = true
		c.Send(preface)
		c.Want("yes")
		c.Ended()
		hijack = false
		const want = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\nno"
		c = ts.Dial()
		c.Send(preface)
		c.CloseWrite()
		if got := servertest.Undated(c.UpToEnd()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// The bytes behind the preface that have come with it are in the buffer.
func TestHTTP2PrefaceBuffered(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			nc, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			if n := rw.Reader.Buffered(); n != 6 {
				t.Errorf("%d bytes are buffered", n)
			}
			if b, err := rw.Peek(6); string(b) != "SM\r\n\r\n" || err != nil {
				t.Errorf("Peek gave %q, %v", b, err)
			}
		})})
		c := ts.Dial()
		c.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		c.Ended()
	})
}

// Requests that are odd and served.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		mux := http.NewServeMux()
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { put(w, "mux") })
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Mux") != "" {
				mux.ServeHTTP(w, r)
				return
			}
			io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%s %s host=%q url=%q", r.Method, r.RequestURI, r.Host, r.URL)
		})})
		for _, tt := range []struct{ why, request, want string }{
			{"CONNECT without a Host", "CONNECT other:443 HTTP/1.1\r\n\r\n", `CONNECT other:443 host="other:443" url="//other:443"`},
			{"net/rpc's CONNECT, without a Host", "CONNECT /rpc HTTP/1.1\r\n\r\n", `CONNECT /rpc host="" url="/rpc"`},
			{"a bare IPv6 address", "GET / HTTP/1.1\r\nHost: ::1\r\n\r\n", `GET / host="::1" url="/"`},
			{"a longer one", "GET / HTTP/1.1\r\nHost: fe80::1:2\r\n\r\n", `GET / host="fe80::1:2" url="/"`},
			{"an asterisk", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", `GET * host="h" url="*"`},
			{"an asterisk with a body", "POST * HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx", `POST * host="h" url="*"`},
			{"an asterisk for ServeMux", "GET * HTTP/1.1\r\nHost: h\r\nX-Mux: 1\r\n\r\n", ""},
			{"CRLF behind a body", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx\r\n", `POST / host="h" url="/"`},
			{"two", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx\r\n\r\n", `POST / host="h" url="/"`},
		} {
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					c.SendSlowly(tt.request, 1)
				} else {
					c.Send(tt.request)
				}
				res, body := c.Response("GET")
				if tt.want == "" {
					if res.StatusCode != 400 {
						t.Errorf("%s: got %v %q", tt.why, res.Status, body)
					}
					continue
				}
				if res.StatusCode != 200 || body != tt.want {
					t.Errorf("%s (slowly=%v): got %v %s, want %s", tt.why, slowly, res.Status, body, tt.want)
				}
				c.Get("/") // the connection is kept
			}
		}
	})
}

// A key without values means that no Content-Length is wanted.
func TestNoContentLength(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Length"] = nil
			if r.URL.Path == "/empty" {
				w.Header()["Content-Length"] = []string{}
			}
			w.Header()["Content-Type"] = nil
			switch r.URL.Path {
			case "/":
				put(w, "body")
			case "/204":
				w.WriteHeader(204)
			}
		})})
		const ok, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		for _, tt := range []struct {
			method, path, version, lines string
			want                         string
			kept                         bool
		}{
			{"GET", "/", "1.1", "", chunked + "4\r\nbody\r\n0\r\n\r\n", true},
			{"GET", "/nothing", "1.1", "", chunked + "0\r\n\r\n", true},
			{"GET", "/empty", "1.1", "", chunked + "0\r\n\r\n", true},
			{"GET", "/204", "1.1", "", "HTTP/1.1 204 No Content\r\n\r\n", true},
			{"HEAD", "/", "1.1", "", ok + "\r\n", true},
			{"HEAD", "/nothing", "1.1", "", ok + "\r\n", true},
			{"GET", "/", "1.1", "Connection: close\r\n", ok + "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", false},
			{"GET", "/", "1.0", "", "HTTP/1.0 200 OK\r\n\r\nbody", false},
			{"GET", "/", "1.0", "Connection: keep-alive\r\n", "HTTP/1.0 200 OK\r\n\r\nbody", false},
			{"HEAD", "/", "1.0", "Connection: keep-alive\r\n", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", true},
		} {
			c := ts.Dial()
			request := tt.method + " " + tt.path + " HTTP/" + tt.version + "\r\nHost: h\r\n" + tt.lines + "\r\n"
			c.Send(request + request)
			c.CloseWrite()
			want := tt.want
			if tt.kept {
				want += tt.want
			}
			if got := servertest.Undated(c.UpToEnd()); got != want {
				t.Errorf("%q:\ngot  %q\nwant %q", request, got, want)
			}
		}
	})
}

// A handler that writes and flushes until an error tells that its client has
// gone does end, however little it writes and whichever error it looks at.
func TestFlushUntilError(t *testing.T) {
	t.Parallel()
	for how, leave := range leavings {
		if how == "half-close" {
			continue // such a client still listens
		}
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Alike(t, func(t *testing.T, e chert.Engine) {
				ended := make(chan error, 1)
				ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/length" {
						w.Header().Set("Content-Length", "1000000000")
					}
					var err error
					for deadline := time.Now().Add(servertest.Patience); err == nil && time.Now().Before(deadline); {
						if r.URL.Path == "/string" {
							_, err = io.WriteString(w, "a line\n")
						} else {
							_, err = w.Write([]byte("a line\n"))
						}
						// Flush has no error to give.
						w.(http.Flusher).Flush()
					}
					// And it stays so.
					if _, again := w.Write([]byte("more")); err != nil && again == nil {
						t.Error("a later Write gave no error")
					}
					ended <- err
				})})
				for _, path := range []string{"/", "/string", "/length"} {
					for _, version := range []string{"1.0", "1.1"} {
						c := ts.Dial()
						c.Send("GET " + path + " HTTP/" + version + "\r\nHost: h\r\n\r\n")
						c.Head()
						leave(c)
						if err := servertest.Await(t, ended, "the handler"); err == nil {
							t.Errorf("%s: no error", path)
						}
					}
				}
			})
		})
	}
}

// counting counts what was read from a connection.
type counting struct {
	net.Conn
	n atomic.Int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Body.Close reads what is left only for the sake of what comes behind it: a
// further request, or trailers.
func TestBodyCloseReads(t *testing.T) {
	t.Parallel()
	const size = 50_000
	body := string(servertest.Pattern(size))
	alikeInMemory(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan int64, 1)
		var conn *counting
		ts, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/some" {
				if _, err := io.ReadFull(r.Body, make([]byte, 100)); err != nil {
					t.Error(err)
				}
			}
			before := conn.n.Load()
			if err := r.Body.Close(); err != nil {
				t.Error(err)
			}
			closed <- conn.n.Load() - before
			if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != http.ErrBodyReadAfterClose && r.ContentLength != 0 {
				t.Errorf("Read gave %d, %v", n, err)
			}
			fmt.Fprint(w, "answer ", r.Trailer)
		})})
		_ = ts
		length := fmt.Sprintf("Content-Length: %d\r\n", size)
		const coded = "Transfer-Encoding: chunked\r\nTrailer: T\r\n"
		pieces := strings.TrimSuffix(servertest.Chunks(body, 1000), "\r\n") + "T: t\r\n\r\n"
		for _, tt := range []struct {
			path, lines, body string
			all               bool // of the body is read
			want              string
		}{
			{"/", "Connection: close\r\n" + length, body, false, "answer map[]"},
			{"/some", "Connection: close\r\n" + length, body, false, "answer map[]"},
			{"/", length, body, true, "answer map[]"},
			{"/", "Connection: close\r\n" + coded, pieces, true, "answer map[T:[t]]"},
			{"/", coded, pieces, true, "answer map[T:[t]]"},
		} {
			client, server := net.Pipe()
			client.SetDeadline(time.Now().Add(servertest.Patience))
			conn = &counting{Conn: server}
			select {
			case m.Conns <- conn:
			case <-time.After(servertest.Patience):
				t.Fatal("nobody accepts")
			}
			c := servertest.Wrap(t, client)
			c.Send("POST " + tt.path + " HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n")
			c.SendAside(tt.body)
			n := servertest.Await(t, closed, "Close")
			if tt.all && n != int64(len(tt.body)) || !tt.all && n != 0 {
				t.Errorf("%s %q: Close read %d bytes of %d", tt.path, tt.lines, n, len(tt.body))
			}
			before := conn.n.Load()
			res, got := c.Response("POST")
			if got != tt.want {
				t.Errorf("%s %q: got %q", tt.path, tt.lines, got)
			}
			if res.Close {
				c.Ended()
				if more := conn.n.Load() - before; more != 0 {
					t.Errorf("%s %q: %d bytes were read behind Close", tt.path, tt.lines, more)
				}
			} else {
				c.SendAside("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
				servertest.Await(t, closed, "the next handler")
				c.Response("POST")
			}
			c.Close()
		}
	})
}

// An expired read deadline spoils a chunked body for good; one with a length
// can be read on under a later deadline. Either way the request's context is
// cancelled: a failed read counts as the client's end.
func TestReadDeadlineInBody(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		failed, more := make(chan struct{}), make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			chunked := r.ContentLength < 0
			rc := http.NewResponseController(w)
			b := make([]byte, 100)
			if n, err := io.ReadFull(r.Body, b[:5]); err != nil {
				t.Errorf("the first Read gave %d, %v", n, err)
			}
			if err := rc.SetReadDeadline(time.Unix(1, 0)); err != nil {
				t.Error(err)
			}
			for range 2 {
				if n, err := r.Body.Read(b); n != 0 || !servertest.IsTimeout(err) {
					t.Errorf("Read gave %d, %v", n, err)
				}
			}
			servertest.WaitDone(t, r.Context(), "the context is done")
			if err := r.Context().Err(); err != context.Canceled {
				t.Errorf("Err is %v", err)
			}
			if err := rc.SetReadDeadline(time.Now().Add(time.Hour)); err != nil {
				t.Error(err)
			}
			failed <- struct{}{}
			<-more
			n, err := io.ReadFull(r.Body, b[:5])
			if chunked && (n != 0 || !servertest.IsTimeout(err)) || !chunked && (err != nil || string(b[:n]) != "world") {
				t.Errorf("behind the deadline, chunked=%v: %q, %v", chunked, b[:n], err)
			}
			put(w, "answer")
		})})
		for _, tt := range []struct{ lines, first, second string }{
			{"Content-Length: 10\r\n", "hello", "world"},
			{"Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n", "5\r\nworld\r\n0\r\n\r\n"},
			{"Transfer-Encoding: chunked\r\n", "a\r\nhello", "world\r\n0\r\n\r\n"},
			{"Transfer-Encoding: chunked\r\n", "5\r\nhello", "\r\n5\r\nworld\r\n0\r\n\r\n"},
		} {
			c := ts.Dial()
			c.Send("POST / HTTP/1.1\r\nHost: h\r\n" + tt.lines + "\r\n" + tt.first)
			servertest.Await(t, failed, "the Read")
			c.Send(tt.second)
			more <- struct{}{}
			if res, body := c.Response("POST"); body != "answer" || res.StatusCode != 200 {
				t.Errorf("%q: got %v %q", tt.lines, res.Status, body)
			}
			c.Close()
		}
	})
}

// Whatever a listener is of, Serve ends when somebody else closes it, and
// connections are served on.
func TestServeListenersClosed(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	kinds := []struct {
		name   string
		listen func(t *testing.T) (net.Listener, func() *servertest.Client)
	}{
		{"tcp6", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			l, err := net.Listen("tcp6", "[::1]:0")
			if err != nil {
				return nil, nil
			}
			return l, func() *servertest.Client { return servertest.Dial(t, l.Addr().String()) }
		}},
		{"Server.Listen tcp6", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			l, err := new(chert.Server).Listen("tcp6", "[::1]:0")
			if err != nil {
				return nil, nil
			}
			return l, func() *servertest.Client { return servertest.Dial(t, l.Addr().String()) }
		}},
		{"unix", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
			if err != nil {
				t.Fatal(err)
			}
			return l, func() *servertest.Client {
				nc, err := net.Dial("unix", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				nc.SetDeadline(time.Now().Add(servertest.Patience))
				t.Cleanup(func() { nc.Close() })
				return servertest.Wrap(t, nc)
			}
		}},
		{"tls", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			l := tls.NewListener(servertest.ListenTCP(t), &tls.Config{Certificates: []tls.Certificate{cert}})
			return l, func() *servertest.Client {
				c, _ := servertest.TLSOver(t, servertest.Dial(t, l.Addr().String()).Conn, roots)
				return c
			}
		}},
		{"own", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			l := newOwnListener(t, nil)
			return l, func() *servertest.Client { return servertest.Dial(t, l.Addr().String()) }
		}},
		{"in memory", func(t *testing.T) (net.Listener, func() *servertest.Client) {
			m := servertest.NewMemory()
			return m, func() *servertest.Client { return servertest.Wrap(t, m.Dial(t)) }
		}},
	}
	alikeOthers(t, func(t *testing.T, e chert.Engine) {
		// One server serves them all, at the same time.
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "answer") })})
		var all sync.WaitGroup
		for _, kind := range kinds {
			all.Go(func() {
				l, dial := kind.listen(t)
				if l == nil {
					t.Logf("%s: no IPv6 here", kind.name)
					return
				}
				end := make(chan error, 1)
				go func() { end <- ts.Control.Serve(l) }()
				one, other := dial(), dial()
				one.Get("/")
				other.Get("/")
				l.Close()
				if err := servertest.Await(t, end, kind.name); !errors.Is(err, net.ErrClosed) || errors.Is(err, http.ErrServerClosed) {
					t.Errorf("%s: Serve returned %v", kind.name, err)
				}
				one.Get("/")
				if res, _ := other.Get("/", "Connection: close"); !res.Close {
					t.Errorf("%s: got %v", kind.name, res)
				}
				other.Ended()
			})
		}
		all.Wait()
		ts.Dial().Get("/")
		if err := ts.Control.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
