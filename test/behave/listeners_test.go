package behave

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Connections are refused once Close of Listen's listener has returned.
func TestListenerCloseRefuses(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		accepted := 0
		for range 100 {
			s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})}
			l, err := s.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctl := engines.ControlOf(s)
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(l) }()
			c := servertest.Dial(t, l.Addr().String())
			c.Get("/")
			l.Close()
			if nc, err := net.Dial("tcp", l.Addr().String()); err == nil {
				accepted++
				nc.Close()
			}
			c.Close()
			servertest.Await(t, end, "Serve")
		}
		if accepted > 0 {
			t.Errorf("%d connections were made after Close", accepted)
		}
	})
}

// When Close has returned, no connection is accepted.
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

// For any kind of listener, Serve ends when other code closes it, and
// connections are still served.
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

// A listener that other code closes ends its Serve and nothing else.
func TestServeListenerClosed(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		for _, own := range []bool{false, true} {
			release := make(chan struct{})
			running := make(chan struct{})
			s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/wait" {
					close(running)
					<-release
				}
				put(w, "answer")
			})}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if own {
				l.Close()
				l, err = s.Listen("tcp", "127.0.0.1:0")
			}
			if err != nil {
				t.Fatal(err)
			}
			ts := engines.StartOn(t, s, l)
			idle, active := ts.Dial(), ts.Dial()
			idle.Get("/")
			active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
			servertest.Await(t, running, "the handler")
			l.Close()
			if err := servertest.Await(t, ts.Served, "Serve"); err == nil || errors.Is(err, http.ErrServerClosed) || !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returned %v", err)
			}
			ts.Served <- http.ErrServerClosed // for start's cleanup
			ts.Refuses()
			idle.Get("/")
			close(release)
			if res, body := active.Response("GET"); body != "answer" || res.Close {
				t.Errorf("got %v %q", res, body)
			}
			active.Get("/")
			// And another can be served.
			l, err = net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			go func() { end <- ts.Control.Serve(l) }()
			nc, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			servertest.Wrap(t, nc).Get("/")
			ts.Control.Close()
			if err := servertest.Await(t, end, "Serve"); err != http.ErrServerClosed {
				t.Errorf("Serve returned %v", err)
			}
		}
	})
}

// Several calls may serve one listener, until it is closed.
func TestServeTwice(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		begun := make(chan struct{}, 2)
		s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "answer") }), BaseContext: func(net.Listener) context.Context {
			begun <- struct{}{}
			return context.Background()
		}}
		l, err := s.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ts := engines.StartOn(t, s, l)
		servertest.Await(t, begun, "the first call")
		ts.Dial().Get("/")
		second := make(chan error, 1)
		go func() { second <- ts.Control.Serve(l) }()
		servertest.Await(t, begun, "the second call")
		for range 20 {
			ts.Dial().Get("/")
		}
		ts.Control.Close()
		if err := servertest.Await(t, second, "the second call"); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// Loops cannot share a listener of Listen with another server: that is told, and ends neither.
func TestServeByAnother(t *testing.T) {
	t.Parallel()
	if !sys.HavePoller {
		t.Skip("no loops")
	}
	for _, tt := range []struct{ first, second chert.Engine }{
		{chert.EngineLoops, chert.EngineLoops}, {chert.EngineLoops, chert.EngineGoroutines}, {chert.EngineGoroutines, chert.EngineLoops},
	} {
		begun := make(chan struct{}, 1)
		s := &chert.Server{Engine: tt.first, Handler: hf(func(w http.ResponseWriter, r *http.Request) { put(w, "answer") }), BaseContext: func(net.Listener) context.Context {
			begun <- struct{}{}
			return context.Background()
		}}
		l, err := (&chert.Server{}).Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ts := engines.StartOn(t, s, l)
		servertest.Await(t, begun, "the first call")
		ts.Dial().Get("/")
		second := make(chan error, 1)
		go func() { second <- (&chert.Server{Engine: tt.second}).Serve(l) }()
		if err := servertest.Await(t, second, "the second call"); err == nil || !strings.Contains(err.Error(), "another Server serves this listener") {
			t.Errorf("%+v: %v", tt, err)
		}
		for range 20 {
			ts.Dial().Get("/")
		}
	}
}

// Goroutines can.
func TestServeByBoth(t *testing.T) {
	t.Parallel()
	l, err := (&chert.Server{}).Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	begun, ended := make(chan struct{}, 2), make(chan error, 2)
	for range 2 {
		s := &chert.Server{Engine: chert.EngineGoroutines, BaseContext: func(net.Listener) context.Context {
			begun <- struct{}{}
			return context.Background()
		}}
		go func() { ended <- s.Serve(l) }()
		servertest.Await(t, begun, "a call")
	}
	l.Close()
	for range 2 {
		if err := servertest.Await(t, ended, "a call"); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
}

// A listener that is closed is no other server's any more, and the error says what it is.
func TestServeByAnotherLater(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		begun := make(chan struct{}, 1)
		s := &chert.Server{Engine: e, BaseContext: func(net.Listener) context.Context {
			begun <- struct{}{}
			return context.Background()
		}}
		l, err := (&chert.Server{}).Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		first := make(chan error, 1)
		go func() { first <- s.Serve(l) }()
		servertest.Await(t, begun, "the first call")
		s.Close()
		servertest.Await(t, first, "its end")
		if err := (&chert.Server{Engine: e}).Serve(l); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a second server: %v", err)
		}
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the first one again: %v", err)
		}
		ended := &chert.Server{Engine: e}
		ended.Close()
		if err := ended.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("one that has ended: %v", err)
		}
	})
}

// SO_REUSEPORT must not let two servers share a port unasked.
func TestListenPortTaken(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {})})
		if l, err := ts.Listen("tcp", ts.ListenAddr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("Listen gave %v, %v", l, err)
		}
		other := &chert.Server{Engine: e, Addr: ts.ListenAddr}
		if err := other.ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if _, err := net.Listen("tcp", ts.ListenAddr); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("net.Listen gave %v", err)
		}
		// A listener that does not serve yet holds its port too.
		l, err := (&chert.Server{Engine: e}).Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := (&chert.Server{Engine: e, Addr: l.Addr().String()}).ListenAndServe(); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("ListenAndServe returned %v", err)
		}
		ts.Dial().Get("/")
	})
}

func TestListen(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, tt := range []struct{ network, addr string }{
			{"tcp", ":0"}, {"tcp", "127.0.0.1:0"}, {"tcp4", ":0"}, {"tcp", "localhost:0"},
		} {
			l, err := (&chert.Server{Engine: e}).Listen(tt.network, tt.addr)
			if err != nil {
				t.Fatal(err)
			}
			a, ok := l.Addr().(*net.TCPAddr)
			if !ok || a.Port == 0 {
				t.Errorf("%s %s: Addr is %v", tt.network, tt.addr, l.Addr())
			}
			// It can be used without Serve.
			nc, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strings.TrimLeft(l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':'):], ":")))
			if err != nil {
				t.Fatal(err)
			}
			peer, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			peer.Close()
			nc.Close()
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err == nil {
				t.Error("a second Close gave no error")
			}
		}
		if l, err := (&chert.Server{Engine: e}).Listen("tcp", "127.0.0.1:http-alt-alt"); err == nil {
			t.Errorf("got %v", l.Addr())
		}
	})
}
