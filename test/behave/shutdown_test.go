package behave

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// waiter is a server whose handler waits at "/wait" until release is closed.
func waiter(t *testing.T, e chert.Engine) (ts *engines.Server, running chan struct{}, release chan struct{}) {
	running, release = make(chan struct{}, 16), make(chan struct{})
	ts = engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		put(w, "answer")
	})})
	return ts, running, release
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts, running, release := waiter(t, e)
		idle := ts.Dial()
		idle.Get("/")
		active := ts.Dial()
		active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		hooks := make(chan struct{}, 2)
		ts.Control.RegisterOnShutdown(func() { hooks <- struct{}{} })
		ts.Control.RegisterOnShutdown(func() { hooks <- struct{}{} })
		ended := make(chan error, 1)
		go func() { ended <- ts.Control.Shutdown(context.Background()) }()
		servertest.Await(t, hooks, "a hook")
		servertest.Await(t, hooks, "the other hook")
		idle.Ended()
		ts.Refuses()
		select {
		case err := <-ended:
			t.Fatalf("Shutdown did not wait: %v", err)
		default:
		}
		close(release)
		if res, body := active.Response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		active.Ended()
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
		if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
		ts.Served <- http.ErrServerClosed // start's cleanup wants it
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := ts.Control.Serve(l); err != http.ErrServerClosed {
			t.Errorf("Serve after Shutdown returned %v", err)
		}
		if nc, err := l.Accept(); err == nil {
			nc.Close()
			t.Error("Serve after Shutdown did not close its listener")
		}
	})
}

// closeHook calls onClose, if it is set, before it is closed.
type closeHook struct {
	net.Listener
	onClose func()
}

func (l *closeHook) Close() error {
	if f := l.onClose; f != nil {
		l.onClose = nil
		f()
	}
	return l.Listener.Close()
}

// A request that is sent on a kept connection after Shutdown has been called does not reach
// the handler, which may belong to a configuration that has been replaced.
func TestShutdownServesNoLateRequest(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		var served atomic.Int32
		l := &closeHook{Listener: servertest.ListenTCP(t)}
		ts := engines.StartOn(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			put(w, "answer")
		})}, l)
		whole, part := ts.Dial(), ts.Dial()
		whole.Get("/")
		part.Get("/")
		// Shutdown closes the listener first, and idle connections later.
		l.onClose = func() {
			whole.Send("GET /late HTTP/1.1\r\nHost: h\r\n\r\n")
			if b, err := whole.R.Peek(1); err == nil {
				t.Errorf("got %q, want the end", b)
			}
			part.Send("GET /late HTTP/1.1\r\n")
		}
		if err := ts.Control.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		part.Ended()
		if n := served.Load(); n != 2 {
			t.Errorf("%d requests reached the handler, want the two before Shutdown", n)
		}
	})
}

// When the context ends first, running handlers continue until Close.
func TestShutdownContext(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		over := make(chan error, 1)
		running := make(chan struct{})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			close(running)
			<-r.Context().Done()
			over <- r.Context().Err()
		})})
		c := ts.Dial()
		c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- ts.Control.Shutdown(ctx) }()
		ts.Refuses()
		cancel()
		if err := servertest.Await(t, ended, "Shutdown"); err != context.Canceled {
			t.Errorf("Shutdown returned %v", err)
		}
		if err := ts.Control.Shutdown(ctx); err != context.Canceled {
			t.Errorf("Shutdown with an ended context returned %v", err)
		}
		select {
		case <-over:
			t.Error("the handler has ended")
		default:
		}
		if err := ts.Control.Close(); err != nil {
			t.Error(err)
		}
		if err := servertest.Await(t, over, "the handler's end"); err != context.Canceled {
			t.Error(err)
		}
		c.Ended()
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts, running, _ := waiter(t, e)
		fresh, idle, active, partial := ts.Dial(), ts.Dial(), ts.Dial(), ts.Dial()
		idle.Get("/")
		active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		partial.Get("/")
		partial.Send("GET /")
		fresh.LocalAddr()
		if err := ts.Control.Close(); err != nil {
			t.Error(err)
		}
		ts.Refuses()
		for _, c := range []*servertest.Client{idle, active, partial, fresh} {
			c.Ended()
		}
		if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
		ts.Served <- http.ErrServerClosed
		if err := ts.Control.Close(); err != nil {
			t.Errorf("a second Close returned %v", err)
		}
	})
}

// Shutdown of a server that never served, twice, and with a hook.
func TestShutdownUnused(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		s := &chert.Server{Engine: e}
		var hooks atomic.Int32
		called := make(chan struct{}, 2)
		s.RegisterOnShutdown(func() { hooks.Add(1); called <- struct{}{} })
		for range 2 {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			servertest.Await(t, called, "the hook")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.ListenAndServe(); err != chert.ErrServerClosed {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if err := s.ListenAndServeTLS("", ""); err != chert.ErrServerClosed {
			t.Errorf("ListenAndServeTLS returned %v", err)
		}
	})
}

// A response under way announces that its connection will not be kept; without
// keep-alives idle connections end.
func TestSetKeepAlivesEnabled(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		ts, running, release := waiter(t, e)
		idle, active := ts.Dial(), ts.Dial()
		idle.Get("/")
		active.Send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		servertest.Await(t, running, "the handler")
		ts.Control.SetKeepAlivesEnabled(false)
		idle.Ended()
		close(release)
		if res, _ := active.Response("GET"); !res.Close {
			t.Errorf("got %v", res)
		}
		active.Ended()
		c := ts.Dial() // new ones are accepted
		if res, _ := c.Get("/"); !res.Close {
			t.Errorf("got %v", res)
		}
		c.Ended()
		ts.Control.SetKeepAlivesEnabled(true)
		c = ts.Dial()
		for range 2 {
			if res, _ := c.Get("/"); res.Close {
				t.Errorf("got %v", res)
			}
		}
	})
}

// Functions of RegisterOnShutdown run when no connection is accepted any more;
// also those registered on the server that requests see.
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

// A handler may shut the server down that it finds in the context of its request.
func TestShutdownByContext(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		hooked, ended := make(chan bool, 2), make(chan error, 1)
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			s := r.Context().Value(http.ServerContextKey).(*http.Server)
			s.RegisterOnShutdown(func() { hooked <- true })
			go func() { ended <- s.Shutdown(context.Background()) }()
			servertest.Await(t, hooked, "the hook")
			put(w, "bye")
		})})
		c := ts.Dial()
		if _, got := c.Get("/"); got != "bye" {
			t.Errorf("%q", got)
		}
		c.Ended()
		if err := servertest.Await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
		if err := ts.Control.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		servertest.Eventually(t, "nothing listens", func() bool {
			nc, err := net.Dial("tcp", ts.Addr)
			if err == nil {
				nc.Close()
			}
			return err != nil
		})
	})
}
