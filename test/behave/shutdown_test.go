package behave

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
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

// When the context ends first, what runs goes on running until Close.
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

// A response under way tells that its connection will not be kept; without
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
		c := ts.Dial() // new ones are welcome
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

// TestConnState follows connections through their states. The hook may use the
// connection's addresses in every state.
func TestConnState(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		type step struct {
			conn         net.Conn
			local, state string
		}
		steps := make(chan step, 64)
		ts := engines.Start(t, &chert.Server{Engine: e,
			ConnState: func(c net.Conn, s http.ConnState) {
				steps <- step{c, fmt.Sprint(c.RemoteAddr(), " ", c.LocalAddr()), s.String()}
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/panic":
					panic(http.ErrAbortHandler)
				case "/hijack":
					nc, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					nc.Close()
				}
			})})
		const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		for _, tt := range []struct {
			why, wire string
			want      []string
		}{
			{"no request", "", []string{"new", "closed"}},
			{"one", get, []string{"new", "active", "idle", "closed"}},
			{"two", get + get, []string{"new", "active", "idle", "active", "idle", "closed"}},
			{"the last of all", tail, []string{"new", "active", "closed"}},
			{"one and the last", get + tail, []string{"new", "active", "idle", "active", "closed"}},
			{"a panic", "GET /panic HTTP/1.1\r\nHost: h\r\n\r\n", []string{"new", "active", "closed"}},
			{"a hijack", "GET /hijack HTTP/1.1\r\nHost: h\r\n\r\n", []string{"new", "active", "hijacked"}},
			{"no HTTP", "hello\r\n\r\n", []string{"new", "active", "closed"}},
			{"a head cut short", "GET / HT", []string{"new", "active", "closed"}},
			{unlike + "one and no HTTP", get + "hello\r\n\r\n", []string{"new", "active", "idle", "active", "closed"}},
		} {
			if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
				continue // it depends on how much was read at once
			}
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					for i := range len(tt.wire) { // the server may have closed
						if _, err := c.Write([]byte(tt.wire[i : i+1])); err != nil {
							break
						}
					}
				} else {
					c.Send(tt.wire)
				}
				c.Conn.(*net.TCPConn).CloseWrite()
				c.UpToEnd()
				var first net.Conn
				for i, want := range tt.want {
					s := servertest.Await(t, steps, want)
					if s.state != want {
						t.Fatalf("%s (slowly=%v): state %d is %s, want %s", tt.why, slowly, i, s.state, want)
					}
					if s.local != c.LocalAddr().String()+" "+ts.ListenAddr {
						t.Errorf("%s: %s: addresses are %s", tt.why, want, s.local)
					}
					if i == 0 {
						first = s.conn
					} else if s.conn != first {
						t.Errorf("%s: %s: another connection", tt.why, want)
					}
				}
			}
		}
		ts.Control.Close()
		select {
		case s := <-steps:
			t.Errorf("one state too many: %s", s.state)
		default:
		}
	})
}

// A hook may close a connection, and ask for the addresses when it is gone.
func TestConnStateClose(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan net.Conn, 1)
		ts := engines.Start(t, &chert.Server{Engine: e,
			ConnState: func(c net.Conn, s http.ConnState) {
				switch s {
				case http.StateIdle:
					c.Close()
				case http.StateClosed:
					closed <- c
				}
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {}),
		})
		c := ts.Dial()
		c.Get("/")
		c.Ended()
		nc := servertest.Await(t, closed, "StateClosed")
		if nc.RemoteAddr().String() != c.LocalAddr().String() || nc.LocalAddr().String() != ts.ListenAddr {
			t.Errorf("addresses are %v %v", nc.RemoteAddr(), nc.LocalAddr())
		}
	})
}
